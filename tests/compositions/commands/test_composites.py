"""`polyver why xr/…` and who is named by `polyver impact`, beside a control plane that composes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.app.test_cli import Ran
from tests.compositions import composing
from tests.compositions.commands.test_render import served
from tests.compositions.controllers.installing import MemoryRuntime
from tests.editing import edited
from tests.walks.support import eventually
from tests.web.visiting import Visitor

from polyver.compositions.messages import Request, Response
from polyver.compositions.names import ENDPOINT
from polyver.kube.objects.status import ApiError
from polyver.testing import EmbeddedServer

Object = dict[str, Any]
COMPOSED = "/apis/apiextensions.crossplane.io/v1"
PACKAGES = "/apis/pkg.crossplane.io/v1"
BUCKETS = f"/apis/{composing.VERSION}/acmebuckets"


def function(address: str, version: str) -> Object:
    name = composing.FUNCTION
    return {
        "apiVersion": "pkg.crossplane.io/v1",
        "kind": "Function",
        "metadata": {"name": name, "annotations": {ENDPOINT: address}},
        "spec": {
            "package": f"ex.io/a:{version}",
            "activeRevisionLimit": 2,
            "revisionHistoryLimit": 0,
        },
    }


def nothing(request: Request) -> Response:
    del request
    return Response()


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    """A bucket that was composed by the first revision of a function, and one that cannot be."""
    capabilities = ("apis", "compositions")
    with (
        served(nothing) as address,
        EmbeddedServer(capabilities=capabilities, runtime=MemoryRuntime(), page=True) as running,
    ):
        running.request(
            "POST", f"{COMPOSED}/compositeresourcedefinitions", _new(composing.definition())
        )
        running.request("POST", f"{PACKAGES}/functions", function(address, "v1"))
        running.request("POST", f"{COMPOSED}/compositions", _new(composing.composition()))
        eventually(lambda: _created(running, "good"))
        eventually(lambda: (_bucket(running, "good").get("status") or {}).get("pipeline"))
        assert _created(running, "bad", compositionRef={"name": "gone"})
        eventually(lambda: (_bucket(running, "bad").get("status") or {}).get("conditions"))
        yield running


def _new(obj: Object) -> Object:
    obj["metadata"].pop("uid", None)
    return obj


def _created(server: EmbeddedServer, name: str, **spec: Any) -> bool:
    """Whether its kind is served by now."""
    obj = _new(composing.bucket(size=3, **spec))
    obj["metadata"]["name"] = name
    try:
        return bool(server.request("POST", BUCKETS, obj))
    except ApiError as error:
        if error.code != 404:
            raise
        return False


def _bucket(server: EmbeddedServer, name: str) -> Object:
    found: Object = server.request("GET", f"{BUCKETS}/{name}")
    return found


@pytest.fixture(autouse=True)
def _kubeconfig(server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))


@pytest.mark.parametrize("name", ["xr/good", "acmebucket/good", "AcmeBucket/good"])
def test_it_tells_what_a_composite_resource_has_and_why(
    capsys: pytest.CaptureFixture[str], server: EmbeddedServer, name: str
) -> None:
    recorded = _bucket(server, "good")
    done = Ran(capsys, "why", name, "--explain")
    assert (done.code, done.err) == (0, "")
    assert "AcmeBucket good" in done.out
    assert "Synced=True (ReconcileSuccess)" in done.out
    assert "highest-numbered active revision" in done.out
    assert done.out.count(recorded["spec"]["compositionRevisionRef"]["name"]) == 2
    assert done.out.count(recorded["status"]["pipeline"][0]["revision"]) == 2


def test_it_tells_programs_what_would_move(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(Ran(capsys, "why", "xr/good", "-o", "json").out)
    [step] = found["steps"]
    assert (step["step"], step["function"], step["moves"]) == ("run", composing.FUNCTION, False)
    assert step["has"] == step["gets"]
    assert found["revision"]["why"] == "newest revision"
    assert found["errors"] == []


def test_what_is_refused_is_told_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    done = Ran(capsys, "why", "xr/bad")
    assert done.code == 1
    assert "there is no composition gone (spec.compositionRef); there are example" in done.err
    assert "Synced=False (CompositionNotFound)" in done.out


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("xr/none", 1, "there is no composite resource none; searched kinds: AcmeBucket"),
        ("bucket/good", 2, "KIND/NAME with acmebucket"),
        ("xr/", 2, "is not an ActionSet, application, package or composite resource"),
    ],
)
def test_who_is_not_there_is_told(
    capsys: pytest.CaptureFixture[str], name: str, code: int, told: str
) -> None:
    done = Ran(capsys, "why", name)
    assert (done.code, done.out) == (code, "")
    assert told in done.err


def test_impact_names_composite_resources(capsys: pytest.CaptureFixture[str]) -> None:
    done = Ran(capsys, "impact", f"package/{composing.FUNCTION}@1")
    assert done.code == 0
    assert "AcmeBucket good" in done.out
    assert "AcmeBucket bad" not in done.out
    found = json.loads(Ran(capsys, "impact", "composition/example@1", "-o", "json").out)
    [row] = found["composites"]
    assert (row["who"], row["has"]) == ("AcmeBucket good", row["gets"])
    done = Ran(capsys, "impact", "composition/exampel")
    assert (done.code, done.out) == (1, "")
    assert "there is no composition exampel; known: example" in done.err
    assert "has no revision 7" in Ran(capsys, "impact", "composition/example@7").err


def test_the_page_shows_compositions_and_who_has_them(server: EmbeddedServer) -> None:
    visitor = Visitor(server.page)
    who = "AcmeBucket good"

    def told() -> bool:
        uses = visitor.lineage("compositions", "composition/example")["uses"]["items"]
        steps = visitor.lineage("compositions", composing.FUNCTION)["uses"]["items"]
        return who in [row["name"] for row in uses] and who in [row["name"] for row in steps]

    eventually(told)
    data = visitor.lineage("compositions", "composition/example")
    assert data["facts"] == {"composes": f"{composing.VERSION} {composing.KIND}"}
    assert (
        f"calls {composing.FUNCTION}"
        in visitor.see("/lineages/compositions/composition/example").words
    )
    first, second = visitor.data(f"/dependents/{who}")["uses"]
    assert {first["reason"], second["reason"]} == {
        "newest revision",
        "highest-numbered active revision",
    }
    eventually(lambda: visitor.data("/dependents/AcmeBucket bad")["uses"])
    [row] = visitor.data("/dependents/AcmeBucket bad")["uses"]
    assert row["problem"] == "there is no composition gone"


def test_a_new_revision_moves_who_follows_it(
    capsys: pytest.CaptureFixture[str], server: EmbeddedServer
) -> None:
    before = _bucket(server, "good")["status"]["pipeline"][0]["revision"]
    path = f"{PACKAGES}/functions/{composing.FUNCTION}"
    edited(server.request, path, lambda found: found["spec"].update(package="ex.io/a:v2"))
    after = eventually(lambda: _moved(server, before))
    capsys.readouterr()  # what the control plane, which is in this process, has logged
    found = json.loads(Ran(capsys, "why", "xr/good", "-o", "json", "--explain").out)
    [step] = found["steps"]
    assert (step["has"], step["gets"]) == (after, after)
    assert step["rejected"] == [{"name": before, "why": f"{after} is higher"}]
    assert Ran(capsys, "impact", f"package/{composing.FUNCTION}@1").out == "not used\n"


def _moved(server: EmbeddedServer, before: str) -> str:
    [step] = _bucket(server, "good")["status"]["pipeline"]
    return str(step["revision"]) if step["revision"] != before else ""
