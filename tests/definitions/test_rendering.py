"""Applications are rendered with the versions that were chosen; every mistake has its place."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.definitions.rendered import (
    EXAMPLE,
    Platform,
    application,
    component,
    gotemplate,
    trait,
    uses,
)

from polyver.definitions.rendering import (
    GoTemplates,
    TemplateDocument,
    TemplateInput,
    TemplateOutput,
    render,
)

Object = dict[str, Any]
WEB = component("webservice", {"gotemplate": EXAMPLE}, version="1.2.3")
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"


def config(name: str, **data: str) -> Object:
    made: Object = {"apiVersion": "v1", "kind": "ConfigMap"}
    made["metadata"] = {"name": name, "namespace": "default"}
    return made | ({"data": data} if data else {})


def test_the_example_is_rendered_with_its_default() -> None:
    made = Platform(WEB).objects(uses("backend", "webservice@1.2", {"image": "nginx:1"}))
    assert made == [config("backend", image="nginx:1", size="1")]


def test_all_mistakes_in_parameters_are_told_with_their_places() -> None:
    errors = Platform(WEB).errors(
        uses("a", "webservice", {"image": "x"}),
        uses("b", "webservice", {"size": "big", "colour": "red"}),
        uses("c", "webservice"),
    )
    assert errors == [
        "webservice 1.2.3 has no parameter colour (spec.components[1].properties.colour); "
        "known: image, size",
        "parameter image: Required value (spec.components[1].properties.image)",
        'parameter size: Invalid value: "string": must be of type integer: "string" '
        "(spec.components[1].properties.size)",
        "parameter image: Required value (spec.components[2].properties.image)",
    ]


def test_unknown_properties_are_as_the_schema_says() -> None:
    template = f"{CONFIG % 'x'}data: {{{{ toJson .parameter }}}}\n"
    nested = {"type": "object", "properties": {"a": {"type": "string"}}}
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    platform = Platform(component("web", gotemplate(template, closed=nested, open=anything)))
    made = platform.objects(uses("x", "web", {"open": {"z": "1"}}))
    assert made[0]["data"] == {"open": {"z": "1"}}
    assert platform.errors(uses("x", "web", {"closed": {"z": "1"}})) == [
        "web 1.0.0 has no parameter closed.z (spec.components[0].properties.closed.z); "
        "see the schema of its parameters"
    ]


def test_without_a_schema_all_properties_are_taken() -> None:
    template = f"{CONFIG % 'x'}data: {{any: {{{{ .parameter.any }}}}}}\n"
    platform = Platform(component("web", {"gotemplate": {"template": template}}))
    assert platform.objects(uses("x", "web", {"any": "thing"}))[0]["data"] == {"any": "thing"}


def test_a_template_may_hold_several_documents() -> None:
    template = "\n---\n".join(CONFIG % name for name in ("a", "b")) + "---\n"
    rendered = Platform(component("web", gotemplate(template))).render(
        application(uses("x", "web"))
    )
    assert [each.object for each in rendered.outputs] == [config("a"), config("b")]
    assert [each.main for each in rendered.outputs] == [True, False]


def test_a_document_may_name_its_namespace() -> None:
    template = CONFIG % "a, namespace: elsewhere"
    made = Platform(component("web", gotemplate(template))).objects(uses("x", "web"))
    assert made[0]["metadata"] == {"name": "a", "namespace": "elsewhere"}


def test_a_template_may_render_nothing() -> None:
    switch = trait(
        "extra",
        gotemplate(
            "{{ if .parameter.on }}" + CONFIG % "e" + "{{ end }}",
            on={"type": "boolean", "default": False},
        ),
    )
    off = Platform(WEB, switch).objects(
        uses("x", "webservice", {"image": "i"}, [{"type": "extra"}])
    )
    assert [each["metadata"]["name"] for each in off] == ["x"]


def test_templates_know_their_surroundings() -> None:
    names = ("name", "appName", "namespace", "version", "appRevision", "appRevisionNum")
    lines = "".join(f"  {each}: '{{{{ .context.{each} }}}}'\n" for each in names)
    platform = Platform(component("web", gotemplate(f"{CONFIG % 'x'}data:\n{lines}")))
    made = platform.objects(uses("backend", "web"), app_revision="shop-v3")
    values = ("backend", "shop", "default", "1.0.0", "shop-v3", "3")
    assert made[0]["data"] == dict(zip(names, values, strict=True))


def test_the_context_has_what_the_caller_adds() -> None:
    template = f"{CONFIG % 'x'}data: {{minor: '{{{{ .context.clusterVersion.minor }}}}'}}\n"
    platform = Platform(component("web", gotemplate(template)))
    made = platform.objects(uses("x", "web"), context={"clusterVersion": {"minor": 30}})
    assert made[0]["data"] == {"minor": "30"}


def test_a_trait_sees_what_its_component_made_and_its_own_version() -> None:
    seen = (
        f"{CONFIG % '{{ .context.output.metadata.name }}-t'}data: "
        "{kind: '{{ .context.output.kind }}', version: '{{ .context.version }}'}\n"
    )
    platform = Platform(WEB, trait("label", gotemplate(seen), version="0.2.0"))
    made = platform.render(
        application(uses("a", "webservice", {"image": "i"}, [{"type": "label@0.2"}]))
    )
    assert not made.errors
    output = made.outputs[1]
    assert output.object == config("a-t", kind="ConfigMap", version="0.2.0")
    assert (output.component, output.definition, output.trait) == ("a", "label", True)
    assert output.at == "spec.components[0].traits[0]"


def test_components_come_in_their_order_each_with_its_traits_behind_it() -> None:
    platform = Platform(WEB, trait("extra", gotemplate(CONFIG % "{{ .context.name }}-extra")))
    properties = {"image": "i"}
    made = platform.objects(
        uses("b", "webservice", properties, [{"type": "extra"}]),
        uses("a", "webservice", properties, [{"type": "extra"}]),
    )
    assert [each["metadata"]["name"] for each in made] == ["b", "b-extra", "a", "a-extra"]


def test_the_same_object_from_two_places_is_refused_with_both() -> None:
    platform = Platform(component("web", gotemplate(CONFIG % "same")))
    assert platform.errors(uses("a", "web"), uses("b", "web")) == [
        "ConfigMap default/same is rendered twice (spec.components[1]); "
        "spec.components[0] also renders it; give one of them another name"
    ]


def test_a_kind_in_two_of_its_versions_is_the_same_object() -> None:
    both = [
        f"apiVersion: apps/{each}\nkind: Deployment\nmetadata: {{name: a}}\n"
        for each in ("v1", "v1beta1")
    ]
    platform = Platform(component("web", gotemplate("---\n".join(both))))
    assert "rendered twice" in platform.errors(uses("a", "web"))[0]


@pytest.mark.parametrize(
    ("template", "error"),
    [
        (
            CONFIG % "a" + "---\nkind: ConfigMap\nmetadata: {name: b}\n",
            "document 2 has no apiVersion (spec.components[0], output of web 1.0.0:5, apiVersion)",
        ),
        (
            "apiVersion: v1\nkind: ConfigMap\n",
            "document 1 has no metadata.name "
            "(spec.components[0], output of web 1.0.0:1, metadata.name)",
        ),
        (
            "- a\n",
            "document 1 is not an object (spec.components[0], output of web 1.0.0:1)",
        ),
        (
            "a: 1\na: 2\n",
            'duplicate key "a", first in line 1 (spec.components[0], output of web 1.0.0:2)',
        ),
        (
            "a\nb: {{ .parameter.gone }}\n",
            '.parameter has no entry for key "gone" (spec.components[0], template of '
            "web 1.0.0:2:17, near {{ .parameter.gone }}); known: known",
        ),
    ],
)
def test_what_a_template_renders_wrongly_is_told_with_its_line(template: str, error: str) -> None:
    platform = Platform(component("web", gotemplate(template, known={"type": "string"})))
    assert platform.errors(uses("x", "web", {"known": "k"})) == [error]


def test_a_parameter_that_was_not_given_can_be_asked_for() -> None:
    tag = {"type": "string"}
    asking = CONFIG % "x" + 'data: { {{ if hasKey .parameter "tag" }}a: b{{ end }} }\n'
    assert Platform(component("web", gotemplate(asking, tag=tag))).objects(uses("x", "web")) == [
        config("x") | {"data": {}}
    ]
    printing = CONFIG % "x" + "data: {a: {{ .parameter.tag }} }\n"
    errors = Platform(component("web", gotemplate(printing, tag=tag))).errors(uses("x", "web"))
    assert errors == [
        '.parameter has no entry for key "tag" (spec.components[0], template of web 1.0.0:4:24, '
        'near {{ .parameter.tag }}); tag is not set: test it with `hasKey .parameter "tag"`, '
        "or give it a default"
    ]


def test_a_template_that_renders_too_much_is_refused() -> None:
    endless = "{{ range until 100000 }}{{ range until 100000 }}x{{ end }}{{ end }}"
    errors = Platform(component("web", gotemplate(endless))).errors(uses("x", "web"))
    assert len(errors) == 1
    assert "spec.components[0], template of web 1.0.0:1" in errors[0]


def test_a_broken_template_in_a_revision_is_told() -> None:
    platform = Platform(component("web", gotemplate(CONFIG % "a")))
    revision = platform.revisions["vela-system", "web-v1.0.0"]
    revision["spec"]["componentDefinition"]["spec"]["schematic"] = gotemplate("{{ if }}")
    errors = platform.errors(uses("x", "web"))
    assert "missing value for if (spec.components[0], template of web 1.0.0:1" in errors[0]


def test_a_failed_component_does_not_hide_mistakes_in_its_traits() -> None:
    sees = gotemplate(CONFIG % "{{ .context.output.metadata.name }}", size={"type": "integer"})
    platform = Platform(WEB, trait("sized", sees))
    errors = platform.errors(
        uses("x", "webservice", {}, [{"type": "sized", "properties": {"size": "a"}}]),
        uses("y", "webservice", {}, [{"type": "sized"}]),
    )
    assert errors == [
        "parameter image: Required value (spec.components[0].properties.image)",
        'parameter size: Invalid value: "string": must be of type integer: "string" '
        "(spec.components[0].traits[0].properties.size)",
        "parameter image: Required value (spec.components[1].properties.image)",
    ]


def test_the_definition_is_the_one_that_was_resolved() -> None:
    platform = Platform(component("web", gotemplate(CONFIG % "old"), version="1.0.0"))
    app = application(uses("x", "web@1.0.0"))
    resolutions = platform.resolutions(app)
    newer = Platform(component("web", gotemplate(CONFIG % "new"), version="1.1.0"))
    revisions = platform.revisions | newer.revisions
    made = render(app, resolutions, revisions, {"gotemplate": GoTemplates()})
    assert [each.object["metadata"]["name"] for each in made.outputs] == ["old"]


def test_a_revision_with_another_digest_is_refused() -> None:
    platform = Platform(component("web", gotemplate(CONFIG % "a")))
    app = application(uses("x", "web"))
    resolutions = platform.resolutions(app)
    changed = copy.deepcopy(platform.revisions)
    changed["vela-system", "web-v1.0.0"]["spec"]["digest"] = "sha256:other"
    made = render(app, resolutions, changed, {"gotemplate": GoTemplates()})
    assert "DefinitionRevision vela-system/web-v1.0.0 has the digest sha256:other" in str(
        made.errors[0]
    )


def test_a_revision_that_is_gone_is_told() -> None:
    platform = Platform(component("web", gotemplate(CONFIG % "a")))
    app = application(uses("x", "web"))
    made = render(app, platform.resolutions(app), {}, {"gotemplate": GoTemplates()})
    assert [*map(str, made.errors)] == [
        "there is no DefinitionRevision vela-system/web-v1.0.0 (spec.components[0].type)"
    ]


@pytest.mark.parametrize(
    ("schematic", "error"),
    [
        (
            {"terraform": {"configuration": ""}},
            "web 1.0.0 needs the engine terraform, which is not available "
            "(spec.components[0].type); there are engines for gotemplate",
        ),
        (
            {},
            "web 1.0.0 has no schematic (spec.components[0].type); "
            "it needs one; there are engines for gotemplate",
        ),
        (
            {"cue": {"template": ""}, "gotemplate": {"template": ""}},
            "web 1.0.0 has 2 schematics: cue, gotemplate (spec.components[0].type); "
            "it needs one; there are engines for gotemplate",
        ),
        (
            {"gotemplate": {"template": "", "parameters": {"type": "object", "properties": "x"}}},
            "it is not a schema: json: cannot unmarshal string into Go struct field "
            "JSONSchemaProps.parameter.properties of type map[string]v1.JSONSchemaProps "
            "(spec.components[0], parameters of web 1.0.0)",
        ),
        (
            {"gotemplate": {"template": 3}},
            "schematic.gotemplate.template of web 1.0.0 is not a string (spec.components[0])",
        ),
    ],
)
def test_a_definition_that_nothing_renders_says_so(schematic: Object, error: str) -> None:
    platform = Platform(component("web", gotemplate(CONFIG % "a")))
    revision = platform.revisions["vela-system", "web-v1.0.0"]
    revision["spec"]["componentDefinition"]["spec"]["schematic"] = schematic
    assert platform.errors(uses("x", "web")) == [error]


def test_properties_that_are_no_mapping_are_refused() -> None:
    assert Platform(WEB).errors(uses("x", "webservice", ["image"])) == [
        "properties is not a mapping (spec.components[0].properties)"
    ]


class Fixed:
    """An engine that makes the same, whatever the template."""

    def __init__(self, found: TemplateOutput) -> None:
        self.found = found
        self.given: list[TemplateInput] = []

    def render(self, schematic: Any, given: TemplateInput) -> TemplateOutput:
        del schematic
        self.given.append(given)
        return self.found


def bare(kind: str, **metadata: str) -> Object:
    return {"apiVersion": "v1", "kind": kind} | ({"metadata": metadata} if metadata else {})


def test_an_engine_is_a_plug_in_and_what_it_leaves_out_is_named_after_its_component() -> None:
    own = TemplateOutput(
        TemplateDocument(bare("Pod"), "output"),
        [TemplateDocument(bare("Service"), "outputs.web_In", "web_In")],
    )
    extra = TemplateOutput(
        outputs=[TemplateDocument(bare("Ingress"), "outputs.way", "way")],
        patched={"": bare("Pod", name="other"), "web_In": bare("Service", namespace="far")},
    )
    platform = Platform(
        component("web", {"mine": {}}),
        trait("route", {"theirs": {}}),
        engines={"mine": Fixed(own), "theirs": Fixed(extra)},
    )
    made = platform.objects(uses("x", "web", {}, [{"type": "route"}]))
    assert made == [
        bare("Pod", name="other", namespace="default"),
        bare("Service", namespace="far", name="x-web-in"),
        bare("Ingress", name="x-route-way", namespace="default"),
    ]


def test_an_object_without_a_kind_is_refused_whatever_made_it() -> None:
    engine = Fixed(TemplateOutput(TemplateDocument({"apiVersion": "v1"}, "output")))
    platform = Platform(component("web", {"mine": {}}), engines={"mine": engine})
    assert platform.errors(uses("x", "web")) == [
        "an object without kind was rendered (spec.components[0], output of web 1.0.0)"
    ]


# What does not depend on chance or order.

KEYS = st.text("abc", min_size=1, max_size=2)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("xyz", max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
ECHO = component(
    "echo",
    {"gotemplate": {"template": f"{CONFIG % 'x'}data: {{{{ toJson .parameter }}}}\n"}},
)
PLATFORM = Platform(ECHO, WEB)


def turned(value: Any) -> Any:
    """The same data, all of its keys in another order."""
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in reversed(value)}
    return [turned(each) for each in value] if isinstance(value, list) else value


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_the_order_of_keys_makes_no_difference(properties: Object) -> None:
    before = copy.deepcopy(properties)
    made = PLATFORM.objects(uses("x", "echo", properties))
    assert properties == before
    assert made == PLATFORM.objects(uses("x", "echo", turned(properties)))
    assert made == PLATFORM.objects(uses("x", "echo", properties))


@given(
    st.fixed_dictionaries(
        {"image": st.text(max_size=3) | st.integers()},
        optional={"size": st.integers(-(2**40), 2**40) | st.none() | st.text(max_size=2)},
    )
)
def test_parameters_that_were_filled_in_are_taken_as_they_are(properties: Object) -> None:
    app = application(uses("x", "webservice", properties))
    schema = EXAMPLE["parameters"]["properties"]
    filled = {name: each["default"] for name, each in schema.items() if "default" in each}
    whole = {**filled, **{k: v for k, v in properties.items() if v is not None}}
    again = application(uses("x", "webservice", whole))
    one, other = PLATFORM.render(app), PLATFORM.render(again)
    assert [each.object for each in one.outputs] == [each.object for each in other.outputs]
    assert [*map(str, one.errors)] == [*map(str, other.errors)]
