"""One kind in three versions, connected in each of the ways that there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyver import apis

Object = dict[str, Any]
GROUP = "stable.example.com"


@apis.part
class Spec1(apis.Fields):
    cronSpec: str | None = None  # noqa: N815
    image: str | None = None
    note: str | None = None
    """No other version has it."""


@apis.part
class Spec2(apis.Fields):
    schedule: str | None = None
    images: list[str] | None = None
    replicas: int = 1


@apis.part
class Template(apis.Fields):
    images: list[str] | None = None


@apis.part
class Spec3(apis.Fields):
    schedule: str | None = None
    template: Template
    replicas: int = 1


@apis.part
class Spec4(apis.Fields):
    schedule: str | None = None
    template: Template
    count: int = 1


class V1(apis.Fields):
    metadata: dict[str, Any] | None = None
    spec: Spec1
    status: dict[str, int] | None = None


class V2(apis.Fields):
    metadata: dict[str, Any] | None = None
    spec: Spec2
    status: dict[str, int] | None = None


class V3(apis.Fields):
    metadata: dict[str, Any] | None = None
    spec: Spec3
    status: dict[str, int] | None = None


class V4(apis.Fields):
    metadata: dict[str, Any] | None = None
    spec: Spec4
    status: dict[str, int] | None = None


def declared(one: type = V1, two: type = V2, three: type = V3) -> apis.Kind:
    """The kind without edges; its hub is v2."""
    kind = apis.Kind("CronTab", group=GROUP)
    kind.version("v1")(one)
    kind.version("v2", storage=True)(two)
    kind.version("v3")(three)
    return kind


# Rules


def rules_1_2(e: apis.Rules) -> None:
    e.move("spec.cronSpec", "spec.schedule")
    e.wrap("spec.image", "spec.images")


def rules_2_3(e: apis.Rules) -> None:
    e.move("spec.images", "spec.template.images")


def by_rules() -> apis.Kind:
    kind = declared()
    kind.edge("v1", "v2")(rules_1_2)
    kind.edge("v2", "v3")(rules_2_3)
    return kind


# Functions on plain data, which lose the note, and all images but the first


def up_1_2(old: Object) -> Object:
    spec = old.pop("spec", None)
    if spec is not None:
        old["spec"] = {"schedule": spec.get("cronSpec", "")}
        if "image" in spec:
            old["spec"]["images"] = [spec["image"]]
    return {**old, "apiVersion": f"{GROUP}/v2"}


def down_2_1(new: Object) -> Object:
    spec = new.pop("spec", None)
    if spec is not None:
        new["spec"] = {"cronSpec": spec.get("schedule", "")}
        if spec.get("images"):
            new["spec"]["image"] = spec["images"][0]
    return {**new, "apiVersion": f"{GROUP}/v1"}


def up_2_3(old: Object) -> Object:
    spec = old.get("spec")
    if spec is not None and "images" in spec:
        spec["template"] = {"images": spec.pop("images")}
    return {**old, "apiVersion": f"{GROUP}/v3"}


def down_3_2(new: Object) -> Object:
    spec = new.get("spec")
    if spec is not None:
        spec.update(spec.pop("template", {}))
    return {**new, "apiVersion": f"{GROUP}/v2"}


def by_functions() -> apis.Kind:
    kind = declared()
    kind.converts("v1", "v2")(up_1_2)
    kind.converts("v2", "v1")(down_2_1)
    kind.converts("v3", "v2")(down_3_2)
    kind.converts("v2", "v3")(up_2_3)
    return kind


# Functions on the declared classes


def by_typed_functions() -> apis.Kind:
    kind = apis.Kind("CronTab", group=GROUP)

    @kind.version("v1")
    class One(V1):
        pass

    @kind.version("v2", storage=True)
    class Two(V2):
        pass

    @kind.version("v3")
    class Three(V3):
        pass

    @kind.converts("v1", "v2")
    def up(old: One) -> Two:
        images = None if old.spec.image is None else [old.spec.image]
        spec = Spec2(schedule=old.spec.cronSpec, images=images)
        return Two(metadata=old.metadata, spec=spec, status=old.status)

    @kind.converts("v2", "v1")
    def down(new: Two) -> One:
        image = new.spec.images[0] if new.spec.images else None
        spec = Spec1(cronSpec=new.spec.schedule, image=image)
        return One(metadata=new.metadata, spec=spec, status=new.status)

    @kind.converts("v2", "v3")
    def further(old: Two) -> Three:
        template = Template(images=old.spec.images)
        spec = Spec3(schedule=old.spec.schedule, template=template, replicas=old.spec.replicas)
        return Three(metadata=old.metadata, spec=spec, status=old.status)

    @kind.converts("v3", "v2")
    def less_far(new: Three) -> Two:
        images = new.spec.template.images
        spec = Spec2(schedule=new.spec.schedule, images=images, replicas=new.spec.replicas)
        return Two(metadata=new.metadata, spec=spec, status=new.status)

    return kind


# Methods of the spokes, which fill in what they get, or return something


class HasMethods(V1):
    def convert_to(self, hub: V2) -> None:
        hub.metadata, hub.status = self.metadata, self.status
        hub.spec.schedule = self.spec.cronSpec
        if self.spec.image is not None:
            hub.spec.images = [self.spec.image]

    def convert_from(self, hub: V2) -> None:
        self.metadata, self.status = hub.metadata, hub.status
        self.spec.cronSpec = hub.spec.schedule
        if hub.spec.images:
            self.spec.image = hub.spec.images[0]


class HasMethodsThatReturn(V3):
    def convert_to(self, hub: V2) -> V2:
        spec = Spec2(schedule=self.spec.schedule, images=self.spec.template.images)
        return type(hub)(metadata=self.metadata, spec=spec, status=self.status)

    def convert_from(self, hub: V2) -> V3:
        spec = Spec3(schedule=hub.spec.schedule, template=Template(images=hub.spec.images))
        return type(self)(metadata=hub.metadata, spec=spec, status=hub.status)


def by_methods() -> apis.Kind:
    return declared(HasMethods, V2, HasMethodsThatReturn)


# One function for all versions


def convert(obj: Object, version: str) -> Object:
    """By neighbours, as a kind of Knative would."""
    source, target = int(obj["apiVersion"][-1]), int(version[-1])
    up, down = (up_1_2, up_2_3), (down_2_1, down_3_2)
    steps = up[source - 1 : target - 1] if source < target else down[target - 1 : source - 1][::-1]
    for step in steps:
        obj = step(obj)
    return obj


def by_one_function() -> apis.Kind:
    kind = declared()
    kind.convert(convert)
    return kind


def mixed() -> apis.Kind:
    """Methods, a pair of functions, rules, and one function for what is left."""
    kind = declared(HasMethods)
    kind.converts("v2", "v3")(up_2_3)
    kind.converts("v3", "v2")(down_3_2)
    kind.version("v4")(V4)
    kind.edge("v3", "v4")(lambda e: e.move("spec.replicas", "spec.count"))
    kind.version("v5")(V2)
    kind.convert(lambda obj, version: {**obj, "apiVersion": f"{GROUP}/{version}"})
    return kind


FORMS: dict[str, Callable[[], apis.Kind]] = {
    "rules": by_rules,
    "functions": by_functions,
    "typed functions": by_typed_functions,
    "methods": by_methods,
    "one function": by_one_function,
    "mixed": mixed,
}
