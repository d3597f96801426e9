"""Templates in KubeVela's form, rendered with the real cue."""

from __future__ import annotations

import json
import re
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.definitions.cue.cue import CUE, needs_cue
from tests.definitions.cue.test_patching import OBJECTS
from tests.definitions.rendered import Platform, application, component, trait, uses

from polyver.core import PolyverError
from polyver.definitions.cue import CueEngine, engines
from polyver.definitions.rendering import TemplateInput

pytestmark = needs_cue
Object = dict[str, Any]
ENGINES = engines(cue=CUE)
SERVER = """\
import "strconv"

output: {
    apiVersion: "apps/v1"
    kind:       "Deployment"
    spec: {
        replicas: 2
        selector: matchLabels: "app.oam.dev/component": context.name
        template: {
            metadata: labels: "app.oam.dev/component": context.name
            spec: containers: [{
                name:  context.name
                image: parameter.image
                if parameter.port != _|_ {
                    ports: [{
                        containerPort: parameter.port
                        name: "p" + strconv.FormatInt(parameter.port, 10)
                    }]
                }
                env: [for k, v in parameter.env {name: k, value: v}]
            }]
        }
    }
}
if parameter.port != _|_ {
    outputs: service: {
        apiVersion: "v1"
        kind:       "Service"
        spec: ports: [{port: parameter.port}]
    }
}
parameter: {
    image: string
    port?: int & >0
    mode:  *"fast" | "slow"
    env: [string]: string
}
"""


def cue(text: str) -> Object:
    return {"cue": {"template": textwrap.dedent(text)}}


def platform(*traits: Object, server: str = SERVER) -> Platform:
    return Platform(component("server", cue(server)), *traits, engines=ENGINES)


def patched(patch: str, properties: Object | None = None, *, server: str = SERVER) -> Object:
    """The deployment of a server with a trait."""
    made = platform(trait("extra", cue(patch)), server=server).objects(
        uses("a", "server", {"image": "i"}, [{"type": "extra", "properties": properties or {}}])
    )
    return made[0]


def refused(patch: str, properties: Object | None = None) -> list[str]:
    return platform(trait("extra", cue(patch))).errors(
        uses("a", "server", {"image": "i"}, [{"type": "extra", "properties": properties or {}}])
    )


def container(obj: Object, place: int = 0) -> Any:
    return obj["spec"]["template"]["spec"]["containers"][place]


def test_output_and_outputs_are_rendered_and_named_after_the_component() -> None:
    made = platform().objects(uses("a", "server", {"image": "i", "port": 80, "env": {"K": "v"}}))
    assert [(each["kind"], each["metadata"]) for each in made] == [
        ("Deployment", {"name": "a", "namespace": "default"}),
        ("Service", {"name": "a-service", "namespace": "default"}),
    ]
    assert container(made[0]) == {
        "name": "a",
        "image": "i",
        "ports": [{"containerPort": 80, "name": "p80"}],
        "env": [{"name": "K", "value": "v"}],
    }


def test_it_is_what_cue_itself_exports() -> None:
    context, parameters = {"name": "a"}, {"image": "i", "port": 8080, "env": {"A": "1", "B": "2"}}
    found = CueEngine(CUE).render(
        {"template": SERVER}, TemplateInput(parameters, context, "at", "server 1")
    )
    text = f"{SERVER}\nparameter: {json.dumps(parameters)}\ncontext: {json.dumps(context)}\n"
    for expression, mine in (
        ("output", found.output and found.output.object),
        ("outputs", {each.name: each.object for each in found.outputs}),
    ):
        assert mine == exported(text, expression)


def exported(text: str, expression: str) -> Any:
    assert CUE is not None
    command = [str(CUE), "export", "-e", expression, "cue:", "-"]
    out = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    return json.loads(out)


def test_mistakes_in_parameters_are_told_with_their_places() -> None:
    errors = platform().errors(
        uses("a", "server", {"port": "x", "mode": "odd", "env": {"A": 1}}), uses("b", "server")
    )
    assert [told(each) for each in errors] == [
        ("parameter env.A", "spec.components[0].properties.env.A"),
        ("parameter mode", "spec.components[0].properties.mode"),
        ("parameter port", "spec.components[0].properties.port"),
        ("parameter image of server 1.0.0 is missing", "spec.components[1].properties.image"),
    ]
    assert "mismatched types int and string" in errors[0]
    assert "no alternative fits: conflicting values" in errors[1]
    assert errors[3].endswith("; it is string")


def told(error: str) -> tuple[str, str]:
    """What an error is about, and its place."""
    found = re.match(r"([\w. ]+).*? \((spec[^()]*)\)", error)
    assert found
    return found[1].strip(), found[2]


@pytest.mark.parametrize(
    ("template", "error"),
    [
        ("output: {", "expected '}', found 'EOF' (spec.components[0], template of server 1.0.0)"),
        (
            "parameter: {}\noutput: {a: context.nope}",
            "output.a: undefined field: nope (spec.components[0], template of server 1.0.0:2)",
        ),
        (
            'import "vela/kube"\noutput: kube.#Apply',
            'builtin package "vela/kube" undefined (spec.components[0], template of '
            "server 1.0.0:1); only packages of the CUE standard library can be imported",
        ),
        ("output: 3", "output of server 1.0.0 is not an object (spec.components[0])"),
        ('errs: ["use another"]', "use another (spec.components[0])"),
        (
            "output: {}\nchecked: true & (len(context.name) > 9)",
            "checked: conflicting values false and true (spec.components[0], "
            "template of server 1.0.0:2)",
        ),
        (
            "processing: http: {}",
            "server 1.0.0 has `processing`, which is not executed (spec.components[0])",
        ),
    ],
)
def test_what_is_wrong_with_a_template_is_told(template: str, error: str) -> None:
    assert platform(server=template).errors(uses("a", "server")) == [error]


@pytest.mark.parametrize(
    "template",
    [
        '@extern(embed)\npackage x\noutput: _ @embed(file="FILE")',
        'import "tool/file"\noutput: data: (file.Read & {filename: "FILE"}).contents',
        "output: data: _ @tag(user,var=username)",
        'import "example.com/x"\noutput: x.y',
    ],
)
def test_a_template_reaches_nothing_outside(template: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"key": "s3cret"}')
    errors = platform(server=template.replace("FILE", str(secret))).errors(uses("a", "server"))
    assert len(errors) == 1
    assert "s3cret" not in errors[0]


def test_a_template_without_end_is_ended() -> None:
    numbers = ", ".join(map(str, range(60)))
    template = f"n: [{numbers}]\noutput: x: [for a in n for b in n for c in n for d in n {{a}}]"
    with pytest.raises(PolyverError, match=r"cannot be rendered: cue (did not finish|needs more)"):
        CueEngine(CUE, seconds=0.5).render(
            {"template": template}, TemplateInput({}, {}, "at", "web 1")
        )


def test_a_trait_may_make_objects_of_its_own() -> None:
    made = platform(
        trait(
            "route",
            cue("""
                outputs: way: {
                    apiVersion: "v1"
                    kind:       "ConfigMap"
                    data: {
                        to:   context.output.spec.template.spec.containers[0].image
                        port: "\\(context.outputs.service.spec.ports[0].port)"
                    }
                }
                """),
        )
    ).render(application(uses("a", "server", {"image": "i", "port": 80}, [{"type": "route"}])))
    assert not made.errors
    assert made.outputs[-1].object == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a-route-way", "namespace": "default"},
        "data": {"to": "i", "port": "80"},
    }


def test_a_patch_adds_what_is_not_there() -> None:
    made = patched(
        "patch: metadata: labels: {for k, v in parameter.labels {(k): v}}\n"
        "parameter: labels: [string]: string",
        {"labels": {"a": "b"}},
    )
    assert made["metadata"] == {"name": "a", "namespace": "default", "labels": {"a": "b"}}


def test_a_patch_may_name_the_object() -> None:
    assert patched('patch: metadata: name: "x-" + context.name')["metadata"]["name"] == "x-a"


def test_a_patch_replaces_what_it_retains_the_keys_of() -> None:
    scale = "patch: spec: {\n// +patchStrategy=retainKeys\nreplicas: parameter.replicas\n}\n"
    assert (
        patched(f"{scale}parameter: replicas: *1 | int", {"replicas": 5})["spec"]["replicas"] == 5
    )
    assert patched(f"{scale}parameter: replicas: *1 | int")["spec"]["replicas"] == 1


def test_a_patch_that_contradicts_the_object_is_refused_by_cue() -> None:
    assert refused("patch: spec: replicas: 5") == [
        "patch.spec.replicas: conflicting values 5 and 2 "
        "(spec.components[0].traits[0], template of extra 1.0.0:1)"
    ]


def test_a_default_in_a_patch_gives_way_to_the_object() -> None:
    assert patched("patch: spec: replicas: *5 | int")["spec"]["replicas"] == 2


def test_items_are_merged_by_their_keys_from_comments_anywhere() -> None:
    made = patched(
        """
        #Env: {
            _more: [string]: string
            // +patchKey=name
            env: [for k, v in _more {name: k, value: v}]
        }
        patch: spec: template: spec: {
            // +patchKey=name
            containers: [{name: context.name, #Env & {_more: A: "1"}}, {name: "side", image: "s"}]
        }
        """
    )
    assert container(made) == {"name": "a", "image": "i", "env": [{"name": "A", "value": "1"}]}
    assert container(made, 1) == {"name": "side", "image": "s"}


def test_an_open_list_says_what_holds_for_every_item() -> None:
    made = patched("patch: spec: template: spec: containers: [...{tty: true}]")
    assert container(made)["tty"] is True
    assert "has 0 of the 1 items" in refused("patch: spec: template: spec: containers: []")[0]


def test_a_patch_may_be_one_of_the_standard_ones() -> None:
    merge = "// +patchStrategy=jsonMergePatch\npatch: spec: {replicas: 7, selector: null}"
    assert patched(merge)["spec"].keys() == {"replicas", "template"}
    steps = (
        "// +patchStrategy=jsonPatch\n"
        'patch: operations: [{op: "replace", path: "/spec/replicas", value: 9}]'
    )
    assert patched(steps)["spec"]["replicas"] == 9
    wrong = steps.replace("/spec/replicas", "/spec/nope").replace("replace", "remove")
    assert "nonexistent key: nope" in refused(wrong)[0]


def test_a_patch_of_outputs_changes_the_objects_beside() -> None:
    kind = cue('patchOutputs: {service: spec: type: "NodePort", other: spec: x: 1}')
    made = platform(trait("open", kind)).objects(
        uses("a", "server", {"image": "i", "port": 80}, [{"type": "open"}])
    )
    assert made[1]["spec"] == {"ports": [{"port": 80}], "type": "NodePort"}


def test_traits_see_what_those_before_them_changed() -> None:
    first = trait("one", cue('patch: metadata: labels: step: "1"'))
    second = trait(
        "two",
        cue(
            'outputs: o: {apiVersion: "v1", kind: "ConfigMap"}\n'
            "outputs: o: data: context.output.metadata.labels"
        ),
    )
    made = platform(first, second).objects(
        uses("a", "server", {"image": "i"}, [{"type": "one"}, {"type": "two"}])
    )
    assert made[-1]["data"] == {"step": "1"}


def test_a_loop_over_a_parameter_that_was_not_given_makes_nothing() -> None:
    loops = """\
        outputs: {
            for v in parameter.maps {(v): {apiVersion: "v1", kind: "ConfigMap"}}
            for v in parameter.more {(v): {apiVersion: "v1", kind: "Secret"}}
        }
        parameter: {maps?: [...string], more?: [...string]}
        """
    made = platform(trait("loops", cue(loops))).objects(
        uses("a", "server", {"image": "i"}, [{"type": "loops", "properties": {"more": ["x"]}}])
    )
    assert [each["kind"] for each in made] == ["Deployment", "Secret"]


def test_a_trait_of_one_engine_changes_a_component_of_another() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: b}\n"
    mixed = Platform(
        component("config", {"gotemplate": {"template": text}}),
        trait("extra", cue('patch: data: c: "d"')),
        engines=ENGINES,
    )
    made = mixed.objects(uses("x", "config", {}, [{"type": "extra"}]))
    assert made[0]["data"] == {"a": "b", "c": "d"}


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4) | st.sampled_from(
    [
        "\\(context.name)",
        '"""',
        '#"',
        "_|_",
        "\x00",
        "\u2028",
        "{{ . }}",
        "\\",
        "__hidden",
        "#D",
        "_h",
    ]
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=16)
NASTY = st.recursive(
    TEXTS | st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.none() | FLOATS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=20,
)


@settings(max_examples=15)
@given(st.dictionaries(TEXTS, NASTY, max_size=5))
def test_parameters_arrive_as_they_were_written(properties: Object) -> None:
    given = TemplateInput(properties, {}, "at", "x 1")
    found = CueEngine(CUE).render({"template": "output: data: parameter"}, given)
    assert found.output is not None
    assert found.output.object["data"] == properties


@settings(max_examples=8)
@given(st.lists(st.tuples(OBJECTS, OBJECTS), min_size=1, max_size=6))
def test_without_strategies_a_patch_is_what_cue_unifies(pairs: list[tuple[Object, Object]]) -> None:
    for base, patch in pairs:
        template = f"patch: {json.dumps(patch)}"
        given = TemplateInput({}, {"output": base}, "at", "extra 1")
        try:
            found = CueEngine(CUE).render({"template": template}, given).patched.get("", base)
        except PolyverError:
            found = None
        assert found == unified(base, patch)


def unified(base: Object, patch: Object) -> Any:
    """What cue makes of both, where the lists of the object may grow."""
    try:
        return exported(f"x: {_open(base)} & {json.dumps(patch)}", "x")
    except subprocess.CalledProcessError:
        return None


def _open(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(k)}: {_open(v)}' for k, v in value.items())}}}"
    if isinstance(value, list):
        return f"[{''.join(f'{_open(each)}, ' for each in value)}...]"
    return json.dumps(value)
