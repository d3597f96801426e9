"""Versions of a declared kind, connected in each way: what is refused, and that nothing is lost."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.apis.conversions import DRAWN_FIELDS, crontab, drawn_rules, objects
from tests.apis.forms import (
    FORMS,
    GROUP,
    V1,
    V2,
    V3,
    HasMethods,
    HasMethodsThatReturn,
    Spec1,
    Spec2,
    by_functions,
    by_methods,
    by_one_function,
    by_rules,
    by_typed_functions,
    declared,
    down_2_1,
    mixed,
    rules_1_2,
    rules_2_3,
    up_1_2,
)
from tests.apis.test_conversion_law import check_law, whole
from tests.declared import kinds

from polyver import apis
from polyver.apis.conversion import ANNOTATION, Converter, FunctionEdge, RuleBlock, Rules
from polyver.testing.strategies import objects_from_schema

Object = dict[str, Any]
BOUNDED = settings(
    max_examples=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
CONVERTERS = {name: form() for name, form in FORMS.items()}
each_form = pytest.mark.parametrize("form", FORMS)


def converted(form: str, obj: Object, *versions: str) -> Object:
    known = CONVERTERS[form].converter
    assert known is not None
    for version in versions:
        obj = known.convert(obj, version)
    return obj


def objects_of(kind: apis.Kind, version: str) -> st.SearchStrategy[Object]:
    found = kind.definition().version(version)
    assert found is not None
    assert found.schema is not None
    return objects_from_schema(found.schema, api_version=f"{kind.group}/{version}", kind=kind.kind)


def refused(kind: apis.Kind) -> str:
    with pytest.raises(apis.InvalidKind) as caught:
        kind.definition()
    return str(caught.value)


# The four forms


@each_form
def test_each_form_converts_both_ways(form: str) -> None:
    old = crontab("v1", cronSpec="@daily", image="a")
    new = crontab("v3", schedule="@daily", template={"images": ["a"]})
    assert converted(form, old, "v3") == new
    assert converted(form, new, "v1") == old


@each_form
@given(data=st.data())
@BOUNDED
def test_each_form_obeys_the_law(form: str, data: st.DataObject) -> None:
    kind = CONVERTERS[form]
    assert kind.converter is not None
    first, stop, target = (data.draw(st.sampled_from(kind.converter.versions)) for _ in range(3))
    check_law(kind.converter, data.draw(objects_of(kind, first)), stop, target)


@given(kinds(), st.data())
@BOUNDED
def test_the_law_holds_for_whatever_is_declared(kind: apis.Kind, data: st.DataObject) -> None:
    if kind.converter is not None:
        first, stop, target = (data.draw(st.sampled_from([*kind.versions])) for _ in range(3))
        check_law(kind.converter, data.draw(objects_of(kind, first)), stop, target)


def as_functions(source: str, target: str, block: RuleBlock) -> FunctionEdge:
    """Rules that nobody knows to be rules: functions that lose this and that."""
    return FunctionEdge(
        source,
        target,
        lambda obj: block.run(obj, back=False),
        lambda obj: block.run(obj, back=True),
    )


@given(drawn_rules(), drawn_rules(), objects(DRAWN_FIELDS), st.data())
@BOUNDED
def test_the_law_holds_for_functions_that_lose_anything(
    one: Rules, two: Rules, obj: Object, data: st.DataObject
) -> None:
    edges = [as_functions("v1", "v2", one.block()), as_functions("v2", "v3", two.block())]
    known = Converter(GROUP, "CronTab", ["v1", "v2", "v3"], edges)
    first, stop, target = (data.draw(st.sampled_from(known.versions)) for _ in range(3))
    check_law(known, whole(obj, first, known), stop, target)


@each_form
def test_what_a_version_cannot_express_is_carried(form: str) -> None:
    old = crontab("v1", cronSpec="@daily", image="a", note="mine")
    new = converted(form, old, "v3")
    assert "note" not in new["spec"]
    assert ANNOTATION in new["metadata"]["annotations"]
    assert converted(form, new, "v1") == old
    assert converted(form, new, "v2", "v3", "v1") == old


@each_form
def test_an_edit_elsewhere_does_not_undo_what_is_carried(form: str) -> None:
    new = converted(form, crontab("v1", cronSpec="@daily", image="a", note="mine"), "v2")
    new["spec"]["schedule"] = "@hourly"
    expected = crontab("v1", cronSpec="@hourly", image="a", note="mine")
    assert converted(form, new, "v1") == expected


@each_form
def test_an_edit_at_its_place_makes_what_is_carried_stale(form: str) -> None:
    """v1 has room for one image: the others are carried, until somebody sees to that one."""
    old = converted(form, crontab("v2", schedule="@daily", images=["a", "b"]), "v1")
    assert old["spec"] == {"cronSpec": "@daily", "image": "a"}
    old["spec"]["cronSpec"] = "@hourly"
    assert converted(form, old, "v2")["spec"]["images"] == ["a", "b"]
    del old["spec"]["image"]
    new = converted(form, old, "v2")
    assert "images" not in new["spec"]
    assert ANNOTATION not in new["metadata"].get("annotations", {})


@pytest.mark.parametrize("form", ["functions", "typed functions", "methods", "one function"])
def test_what_functions_lost_of_a_value_goes_when_the_value_is_edited(form: str) -> None:
    old = converted(form, crontab("v2", schedule="@daily", images=["a", "b"]), "v1")
    old["spec"]["image"] = "c"
    assert converted(form, old, "v2")["spec"]["images"] == ["c"]


@each_form
@pytest.mark.parametrize(
    "rest",
    [
        {},
        {"metadata": {}},
        {"metadata": {"name": "a", "labels": {"b": "c"}}},
        {"metadata": {"name": "a"}, "status": {"ready": 1}},
        {"metadata": {"name": "a"}, "spec": {}},
        {"metadata": {"name": "a", "annotations": {}}, "spec": {}, "status": {}},
    ],
)
def test_partial_objects_convert(form: str, rest: Object) -> None:
    """API servers send them: who applied only some fields, has an object of those alone."""
    known = CONVERTERS[form].converter
    assert known is not None
    for first in known.versions:
        obj = {"apiVersion": f"{GROUP}/{first}", "kind": "CronTab", **rest}
        for version in known.versions:
            assert converted(form, obj, version, first) == obj
            assert converted(form, obj, version).keys() - {"spec"} == obj.keys() - {"spec"}
    if "spec" not in rest:
        obj = {"apiVersion": f"{GROUP}/v1", "kind": "CronTab", **rest}
        assert converted(form, obj, "v3") == {**obj, "apiVersion": f"{GROUP}/v3"}


def test_forms_mix_in_one_tree() -> None:
    known = mixed().converter
    assert known is not None
    assert {*map(str, known.tree.edges)} == {"v1 ⇄ v2", "v2 ⇄ v3", "v3 ⇄ v4", "v2 ⇄ v5"}
    old = crontab("v1", cronSpec="@daily", image="a", note="mine")
    new = known.convert(old, "v4")
    assert new["spec"] == {"schedule": "@daily", "template": {"images": ["a"]}}
    new["spec"]["count"] = 3
    back = known.convert(new, "v5")
    assert back["spec"] == {"schedule": "@daily", "images": ["a"], "replicas": 3}
    assert known.convert(back, "v1")["spec"] == old["spec"]


def test_one_function_connects_what_other_edges_leave_apart() -> None:
    kind = declared()
    kind.version("v4")(V3)
    kind.edge("v3", "v4")(lambda _: None)
    kind.convert(lambda obj, version: obj)
    assert kind.converter is not None
    assert {*map(str, kind.converter.tree.edges)} == {"v3 ⇄ v4", "v2 ⇄ v1", "v2 ⇄ v4"}


def test_versions_that_differ_in_name_only_need_no_edges() -> None:
    kind = apis.Kind("CronTab", group=GROUP, strategy="None")
    kind.version("v1", storage=True)(V1)
    kind.version("v2")(V1)
    assert kind.converter is not None
    old = crontab("v1", cronSpec="@daily")
    assert kind.converter.convert(old, "v2") == {**old, "apiVersion": f"{GROUP}/v2"}


def test_a_kind_with_one_version_needs_no_edges() -> None:
    kind = apis.Kind("CronTab", group=GROUP)
    kind.version("v1")(V1)
    assert kind.converter is None


def test_a_kind_that_is_written_elsewhere_can_be_connected() -> None:
    written = apis.crd_of(by_rules().definition())
    [kind] = apis.read_kinds(str(written).replace("True", "true").replace("False", "false"))
    assert kind.definition().strategy == "None"
    kind.edge("v1", "v2")(rules_1_2)
    kind.converts("v2", "v3")(lambda obj: obj)
    kind.converts("v3", "v2")(lambda obj: obj)
    assert kind.converter is not None
    assert kind.converter.convert(crontab("v1", cronSpec="a"), "v3")["spec"] == {"schedule": "a"}


def test_an_edge_that_is_added_later_counts() -> None:
    kind = declared()
    kind.edge("v1", "v2")(rules_1_2)
    assert "no edge leads to v3" in refused(kind)
    kind.edge("v2", "v3")(rules_2_3)
    assert kind.converter is not None


# What users' functions get, and what they may not do


def test_a_function_gets_the_whole_object_and_may_change_it() -> None:
    seen: list[Object] = []
    kind = declared()

    def up(obj: Object) -> Object:
        seen.append(copy.deepcopy(obj))
        obj["spec"].clear()
        return obj

    kind.converts("v1", "v2")(up)
    kind.converts("v2", "v1")(lambda obj: obj)
    kind.edge("v2", "v3")(lambda _: None)
    old = crontab("v1", cronSpec="@daily")
    before = copy.deepcopy(old)
    assert kind.converter is not None
    made = kind.converter.convert(old, "v2")
    assert seen[0] == before == old
    assert kind.converter.convert(made, "v1") == old


def test_one_function_is_told_the_version() -> None:
    told: list[tuple[str, str]] = []
    kind = declared()

    @kind.convert
    def convert(obj: Object, version: str) -> Object:
        told.append((obj["apiVersion"], version))
        return obj

    assert kind.converter is not None
    kind.converter.convert(crontab("v1"), "v2")
    assert told[0] == (f"{GROUP}/v1", "v2")
    assert {*told} == {(f"{GROUP}/v1", "v2"), (f"{GROUP}/v2", "v1")}


def meddling(change: Callable[[Object], object]) -> apis.Kind:
    """A kind with a function that changes what it should not."""
    kind = declared()

    def up(obj: Object) -> Object:
        change(obj)
        return obj

    kind.converts("v1", "v2")(up)
    kind.converts("v2", "v1")(lambda obj: obj)
    kind.edge("v2", "v3")(lambda _: None)
    return kind


@pytest.mark.parametrize(
    "change",
    [
        lambda obj: obj.update(apiVersion="ex.io/v9"),
        lambda obj: obj.update(kind="Other"),
        lambda obj: obj["metadata"].update(name="b", uid="c", finalizers=["d"]),
        lambda obj: obj["metadata"].pop("name"),
        lambda obj: obj.pop("metadata"),
        lambda obj: obj.update(metadata=None),
    ],
)
def test_of_metadata_only_labels_and_annotations_get_through(
    change: Callable[[Object], object],
) -> None:
    known = meddling(change).converter
    assert known is not None
    old = crontab("v1", cronSpec="a")
    assert known.convert(old, "v2")["metadata"]["name"] == "a"
    made = known.convert(old, "v2")
    assert (made["apiVersion"], made["kind"]) == (f"{GROUP}/v2", "CronTab")
    assert made["metadata"].keys() <= {"name", "annotations"}
    assert known.convert(made, "v1") == old


def test_labels_and_annotations_of_functions_get_through() -> None:
    known = meddling(lambda obj: obj["metadata"].update(labels={"a": "b"})).converter
    assert known is not None
    old = crontab("v1", cronSpec="a")
    made = known.convert(old, "v2")
    assert made["metadata"]["labels"] == {"a": "b"}
    assert known.convert(made, "v1") == old


def test_what_a_function_raises_is_raised() -> None:
    def broken(_: Object) -> Object:
        raise KeyError("spec")

    for kind in (meddling(broken), declared()):
        kind.convert(lambda obj, version: broken(obj))
        assert kind.converter is not None
        with pytest.raises(KeyError, match="spec"):
            kind.converter.convert(crontab("v1", cronSpec="a"), "v2")


def test_what_a_method_raises_is_raised() -> None:
    class Broken(V1):
        def convert_to(self, hub: V2) -> None:
            raise ValueError("unsupported type")

        def convert_from(self, hub: V2) -> None:
            pass

    kind = declared(Broken)
    kind.edge("v2", "v3")(lambda _: None)
    assert kind.converter is not None
    with pytest.raises(ValueError, match="unsupported type"):
        kind.converter.convert(crontab("v1", cronSpec="a"), "v2")


@pytest.mark.parametrize(
    ("returned", "what"),
    [(None, "None"), ([1], "an object of list"), (Spec1(), "an object of Spec1")],
)
def test_a_function_that_returns_something_else_is_told(returned: object, what: str) -> None:
    kind = declared()

    @kind.converts("v1", "v2")
    def up(_: Object) -> Any:
        return returned

    kind.converts("v2", "v1")(down_2_1)
    kind.edge("v2", "v3")(rules_2_3)
    assert kind.converter is not None
    with pytest.raises(TypeError) as caught:
        kind.converter.convert(crontab("v1", cronSpec="a"), "v2")
    assert str(caught.value) == f"up returned {what}, not an object of stable.example.com/v2"


def test_an_object_that_a_class_cannot_hold_is_told() -> None:
    known = by_typed_functions().converter
    assert known is not None
    with pytest.raises(apis.NotAsDeclared) as caught:
        known.convert(crontab("v1", cronSpec=5), "v2")
    assert str(caught.value).startswith('CronTab "a": ')
    assert caught.value.at == "spec.cronSpec"


@pytest.mark.parametrize(
    ("obj", "version", "says"),
    [
        (crontab("v9"), "v1", "CronTab of stable.example.com has no version v9; known: v3, v2, v1"),
        (crontab("v1"), "v9", "CronTab of stable.example.com has no version v9; known: v3, v2, v1"),
        (
            {**crontab("v1"), "kind": "Other"},
            "v2",
            "Other of stable.example.com/v1 is not a CronTab of stable.example.com (apiVersion)",
        ),
        (
            {**crontab("v1"), "apiVersion": "ex.io/v1"},
            "v2",
            "CronTab of ex.io/v1 is not a CronTab of stable.example.com (apiVersion)",
        ),
        ({"spec": {}}, "v2", "None of None is not a CronTab of stable.example.com (apiVersion)"),
    ],
)
def test_an_object_of_no_known_version_is_refused(obj: Object, version: str, says: str) -> None:
    with pytest.raises(apis.NotConvertible) as caught:
        converted("rules", obj, version)
    assert str(caught.value) == says


# What the seeds have: kubebuilder's Hub and Convertible


def test_kubebuilder_hub_to_spoke_spoke_to_hub_and_spoke_to_spoke() -> None:
    known = by_methods().converter
    assert known is not None
    assert known.tree.hub == "v2"
    hub = crontab("v2", schedule="@daily", images=["a"])
    spokes: list[tuple[str, Object]] = [
        ("v1", {"cronSpec": "@daily", "image": "a"}),
        ("v3", {"schedule": "@daily", "template": {"images": ["a"]}}),
    ]
    for spoke, spec in spokes:
        assert known.convert(hub, spoke)["spec"] == spec
        assert known.convert(crontab(spoke, **spec), "v2") == hub
    assert [hop.target for hop in known.tree.way("v1", "v3")] == ["v2", "v3"]
    assert known.convert(crontab("v1", cronSpec="@daily"), "v3")["spec"] == {
        "schedule": "@daily",
        "template": {},
    }


def test_kubebuilder_the_same_version_is_returned_as_it_is() -> None:
    obj = crontab("v2", schedule=5, whatever=None)
    assert converted("methods", obj, "v2") == obj


def test_kubebuilder_a_spoke_that_is_not_convertible_is_refused_at_startup() -> None:
    kind = declared(HasMethods)
    assert refused(kind).startswith("CronTab cannot be converted: no edge leads to v3 from v2 (")


def test_kubebuilder_several_versions_without_a_hub_are_refused() -> None:
    """In kinds that we declare: those of others may have a hub elsewhere."""
    assert refused(declared()).startswith(
        "CronTab has several versions, v3, v2, v1, but no conversion between them ("
    )
    kind = apis.Kind("CronTab", group=GROUP)
    kind.version("v1")(V1)
    kind.version("v2")(V2)
    kind.edge("v1", "v2")(rules_1_2)
    assert refused(kind).startswith("CronTab has no storage version among v1 (V1), v2 (V2) (")


def test_kubebuilder_two_hubs_are_refused() -> None:
    kind = apis.Kind("CronTab", group=GROUP)
    kind.version("v1", hub=True, storage=True)(V1)
    kind.version("v2", hub=True)(V2)
    kind.edge("v1", "v2")(rules_1_2)
    assert refused(kind).startswith("CronTab has two hubs, v1 (V1), v2 (V2) (")


def test_kubebuilder_the_hub_need_not_be_what_is_stored() -> None:
    kind = apis.Kind("CronTab", group=GROUP)
    kind.version("v1", storage=True)(HasMethods)
    kind.version("v2", hub=True)(V2)
    assert kind.converter is not None
    assert kind.converter.convert(crontab("v1", cronSpec="a"), "v2")["spec"] == {"schedule": "a"}


def test_kubebuilder_methods_on_the_hub_are_refused() -> None:
    class Hub(V2):
        def convert_to(self, hub: V2) -> None: ...
        def convert_from(self, hub: V2) -> None: ...

    says = refused(declared(HasMethods, Hub, HasMethodsThatReturn))
    assert says.startswith("Hub is the hub, and needs no conversion methods (")
    assert says.endswith("; define convert_to and convert_from on the other versions")


def test_kubebuilder_a_spoke_with_one_of_the_methods_is_refused() -> None:
    class There(V1):
        def convert_to(self, hub: V2) -> None: ...

    class Back(V1):
        def convert_from(self, hub: V2) -> None: ...

    assert refused(declared(There)).startswith("There has no convert_from, so conversion has only")
    assert refused(declared(Back)).startswith(
        "Back has no convert_to, so conversion has only one direction ("
    )


def test_kubebuilder_methods_of_another_version_are_not_inherited() -> None:
    kind = apis.Kind("CronTab", group=GROUP)

    @kind.version("v1")
    class One(HasMethods):
        pass

    @kind.version("v2", storage=True)
    class Two(One):
        spec: Spec2  # type: ignore[assignment]

    assert kind.converter is not None
    old = crontab("v1", cronSpec="a", note="mine")
    assert kind.converter.convert(old, "v2")["spec"] == {"schedule": "a"}


# What the seeds have: Knative's Convertible, ConversionMapping, MakeConvertFunction and Validate


def test_knative_convertible_is_one_function_for_a_kind() -> None:
    known = by_one_function().converter
    assert known is not None
    specs: dict[str, Object] = {
        "v1": {"cronSpec": "@daily", "image": "a"},
        "v2": {"schedule": "@daily", "images": ["a"]},
        "v3": {"schedule": "@daily", "template": {"images": ["a"]}},
    }
    for version, spec in specs.items():
        for target in known.versions:
            there = known.convert(crontab(version, **spec), target)
            assert known.convert(there, version) == crontab(version, **spec)


def test_knative_make_convert_function_walks_through_neighbours() -> None:
    known = by_functions().converter
    assert known is not None
    for source, target, walked in [
        ("v1", "v3", ["v2", "v3"]),
        ("v3", "v1", ["v2", "v1"]),
        ("v1", "v2", ["v2"]),
        ("v2", "v2", []),
    ]:
        assert [hop.target for hop in known.tree.way(source, target)] == walked


def test_knative_validate_every_version_is_reached_from_every_other() -> None:
    """Served or not: what is stored may be in any."""
    kind = declared()
    kind.version("v4", served=False)(V3)
    kind.version("v1beta1")(V1)
    kind.edge("v1", "v2")(rules_1_2)
    kind.edge("v3", "v4")(lambda _: None)
    says = "CronTab cannot be converted: no edge leads to v4, v3, v1beta1 from v2 ("
    assert refused(kind).startswith(says)


def test_knative_validate_a_mapping_needs_one_back() -> None:
    kind = declared()
    kind.converts("v1", "v2")(up_1_2)
    assert refused(kind) == (
        'up_1_2 converts v1 to v2, but no function converts back; write @….converts("v2", "v1")'
    )


def test_knative_validate_a_mapping_is_there_once() -> None:
    kind = by_functions()
    with pytest.raises(apis.InvalidKind) as caught:
        kind.converts("v1", "v2")(down_2_1)
    assert str(caught.value) == "v1 to v2 is already converted by up_1_2 (down_2_1)"
    whole = by_one_function()
    with pytest.raises(apis.InvalidKind) as caught:
        whole.convert(down_2_1)
    assert str(caught.value) == "all versions are already converted by convert (down_2_1)"


# What else is refused when a kind is complete


def test_a_doubled_edge_is_refused() -> None:
    kind = by_rules()
    kind.edge("v2", "v1")(lambda _: None)
    assert refused(kind).startswith("CronTab cannot be converted: v1 ⇄ v2 has two edges (")
    both = declared(HasMethods)
    both.edge("v1", "v2")(rules_1_2)
    both.edge("v2", "v3")(rules_2_3)
    assert refused(both).startswith("CronTab cannot be converted: v1 ⇄ v2 has two edges (")


def test_an_edge_to_a_version_that_is_not_declared_is_refused() -> None:
    kind = by_rules()
    kind.edge("v3", "v9")(lambda _: None)
    assert "the edge v3 ⇄ v9 names v9, which is not declared" in refused(kind)


def test_a_cycle_is_refused() -> None:
    kind = by_rules()
    kind.edge("v1", "v3")(lambda _: None)
    assert "the edge v1 ⇄ v3 closes a cycle: a conversion path exists already" in refused(kind)


def test_an_edge_to_itself_is_refused() -> None:
    kind = by_rules()
    kind.edge("v1", "v1")(lambda _: None)
    assert "an edge leads from v1 to itself" in refused(kind)


def test_edges_beside_the_strategy_none_are_refused() -> None:
    kind = apis.Kind("CronTab", group=GROUP, strategy="None")
    kind.version("v1", storage=True)(V1)
    kind.version("v2")(V1)
    kind.edge("v1", "v2")(lambda _: None)
    says = refused(kind)
    assert says.startswith('CronTab has strategy="None", but also conversions (')
    assert says.endswith("; remove one of them")


def test_a_function_that_takes_the_class_of_another_version_is_refused() -> None:
    kind = apis.Kind("CronTab", group=GROUP)

    @kind.version("v1", storage=True)
    class One(V1):
        pass

    @kind.version("v2")
    class Two(V2):
        pass

    @kind.converts("v1", "v2")
    def up(old: Two) -> Two:
        return old

    kind.converts("v2", "v1")(down_2_1)
    assert refused(kind) == (
        "up converts v1 to v2, and takes Two; use the class of that version, or dict, as its type"
    )


def test_a_function_that_takes_more_than_the_object_is_refused() -> None:
    with pytest.raises(apis.InvalidKind, match=r"^<lambda> must take the object$"):
        declared().converts("v1", "v2")(lambda obj, version: obj)


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (
            lambda e: e.move("spec", ""),
            "'' is not the path of a field (v1 to v2, <lambda>); write it as",
        ),
        (
            lambda e: e.scale("spec.a", "spec.b", 0),
            "scale by 0 cannot be converted back (v1 to v2, <la",
        ),
        (lambda e: e.drop("metadata.name"), "metadata.name cannot be converted: of metadata, o"),
        (
            lambda e: e.each("spec.a").move("a..b", "c"),
            "'a..b' is not the path of a field (v1 to v2, <lambd",
        ),
        (
            lambda e: (e.drop("spec.a"), e.move("spec.a", "spec.b")),
            "rule 1 (drop) reads spec.a already (v1 to v2, <lambda>); name each field in one rule",
        ),
    ],
)
def test_an_error_in_rules_names_the_edge_and_the_function(
    write: Callable[[apis.Rules], Any], says: str
) -> None:
    with pytest.raises(apis.InvalidKind) as caught:
        declared().edge("v1", "v2")(write)
    assert str(caught.value).startswith(says)
