"""`polyver render`: what a composite resource becomes, from files alone."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.app.test_cli import POLYVER, Ran
from tests.compositions.calls.serving import V1, Context, serving
from tests.compositions.runtimes.support import function_folder
from tests.deadlines import HANG
from tests.walks.support import eventually

from polyver.compositions.calls.protocol import decode_request, encode_response
from polyver.compositions.messages import (
    Condition,
    Ready,
    Request,
    Requirements,
    Resource,
    ResourceSelector,
    Response,
    Result,
    SchemaSelector,
    Severity,
    State,
    Status,
)
from polyver.kube.objects import dump_yaml, load_manifests

Object = dict[str, Any]
Function = Callable[[Request], Response | Awaitable[Response]]

XR = """
apiVersion: shop.example/v1
kind: Cart
metadata: {name: mine}
spec: {size: 3}
"""
COMPOSITION = """
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: cart, labels: {channel: stable}}
spec:
  compositeTypeRef: {apiVersion: shop.example/v1, kind: Cart}
  mode: Pipeline
  pipeline:
  - step: run
    functionRef: {name: resize}
"""
FUNCTION = """
apiVersion: pkg.crossplane.io/v1
kind: Function
metadata:
  name: resize
  annotations:
    render.crossplane.io/runtime: Development
    render.crossplane.io/runtime-development-target: ADDRESS
spec: {package: registry.example/resize:v1}
"""
ITEM = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"b": "2", "a": "1"}}


@contextmanager
def served(function: Function) -> Iterator[str]:
    """The address of a function that is there while the body runs."""
    started, ending = threading.Event(), asyncio.Event()
    found: list[Any] = []

    async def answer(content: bytes, context: Context) -> bytes:
        del context
        found = function(decode_request(content))
        return encode_response(found if isinstance(found, Response) else await found)

    async def serve() -> None:
        async with serving({V1: answer}, shown=None) as address:
            found.extend((address, asyncio.get_running_loop()))
            started.set()
            await ending.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert started.wait(HANG)
        yield found[0]
    finally:
        found[1].call_soon_threadsafe(ending.set)
        thread.join(HANG)


def composing(request: Request) -> Response:
    """Two resources, the second of which is ready."""
    items = {
        "z": Resource(ITEM),
        "b": Resource({**ITEM, "metadata": {"name": "given"}}, ready=Ready.TRUE),
    }
    return Response(
        desired=State(
            Resource({"status": {"seen": request.observed.composite.resource["spec"]}}), items
        ),
        context=request.context,
        results=(Result(Severity.WARNING, "mind the gap"), Result(Severity.NORMAL, "fine", "Ok")),
        conditions=(Condition("Sized", Status.TRUE, "Fits"), Condition("Ready", Status.TRUE, "No")),
    )


class Files:
    """A folder with files, and what comes of rendering them."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys
        self.write(xr=XR, composition=COMPOSITION, functions=FUNCTION)

    def write(self, **texts: str) -> None:
        for name, text in texts.items():
            (self.folder / f"{name}.yaml").write_text(text)

    def at(self, address: str) -> None:
        self.write(functions=FUNCTION.replace("ADDRESS", address))

    def render(self, *options: str) -> Ran:
        return Ran(self._capsys, *self.arguments, *options)

    @property
    def arguments(self) -> list[str]:
        data = str(self.folder / "data")
        return ["render", "xr.yaml", "composition.yaml", "functions.yaml", "--data", data]

    def objects(self, *options: str) -> list[Object]:
        done = self.render(*options)
        assert done.code == 0, done.err
        return [each.value for each in load_manifests(done.out, "out")]  # type: ignore[misc]


@pytest.fixture
def files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Files:
    monkeypatch.chdir(tmp_path)
    return Files(tmp_path, capsys)


def test_the_composite_resource_comes_first_and_then_what_it_is_composed_of(files: Files) -> None:
    with served(composing) as address:
        files.at(address)
        xr, *composed = files.objects()
        shown = json.loads(files.render("-o", "json").out)["items"]
    assert shown == [xr, *composed]
    assert xr["metadata"] == {"name": "mine"}
    assert "spec" not in xr
    assert xr["status"]["seen"] == {"size": 3}
    told = [(each["type"], each["status"]) for each in xr["status"]["conditions"]]
    assert told == [("Ready", "False"), ("Sized", "True")]
    [step] = xr["status"]["pipeline"]
    assert step["function"] == "resize"
    assert step["digest"] == "registry.example/resize:v1"
    assert [each["metadata"].get("name") for each in composed] == ["given", None]
    assert composed[1]["metadata"]["generateName"] == "mine-"
    assert [*composed[1]["data"]] == ["a", "b"]
    [owner] = composed[1]["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Cart", "mine", True)
    assert not (files.folder / "data").exists()


def test_results_context_and_the_whole_composite_resource_are_printed_on_request(
    files: Files,
) -> None:
    files.write(seen='{"deep": [1, 2]}')
    context = ("--context-files", "kept=seen.yaml", "--context-values", 'said="hello"')
    with served(composing) as address:
        files.at(address)
        found = files.objects("-r", "-x", "-c", *context)
    assert found[0]["spec"] == {"size": 3}
    assert [each["kind"] for each in found[3:]] == ["Result", "Result", "Context"]
    assert (found[3]["severity"], found[3]["message"]) == ("SEVERITY_WARNING", "mind the gap")
    assert (found[4]["step"], found[4]["reason"]) == ("run", "Ok")
    assert found[5]["fields"] == {"kept": {"deep": [1, 2]}, "said": "hello"}


def test_what_a_server_knows_already_keeps_its_name(files: Files) -> None:
    note = {"crossplane.io/composition-resource-name": "z"}
    owner = {"apiVersion": "shop.example/v1", "kind": "Cart", "name": "mine", "uid": "7d3a"}
    names = {"name": "mine-abcde", "namespace": "shop", "annotations": note}
    there = {**ITEM, "metadata": {**names, "ownerReferences": [{**owner, "controller": True}]}}
    gone = {**ITEM, "metadata": {"name": "old", "annotations": dict.fromkeys(note, "old")}}
    files.write(observed="---\n".join(map(dump_yaml, (there, gone))))
    seen: list[set[str]] = []

    def function(request: Request) -> Response:
        seen.append({*request.observed.resources})
        return composing(request)

    with served(function) as address:
        files.at(address)
        done = files.render("--observed-resources", "observed.yaml")
    assert seen == [{"z", "old"}]
    assert "name: mine-abcde" in done.out
    assert "ConfigMap old would be deleted" in done.err


# As published examples of functions have them, which Crossplane's command renders.
OBSERVED = """
apiVersion: v1
kind: ConfigMap
metadata:
  annotations: {crossplane.io/composition-resource-name: z}
  generateName: mine-
  ownerReferences:
  - {apiVersion: shop.example/v1, kind: Cart, name: mine, uid: '', controller: true}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: nowhere}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: first
  annotations: {crossplane.io/composition-resource-name: twice}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: second
  annotations: {crossplane.io/composition-resource-name: twice}
  ownerReferences: [{apiVersion: v1, kind: Node, name: north, uid: u, controller: true}]
"""


def test_observed_resources_are_taken_as_crossplane_takes_them(files: Files) -> None:
    files.write(observed=OBSERVED)
    seen: dict[str, Any] = {}

    def function(request: Request) -> Response:
        for name, each in request.observed.resources.items():
            seen[name] = each.resource["metadata"].get("name")
        return composing(request)

    with served(function) as address:
        files.at(address)
        done = files.render("--observed-resources", "observed.yaml")
    assert done.code == 0, done.err
    assert seen == {"z": None, "": "nowhere", "twice": "second"}
    *_, last = [each.value for each in load_manifests(done.out, "out")]
    assert isinstance(last, dict)
    assert last["metadata"]["generateName"] == "mine-"
    assert "name" not in last["metadata"]
    assert "ConfigMap nowhere has no name in the pipeline" in done.err
    assert '"twice" is ConfigMap first and ConfigMap second' in done.err
    assert "ConfigMap nowhere would be deleted" in done.err
    assert "without a name would be deleted" not in done.err
    assert "ConfigMap second belongs to Node north" in done.err


def test_an_object_that_is_composed_twice_is_printed_twice_and_warned_about(files: Files) -> None:
    def function(request: Request) -> Response:
        item = {**ITEM, "metadata": {"name": "same"}}
        items = {name: Resource(item) for name in ("one", "two")}
        return Response(desired=State(resources=items), context=request.context)

    with served(function) as address:
        files.at(address)
        done = files.render()
    assert done.code == 0, done.err
    assert done.out.count("name: same") == 2
    assert '"two" is the same object as "one": ConfigMap same' in done.err


def test_required_resources_may_have_no_name_and_be_there_twice(files: Files) -> None:
    item = {**ITEM, "metadata": {"labels": {"in": "stock"}}}
    nothing = {"apiVersion": "v1", "kind": "ConfigMap"}
    files.write(required="---\n".join(map(dump_yaml, (item, item, nothing))))
    wanted = ResourceSelector("v1", "ConfigMap", match_labels={"in": "stock"})

    def function(request: Request) -> Response:
        found = [each.resource for each in request.required_resources.get("all", ())]
        return Response(
            requirements=Requirements(resources={"all": wanted}), context={"found": len(found)}
        )

    with served(function) as address:
        files.at(address)
        paths = ("--required-resources", "required.yaml", "--extra-resources", "required.yaml")
        *_, context = files.objects(*paths, "-c")
    assert context["fields"] == {"found": 4}


def test_names_are_those_of_the_controller_if_there_is_a_uid(files: Files) -> None:
    files.write(xr=XR.replace("name: mine", "name: mine, namespace: shop, uid: 7d3a"))
    with served(composing) as address:
        files.at(address)
        _, _, last = files.objects()
    assert last["metadata"]["name"].startswith("mine-")
    assert last["metadata"]["namespace"] == "shop"


def test_functions_get_what_they_ask_for_and_the_secrets_of_their_step(files: Files) -> None:
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "carts.shop.example"},
        "spec": {
            "group": "shop.example",
            "names": {"kind": "Cart"},
            "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    }
    blue, red = (
        {**ITEM, "metadata": {"name": name, "labels": {"in": "stock"}}} for name in ("blue", "red")
    )
    reference = {"namespace": "ns", "name": "key"}
    credentials = {"name": "key", "source": "Secret", "secretRef": reference}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": reference}
    files.write(
        required="---\n".join(map(dump_yaml, (red, blue, crd))),
        secrets=dump_yaml({**secret, "data": {"a": "aGk="}, "stringData": {"b": "ho"}}),
        composition=f"{COMPOSITION}    credentials: [{json.dumps(credentials)}]\n",
    )
    wanted = Requirements(
        resources={
            "all": ResourceSelector("v1", "ConfigMap", match_labels={"in": "stock"}),
            "none": ResourceSelector("v1", "ConfigMap", match_name="green"),
        },
        schemas={"cart": SchemaSelector("shop.example/v1", "Cart")},
    )

    def function(request: Request) -> Response:
        found = {
            name: [each.resource["metadata"]["name"] for each in some]
            for name, some in request.required_resources.items()
        }
        secrets = {name: text.decode() for name, text in request.credentials["key"].items()}
        schemas = dict(request.required_schemas)
        seen = {"found": found, "secrets": secrets, "schemas": schemas}
        return Response(requirements=wanted, context=seen)

    with served(function) as address:
        files.at(address)
        options = ("--required-resources", "required.yaml", "--function-credentials")
        *_, context = files.objects(*options, "secrets.yaml", "-c")
        done = files.render()
    assert context["fields"] == {
        "found": {"all": ["blue", "red"], "none": []},
        "secrets": {"a": "hi", "b": "ho"},
        "schemas": {"cart": {"type": "object"}},
    }
    assert done.code == 1
    assert "there is no secret ns/key" in done.err


TWICE = FUNCTION + "---" + FUNCTION.replace("resize:v1", "resize:v2")
SEVERAL = TWICE.replace(
    "spec: {package: registry.example/resize:v2}",
    "spec: {package: registry.example/resize:v2, activeRevisionLimit: 2, revisionHistoryLimit: 2}",
)


def image_used(done: Ran) -> str:
    assert done.code == 0, done.err
    xr: Any = load_manifests(done.out, "out")[0].value
    return str(xr["status"]["pipeline"][0]["digest"]).rpartition(":")[2]


def test_a_function_that_is_there_twice_has_two_revisions_to_choose_from(files: Files) -> None:
    with served(composing) as address:
        files.write(functions=SEVERAL.replace("ADDRESS", address))
        assert image_used(files.render()) == "v2"
        assert image_used(files.render("--revision", "resize=1")) == "v1"
        files.write(functions=TWICE.replace("ADDRESS", address))
        assert image_used(files.render()) == "v2"
        done = files.render("--revision", "resize=1")  # the limits have it collected
    assert done.code == 1
    assert "resize has no revision 1; known: 2 (resize-" in done.err


def test_a_step_keeps_the_revision_that_it_selects_active(files: Files) -> None:
    labelled = TWICE.replace("name: resize\n", "name: resize\n  labels: {channel: stable}\n", 1)
    selector = "    functionRevisionSelector: {matchLabels: {channel: stable}}\n"
    files.write(composition=COMPOSITION + selector)
    with served(composing) as address:
        files.write(functions=labelled.replace("ADDRESS", address))
        assert image_used(files.render()) == "v1"


def function_revision(number: int, *, state: str = "Active", at: str = "ADDRESS") -> str:
    return dump_yaml(
        {
            "apiVersion": "pkg.crossplane.io/v1",
            "kind": "FunctionRevision",
            "metadata": {
                "name": f"resize-{number}",
                "labels": {"pkg.crossplane.io/package": "resize"},
                "annotations": {"polyver.dev/endpoint": f"http://{at}"},
            },
            "spec": {
                "image": f"registry.example/resize:v{number}",
                "revision": number,
                "desiredState": state,
            },
            "status": {"unheard": "of"},
        }
    )


def test_revisions_of_functions_and_of_compositions_are_taken_as_they_are(files: Files) -> None:
    both = f"{function_revision(1)}---\n{function_revision(2, state='Inactive')}"
    revision = COMPOSITION.replace("kind: Composition", "kind: CompositionRevision", 1)
    label = "labels: {crossplane.io/composition-name: cart}"
    revision = revision.replace("name: cart, labels: {channel: stable}", f"name: cart-2, {label}")
    files.write(composition=revision.replace("spec:\n", "spec:\n  revision: 2\n", 1))
    with served(composing) as address:
        files.write(functions=both.replace("ADDRESS", address))
        assert image_used(files.render()) == "v1"
        assert image_used(files.render("--revision", "resize=resize-2")) == "v2"


def test_of_several_compositions_the_one_is_taken_that_is_asked_for(files: Files) -> None:
    other = COMPOSITION.replace("name: cart", "name: other").replace("stable", "alpha")
    files.write(composition=f"{COMPOSITION}---{other.replace('step: run', 'step: walk')}")
    with served(composing) as address:
        files.at(address)
        done = files.render()
        assert done.code == 1
        assert (
            "Cart has 2 compositions: cart, other (xr.yaml:5, spec.compositionRef); name one"
            in done.err
        )
        chosen = "spec: {compositionSelector: {matchLabels: {channel: alpha}}, size: 3}"
        files.write(xr=XR.replace("spec: {size: 3}", chosen))
        assert files.objects()[0]["status"]["pipeline"][0]["step"] == "walk"
        files.write(composition=COMPOSITION)
        done = files.render()
        assert done.code == 1
        assert "no composition of Cart has channel=alpha (xr.yaml:5" in done.err
        files.write(xr=XR.replace("spec: {", "spec: {compositionRef: {name: gone}, "))
        done = files.render()
    assert done.code == 0
    assert "names the composition gone; cart is rendered" in done.err


def test_a_definition_fills_in_defaults_and_has_a_say(files: Files) -> None:
    size = {
        "size": {"type": "integer", "maximum": 9},
        "colour": {"type": "string", "default": "red"},
    }
    spec = {"type": "object", "properties": size}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    version = {"name": "v1", "served": True, "referenceable": True, "schema": schema}
    xrd = {
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": "carts.shop.example"},
        "spec": {
            "group": "shop.example",
            "names": {"kind": "Cart", "plural": "carts"},
            "versions": [version],
        },
    }
    files.write(xrd=dump_yaml(xrd))
    with served(composing) as address:
        files.at(address)
        seen = files.objects("--xrd", "xrd.yaml")[0]["status"]["seen"]
    assert (seen["size"], seen["colour"]) == (3, "red")
    files.write(xr=XR.replace("size: 3", "size: 10"))
    done = files.render("--xrd", "xrd.yaml")
    assert (done.code, done.out) == (3, "")
    assert "should be less than or equal to 9 (xr.yaml:5, spec.size)" in done.err
    files.write(xr=XR.replace("size: 3", "sise: 3"))
    done = files.render("--xrd", "xrd.yaml")
    assert 'unknown field "sise" (xr.yaml:5, spec.sise); did you mean size?' in done.err


def test_what_a_function_refuses_is_told_where_it_is_called(files: Files) -> None:
    def function(request: Request) -> Response:
        del request
        told = (Result(Severity.WARNING, "careful"), Result(Severity.FATAL, "no size fits"))
        return Response(results=told)

    with served(function) as address:
        files.at(address)
        done = files.render()
    assert (done.code, done.out) == (1, "")
    assert 'pipeline step "run": careful' in done.err
    assert "fatal: no size fits (composition.yaml:9, spec.pipeline[0])" in done.err


def test_a_function_that_is_slow_or_not_there_ends_the_command(files: Files) -> None:
    async def function(request: Request) -> Response:
        del request
        await asyncio.Event().wait()
        raise AssertionError

    with served(function) as address:
        files.at(address)
        done = files.render("--timeout", "300ms")
    assert done.code == 1
    assert "(composition.yaml:9, spec.pipeline[0])" in done.err
    # The time that was left for this call: a part of the timeout has passed before it.
    [left] = re.findall(r"did not answer within ([0-9.]+)s", done.err)
    assert 0 < float(left) <= 0.3
    done = files.render()
    assert done.code == 1
    assert "nothing listens at its address" in done.err
    assert "start it with --insecure" in done.err


BROKEN = {
    "misspelt": ("composition", COMPOSITION.replace("functionRef", "functionReff"), 3,
                 'unknown field "functionReff" (composition.yaml:10, '
                 "spec.pipeline[0].functionReff); did you mean functionRef?"),
    "unnamed": ("functions", FUNCTION.replace("name: resize", "name: resise"), 3,
                "functions.yaml has no function resize (composition.yaml:10, "
                "spec.pipeline[0].functionRef.name); did you mean resise?"),
    "another kind": ("composition", COMPOSITION.replace("kind: Cart", "kind: Shelf"), 3,
                     "is for shop.example/v1 Shelf (composition.yaml:6, spec.compositeTypeRef)"),
    "two": ("xr", f"{XR}---{XR}", 3, "one composite resource is expected"),
    "no composition": ("composition", XR, 3, "Cart of shop.example/v1 is not expected here"),
    "nothing": ("composition", "", 3, "there is no Composition (composition.yaml)"),
    "no name": ("xr", XR.replace("name: mine", "labels: {}"), 3, '"name" is missing'),
    "no address": ("functions", FUNCTION.replace("ADDRESS", "no where"), 3, "is not the address"),
    "no runtime": ("functions", FUNCTION.replace("Development", "Docked"), 3,
                   'unknown runtime "Docked" (functions.yaml:7'),
    "no reference": ("functions", FUNCTION.replace("registry.example/resize:v1", "pypi:a"), 3,
                     '"a" has no version (functions.yaml:9, spec.package)'),
    "twice": ("composition", f"{COMPOSITION}---{COMPOSITION}", 3, "is declared twice"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "text", "code", "told"), BROKEN.values(), ids=BROKEN)
def test_what_is_wrong_is_told_with_its_place(
    files: Files, name: str, text: str, code: int, told: str
) -> None:
    files.write(**{name: text})
    done = files.render()
    assert (done.code, done.out) == (code, "")
    assert told in done.err


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (("--revision", "resize"), 2, "write FUNCTION=REVISION"),
        (("--revision", "resise=1"), 2, "does not call resise"),
        (("--context-values", "a=b"), 2, "the value of a is not JSON"),
        (("--context-values", "a"), 2, "write KEY=JSON"),
        (("--timeout", "soon"), 2, "is not a duration"),
        (("--function-credentials", "xr.yaml"), 3, "expected Secret of v1"),
        (("--xrd", "xr.yaml"), 3, "is not expected here"),
        (("--xrd", "gone.yaml"), 3, "cannot be read"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    files: Files, options: tuple[str, ...], code: int, told: str
) -> None:
    done = files.render(*options)
    assert (done.code, done.out) == (code, "")
    assert told in done.err


# Functions that are run as processes.

PACKAGED = FUNCTION.partition("  annotations:")[0] + "spec: {package: registry.example/resize:v1}\n"


def packaged(files: Files, **env: str) -> tuple[str, ...]:
    """A package that answers with one resource, allowed to be run."""
    item = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}
    answer = encode_response(Response(desired=State(resources={"x": Resource(item)})))
    function_folder(files.folder / "fn", ANSWER=answer.decode("ascii"), **env)
    files.write(functions=PACKAGED, packages="registry.example/resize:v1: fn\n")
    return ("--packages", "packages.yaml")


def test_packages_are_run_as_processes_and_end_with_the_command(files: Files) -> None:
    pids = files.folder / "pids"
    options = packaged(files, PIDS=str(pids))
    _, composed = files.objects(*options)
    assert composed["data"] == {"a": "b"}
    [pid] = pids.read_text().split()
    assert not Path(f"/proc/{pid}").exists()


def test_what_nobody_allowed_is_not_run(files: Files) -> None:
    packaged(files)
    done = files.render()
    assert (done.code, done.out) == (3, "")
    assert "the location of the package" in done.err
    assert "(functions.yaml:6, spec.package)" in done.err


def test_a_function_that_does_not_start_is_told_with_its_last_words(files: Files) -> None:
    done = files.render(*packaged(files, BEFORE="raise SystemExit('no licence')"))
    assert done.code == 3
    assert "is not served: it ended with exit code 1" in done.err
    assert "no licence" in done.err
    assert "again in" not in done.err


def test_whoever_is_told_to_end_leaves_no_process(files: Files) -> None:
    pids = files.folder / "pids"
    options = packaged(files, PIDS=str(pids), CALLED="time.sleep(600)")
    command = [POLYVER, *files.arguments, *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        eventually(lambda: pids.exists() and pids.read_text().strip())
        process.terminate()
        _, told = process.communicate(timeout=HANG)
    assert (process.returncode, told) == (130, b"")
    [pid] = pids.read_text().split()
    assert not Path(f"/proc/{pid}").exists()
