"""A version is dropped as the how-to tells it, and not while something needs it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.deadlines import HANG
from tests.editing import edited
from tests.walks.conftest import DEFINITIONS
from tests.walks.kubectl import Kubectl, kubectls
from tests.walks.support import Walk, eventually

from polyver.kube.objects.status import ApiError
from polyver.testing import EmbeddedServer

Object = dict[str, Any]
HOW_TO = Path(__file__).parents[2] / "docs" / "how-to" / "roll-out-a-new-api-version.md"


def version(name: str, *, storage: bool = False, served: bool = True) -> Object:
    fields = {each: {"type": "string"} for each in ("size", "colour")}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    about = {"name": name, "served": served, "storage": storage}
    return about | {"schema": {"openAPIV3Schema": schema}}


@pytest.fixture
def lamps(walk: Walk) -> Iterator[Walk]:
    """Lamps in v1 and v2, which have the same fields."""
    names = {"plural": "lamps", "kind": "Lamp"}
    versions = [version("v1", storage=True), version("v2")]
    spec = {"group": walk.group, "scope": "Namespaced", "names": names, "versions": versions}
    about = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    walk.request("POST", DEFINITIONS, {**about, "metadata": {"name": crd(walk)}, "spec": spec})
    for each in ("v1", "v2"):
        eventually(partial(walk.request, "GET", path(walk, each)))
    yield walk
    walk.request("DELETE", f"{DEFINITIONS}/{crd(walk)}")


@pytest.fixture(params=kubectls()[:1])
def kubectl(lamps: Walk, tmp_path: Path, request: pytest.FixtureRequest) -> Kubectl:
    (tmp_path / "config").write_bytes(lamps.kubeconfig.read_bytes())
    return Kubectl(request.param, lamps, tmp_path)


def crd(walk: Walk) -> str:
    return f"lamps.{walk.group}"


def path(walk: Walk, version: str, name: str = "") -> str:
    at = f"/apis/{walk.group}/{version}/namespaces/{walk.namespace}/lamps"
    return f"{at}/{name}" if name else at


def lamp(walk: Walk, version: str, name: str, **spec: str) -> Object:
    about = {"apiVersion": f"{walk.group}/{version}", "kind": "Lamp"}
    return {**about, "metadata": {"name": name, "namespace": walk.namespace}, "spec": spec}


def define(walk: Walk, *versions: Object, stored: list[str] | None = None) -> None:
    """Change the versions of Lamps; with `stored` the list of stored versions, too."""
    at = f"{DEFINITIONS}/{crd(walk)}"
    if stored:
        listed = {"storedVersions": stored}
        edited(walk.request, f"{at}/status", lambda found: found["status"].update(listed))
    edited(walk.request, at, lambda found: found["spec"].update(versions=list(versions)))


def without() -> str:
    """The script that the how-to has people write."""
    lines = HOW_TO.read_text().partition("$ cat > without.py <<EOF\n")[2].partition("> EOF\n")[0]
    assert lines
    return "".join(line[2:] or "\n" for line in lines.splitlines(keepends=True))


def rewritten(kubectl: Kubectl, script: Path) -> None:
    """Remove the managedFields entries of v1 from all objects, with the commands of the how-to."""
    group = kubectl.walk.group
    found = kubectl("get", f"lamps.v2.{group}", "-A", "-o", "json", "--show-managed-fields").out
    made = subprocess.run(
        [sys.executable, script, f"{group}/v1"],
        input=found,
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG,
    )
    kubectl("replace", "-f", "-", given=made.stdout)
    left = kubectl("get", f"lamps.v2.{group}", "-A", "-o", "json", "--show-managed-fields").out
    assert f'"apiVersion": "{group}/v1"' not in left


def applied(kubectl: Kubectl, obj: Object, *options: str) -> Object:
    command = ("apply", "--server-side", "--field-manager=team", "-f", "-", "-o", "json")
    found: Object = kubectl(*command, *options, given=obj).json()
    return found


def test_following_the_how_to_leaves_appliers_working(
    lamps: Walk, kubectl: Kubectl, tmp_path: Path
) -> None:
    # People apply and edit in v1, and one of them has moved to v2 when it goes.
    for name in ("moved", "left"):
        applied(kubectl, lamp(lamps, "v1", name, size="1", colour="red"))
    kind, where = f"lamps.v1.{lamps.group}", ("-n", lamps.namespace)
    kubectl("label", kind, "moved", "left", "by=hand", *where)
    define(lamps, version("v1"), version("v2", storage=True))
    define(lamps, version("v1", served=False), version("v2", storage=True))
    eventually(lambda: lamps.request("GET", path(lamps, "v1")) is None)
    applied(kubectl, lamp(lamps, "v2", "moved", size="2", colour="red"))
    (tmp_path / "without.py").write_text(without())
    rewritten(kubectl, tmp_path / "without.py")
    define(lamps, version("v2", storage=True), stored=["v2"])
    # v2 still owns its fields: apply removes a field that the manifest no longer has.
    found = applied(kubectl, lamp(lamps, "v2", "moved", size="3"))
    assert (found["spec"], found["metadata"]["labels"]) == ({"size": "3"}, {"by": "hand"})
    found = applied(kubectl, lamp(lamps, "v2", "left", size="4", colour="red"), "--force-conflicts")
    assert found["spec"] == {"size": "4", "colour": "red"}
    assert len(lamps.request("GET", path(lamps, "v2"))["items"]) == 2


# Only the embedded server makes these checks.


def refused(walk: Walk, *versions: Object, stored: list[str]) -> str:
    with pytest.raises(ApiError) as error:
        define(walk, *versions, stored=stored)
    assert error.value.code == 422
    return error.value.message


@pytest.fixture
def embedded(lamps: Walk) -> Walk:
    if not isinstance(lamps.server, EmbeddedServer):
        pytest.skip("kube-apiserver looks at storedVersions alone")
    return lamps


def test_a_version_that_objects_are_stored_in_is_not_dropped(embedded: Walk) -> None:
    embedded.request("POST", path(embedded, "v2"), lamp(embedded, "v2", "a", size="1"))
    define(embedded, version("v1"), version("v2", storage=True))
    said = refused(embedded, version("v2", storage=True), stored=["v2"])
    assert f"objects are stored in v1: {embedded.namespace}/a; rewrite them" in said
    assert "managedFields" not in said
    found = embedded.request("GET", path(embedded, "v2", "a"))
    embedded.request("PUT", path(embedded, "v2", "a"), found)
    define(embedded, version("v2", storage=True), stored=["v2"])
    assert embedded.request("GET", path(embedded, "v2", "a"))["spec"] == {"size": "1"}


def test_a_version_that_managed_fields_name_is_not_dropped(embedded: Walk) -> None:
    define(embedded, version("v1"), version("v2", storage=True))
    embedded.request("POST", path(embedded, "v1"), lamp(embedded, "v1", "a", size="1"))
    said = refused(embedded, version("v2", storage=True), stored=["v2"])
    assert "managedFields name v1, of " in said
    assert f" in {embedded.namespace}/a; have these apply in another version" in said
    assert "objects are stored" not in said
    embedded.request("DELETE", path(embedded, "v1", "a"))
    define(embedded, version("v2", storage=True), stored=["v2"])


def test_a_version_that_a_conversion_leads_through_is_not_dropped(embedded: Walk) -> None:
    define(embedded, version("v1"), version("v2", storage=True), version("v3"), stored=["v1"])
    edges = [{"from": "v1", "to": "v2"}, {"from": "v2", "to": "v3"}]
    spec = {"group": embedded.group, "kind": "Lamp", "versions": ["v1", "v2", "v3"], "edges": edges}
    about = {"apiVersion": "polyver.dev/v1alpha1", "kind": "Conversion"}
    at = "/apis/polyver.dev/v1alpha1/conversions"
    embedded.request("POST", at, {**about, "metadata": {"name": crd(embedded)}, "spec": spec})
    eventually(
        lambda: "conditions" in embedded.request("GET", f"{at}/{crd(embedded)}").get("status", {})
    )
    around = (version("v1", storage=True), version("v3"))
    said = refused(embedded, *around, stored=["v1"])
    assert "the Conversion leads from v1 to v3 through v2; add another path" in said
    at_conversion = f"{at}/{crd(embedded)}"
    direct, other = {"from": "v1", "to": "v3"}, {"from": "v1", "to": "v2"}
    edited(embedded.request, at_conversion, lambda obj: obj["spec"].update(edges=[direct, other]))
    eventually(lambda: _dropped(embedded, around))
    # A Conversion that still has the version can lose it now.
    narrowed = {"versions": ["v1", "v3"], "edges": [direct]}
    edited(embedded.request, at_conversion, lambda obj: obj["spec"].update(narrowed))
    embedded.request("DELETE", f"{DEFINITIONS}/{crd(embedded)}")
    embedded.request("DELETE", f"{at}/{crd(embedded)}")
    eventually(lambda: embedded.request("GET", f"{at}/{crd(embedded)}") is None)


def _dropped(walk: Walk, versions: tuple[Object, ...]) -> bool:
    """Try to drop a version; this fails until the new edges are served."""
    try:
        define(walk, *versions, stored=["v1"])
    except ApiError as error:
        if "the Conversion leads from" in error.message:
            return False
        raise
    return True
