"""Parts of an object with paths of their own, and how a write to one of them changes the whole."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from polyver.objects.kinds import Kind
from polyver.objects.status import Cause, internal, invalid_field
from polyver.server.rules import Object, Rules

__all__ = ["Finalize", "Scale", "Status", "Whole"]

Names = tuple[str, ...]
SCALE = Kind("autoscaling", "v1", "Scale", "scales", "scale", namespaced=True)


@dataclass(frozen=True, slots=True)
class Whole:
    """The object itself; a status that has its own path stays as it is."""

    rules: Rules
    name: str = ""

    def show(self, obj: Object) -> Object:
        return obj

    base = show

    def merge(self, shown: Object, old: Object) -> Object:
        if not self.rules.has_status:
            return shown
        kept = {key: value for key, value in shown.items() if key != "status"}
        return kept | ({"status": old["status"]} if "status" in old else {})

    def prepare(self, obj: Object, old: Object) -> None:
        self.rules.prepare_update(obj, old)

    def check(self, obj: Object, old: Object) -> list[Cause]:
        return self.rules.check_update(obj, old)


@dataclass(frozen=True, slots=True)
class Status:
    """The status alone: neither metadata nor anything else changes here."""

    rules: Rules
    name: str = "status"

    def show(self, obj: Object) -> Object:
        return obj

    base = show

    def merge(self, shown: Object, old: Object) -> Object:
        merged = self.rules.prepare_status(shown, old)
        # The revision that the request was made for is still to be compared.
        given = shown["metadata"]
        names = {key: given[key] for key in ("resourceVersion", "uid") if key in given}
        kept = {key: value for key, value in old["metadata"].items() if key != "resourceVersion"}
        return merged | {"metadata": kept | names}

    def prepare(self, obj: Object, old: Object) -> None:
        """Nothing else changes."""

    def check(self, obj: Object, old: Object) -> list[Cause]:
        return self.rules.check_status(obj, old)


@dataclass(frozen=True, slots=True)
class Finalize:
    """What keeps a namespace, which only its own path may take away."""

    rules: Rules
    name: str = "finalize"

    def show(self, obj: Object) -> Object:
        return obj

    base = show

    def merge(self, shown: Object, old: Object) -> Object:
        spec = {key: value for key, value in old.get("spec", {}).items() if key != "finalizers"}
        finalizers = shown.get("spec", {}).get("finalizers")
        if finalizers:
            spec["finalizers"] = finalizers
        return old | {"spec": spec, "metadata": shown["metadata"]}

    def prepare(self, obj: Object, old: Object) -> None:
        """Nothing else changes."""

    def check(self, obj: Object, old: Object) -> list[Cause]:
        return self.rules.check_update(obj, old)


@dataclass(frozen=True, slots=True)
class Scale:
    """Replicas and their selector, wherever the kind keeps them."""

    rules: Rules
    replicas: Names = ("spec", "replicas")
    status_replicas: Names = ("status", "replicas")
    selector: Names = ()
    name: str = "scale"
    strict: bool = True
    """Whether an object that does not say its replicas has no scale."""

    def show(self, obj: Object) -> Object:
        if self.strict and _dig(obj, self.replicas) is None:
            raise internal(f'the spec replicas field "{_dotted(self.replicas)}" does not exist')
        return self.base(obj)

    def base(self, obj: Object) -> Object:
        found = _dig(obj, self.replicas)
        names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        metadata = {key: obj["metadata"][key] for key in names if key in obj["metadata"]}
        status: Object = {"replicas": _dig(obj, self.status_replicas) or 0}
        selector = _selector(_dig(obj, self.selector)) if self.selector else ""
        if selector:
            status["selector"] = selector
        spec = {"replicas": found} if found else {}
        named = {"apiVersion": SCALE.api_version, "kind": SCALE.kind}
        return named | {"metadata": metadata, "spec": spec, "status": status}

    def merge(self, shown: Object, old: Object) -> Object:
        merged = copy.deepcopy(old)
        _put(merged, self.replicas, shown.get("spec", {}).get("replicas", 0))
        given = shown["metadata"]
        merged["metadata"].pop("resourceVersion", None)
        names = {key: given[key] for key in ("resourceVersion", "uid") if key in given}
        return merged | {"metadata": merged["metadata"] | names}

    def prepare(self, obj: Object, old: Object) -> None:
        self.rules.prepare_update(obj, old)

    def check(self, obj: Object, old: Object) -> list[Cause]:
        causes = self.rules.check_update(obj, old)
        replicas = _dig(obj, self.replicas)
        if isinstance(replicas, int) and replicas < 0:
            text = "should be a non-negative integer"
            causes.append(invalid_field(_dotted(self.replicas), replicas, text))
        return causes


def _dotted(names: Names) -> str:
    return "".join(f".{name}" for name in names)


def _dig(obj: object, names: Names) -> Any:
    for name in names:
        if not isinstance(obj, dict) or name not in obj:
            return None
        obj = obj[name]
    return obj


def _put(obj: Object, names: Names, value: object) -> None:
    for name in names[:-1]:
        obj = obj.setdefault(name, {})
    obj[names[-1]] = value


def _selector(found: object) -> str:
    """A selector as text: custom kinds keep it so, built-in ones as labels."""
    match found:
        case str():
            return found
        case dict():
            labels = found.get("matchLabels", found)
            return ",".join(f"{key}={labels[key]}" for key in sorted(labels))
    return ""
