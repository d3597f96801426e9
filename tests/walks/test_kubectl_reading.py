"""kubectl, reading: what someone who looks around in a cluster sees."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.walks.kubectl import HOW, KUBECTLS, Kubectl, installed, kubectls
from tests.walks.support import Walk, eventually


@pytest.fixture(params=kubectls())
def kubectl(request: pytest.FixtureRequest, walk: Walk, tmp_path: Path) -> Kubectl:
    return installed(request.param, walk, tmp_path)


@pytest.fixture
def things(kubectl: Kubectl, widgets: Walk) -> Walk:
    """Three widgets and a config map."""
    items = [widgets.widget(name, size=size) for size, name in enumerate("abc", start=1)]
    items[0]["metadata"]["labels"] = {"tier": "front"}
    items[1]["spec"]["color"] = "green"
    items.append(widgets.config_map("m", {"k": "v"}))
    kubectl("create", "-f", "-", given={"apiVersion": "v1", "kind": "List", "items": items})
    return widgets


@pytest.mark.parametrize("which", KUBECTLS)
def test_walks_are_taken_with_the(which: str) -> None:
    if KUBECTLS[which] is None:
        pytest.skip(f"no walk was taken with the kubectl called {which}: {HOW[which]}")


def test_it_says_what_there_is(kubectl: Kubectl, widgets: Walk) -> None:
    resources = kubectl("api-resources").lines()
    assert resources[0].split() == ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"]
    rows = [line.split() for line in resources]
    assert ["configmaps", "cm", "v1", "true", "ConfigMap"] in rows
    assert ["deployments", "deploy", "apps/v1", "true", "Deployment"] in rows
    assert ["widgets", "wd", f"{widgets.group}/v1", "true", "Widget"] in rows
    in_group = kubectl("api-resources", "--api-group", widgets.group, "-o", "name")
    assert in_group.lines() == [f"widgets.{widgets.group}"]
    assert kubectl("api-resources", "--categories", "things", "-o", "name").lines()
    cluster_wide = kubectl("api-resources", "--namespaced=false", "--verbs=delete", "-o", "name")
    assert "namespaces" in cluster_wide.lines()
    assert "configmaps" not in cluster_wide.lines()
    versions = kubectl("api-versions").lines()
    assert {"v1", "apps/v1", f"{widgets.group}/v1", f"{widgets.group}/v1beta1"} <= set(versions)
    assert "serverVersion" in kubectl("version", "-o", "json").json()
    assert "is running at" in kubectl("cluster-info").out


def test_it_shows_tables(kubectl: Kubectl, things: Walk) -> None:
    rows = [line.split() for line in kubectl("get", "wd").lines()]
    assert [row[:2] for row in rows] == [["NAME", "SIZE"], ["a", "1"], ["b", "2"], ["c", "3"]]
    wide = [line.split() for line in kubectl("get", "widgets", "-o", "wide").lines()]
    assert [row[2] for row in wide] == ["COLOR", "red", "green", "red"]
    assert kubectl("get", "cm", "m").lines()[0].split() == ["NAME", "DATA", "AGE"]
    assert kubectl("get", "cm", "m", "--no-headers").lines()[0].split()[:2] == ["m", "1"]
    everywhere = kubectl("get", "cm", "-A", "--field-selector", "metadata.name=m").lines()
    assert everywhere[0].split()[0] == "NAMESPACE"
    assert things.namespace in [line.split()[0] for line in everywhere]
    labelled = kubectl("get", "wd", "-l", "tier in (front)", "--show-labels", "-L", "tier").lines()
    assert [line.split()[-1] for line in labelled] == ["LABELS", "tier=front"]
    both = kubectl("get", "wd,cm").out
    assert "configmap/m" in both
    assert f"widget.{things.group}/a" in both
    assert kubectl("get", "things", "-o", "name").lines() == [
        f"widget.{things.group}/{name}" for name in "abc"
    ]
    assert kubectl("get", "secrets").err == f"No resources found in {things.namespace} namespace.\n"


def test_it_prints_objects_in_many_ways(kubectl: Kubectl, things: Walk) -> None:
    assert "kind: ConfigMap" in kubectl("get", "cm", "m", "-o", "yaml").out
    assert kubectl.get("cm", "m")["data"] == {"k": "v"}
    sizes = kubectl("get", "wd", "-o", "jsonpath={.items[*].spec.size}")
    assert sizes.out == "1 2 3"
    columns = "NAME:.metadata.name,SIZE:.spec.size"
    rows = kubectl("get", "wd", "-o", f"custom-columns={columns}", "--sort-by=.spec.size").lines()
    assert [row.split() for row in rows] == [["NAME", "SIZE"], ["a", "1"], ["b", "2"], ["c", "3"]]
    template = "{{range .items}}{{.metadata.name}};{{end}}"
    assert kubectl("get", "wd", "-o", f"go-template={template}").out == "a;b;c;"
    assert kubectl("get", "cm/m", "-o", "name").lines() == ["configmap/m"]


def test_it_selects_and_reads_in_chunks(kubectl: Kubectl, things: Walk) -> None:
    def names(*arguments: str) -> list[str]:
        found = kubectl("get", "wd", "-o", "jsonpath={.items[*].metadata.name}", *arguments)
        return found.out.split()

    assert names("-l", "tier=front") == ["a"]
    assert names("-l", "!tier") == ["b", "c"]
    assert names("--field-selector", "metadata.name!=a") == ["b", "c"]
    assert names("--field-selector", "spec.color=green") == ["b"]
    assert names("--chunk-size", "1") == ["a", "b", "c"]
    table = kubectl("get", "wd", "--chunk-size", "2").lines()
    assert [line.split()[0] for line in table] == ["NAME", "a", "b", "c"]
    refused = kubectl("get", "wd", "--field-selector", "spec.size=1", code=1)
    assert "field label not supported: spec.size" in refused.err


def test_it_says_what_is_not_there(kubectl: Kubectl, things: Walk) -> None:
    group = things.group
    missing = kubectl("get", "wd", "zzz", code=1)
    assert missing.err == f'Error from server (NotFound): widgets.{group} "zzz" not found\n'
    assert kubectl("get", "wd", "zzz", "--ignore-not-found").out == ""
    unknown = kubectl("get", "nonsense", code=1)
    assert unknown.err == 'error: the server doesn\'t have a resource type "nonsense"\n'
    raw = kubectl("get", "--raw", "/apis/nothing.dev/v1/things", code=1)
    assert "NotFound" in raw.err


def test_it_asks_for_paths_as_they_are(kubectl: Kubectl, things: Walk) -> None:
    assert kubectl("get", "--raw", "/readyz").out == "ok"
    path = f"/apis/{things.group}/v1/namespaces/{things.namespace}/widgets/a"
    assert kubectl("get", "--raw", path).json()["spec"]["size"] == 1
    assert kubectl("get", "--raw", f"{path}/scale").json()["kind"] == "Scale"


def test_it_follows_what_happens(kubectl: Kubectl, things: Walk) -> None:
    columns = "-o=custom-columns=S:.spec.size,N:.metadata.name"
    with kubectl.going("get", "wd", "-w", "--no-headers", columns) as lines:
        assert [lines.readline().split() for _ in "abc"] == [["1", "a"], ["2", "b"], ["3", "c"]]
        kubectl("patch", "wd", "b", "--type=merge", "-p", '{"spec":{"size":7}}')
        assert lines.readline().split() == ["7", "b"]
        kubectl("delete", "wd", "c")
        assert lines.readline().split() == ["3", "c"]
    with kubectl.going("get", "wd", "a", "-w", "--output-watch-events") as lines:
        assert lines.readline().split()[:2] == ["EVENT", "NAME"]
        assert lines.readline().split()[:3] == ["ADDED", "a", "1"]
        kubectl("patch", "wd", "a", "--type=merge", "-p", '{"spec":{"size":11}}')
        assert lines.readline().split()[:3] == ["MODIFIED", "a", "11"]
        kubectl("delete", "wd", "a")
        assert lines.readline().split()[:3] == ["DELETED", "a", "11"]


def test_it_describes(kubectl: Kubectl, things: Walk) -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "a.1", "namespace": things.namespace},
        "involvedObject": {
            "kind": "Widget",
            "apiVersion": f"{things.group}/v1",
            "name": "a",
            "namespace": things.namespace,
            "uid": kubectl.get("wd", "a")["metadata"]["uid"],
        },
        "reason": "Walked",
        "message": "it was looked at",
        "type": "Normal",
        "source": {"component": "walk"},
        "count": 1,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    kubectl("create", "-f", "-", given=event)
    described = kubectl("describe", "wd", "a").out
    assert "Kind:         Widget" in described
    assert "it was looked at" in described
    assert "it was looked at" not in kubectl("describe", "wd", "b").out
    assert "Walked" in kubectl("get", "events").out
    assert "it was looked at" in kubectl("events").out
    assert "it was looked at" in kubectl("events", "--for", "widget/a").out
    assert "Status:       Active" in kubectl("describe", "ns", things.namespace).out
    assert "k:\n----\nv" in kubectl("describe", "cm", "m").out
    assert "Accepted" in kubectl("describe", "crd", things.widgets_crd).out


def test_it_explains(kubectl: Kubectl, widgets: Walk) -> None:
    def explained() -> str | None:
        try:
            return kubectl("explain", "widgets", "--api-version", f"{widgets.group}/v1").out
        except AssertionError:
            return None

    # A real server needs a moment to describe a new kind.
    assert "Something to walk with." in eventually(explained)
    assert "How many there are." in kubectl("explain", "wd.spec.size").out
    assert "What is wanted." in kubectl("explain", "wd.spec").out
    assert "parts" in kubectl("explain", "wd.spec", "--recursive").out
    assert "FIELD" in kubectl("explain", "deployment.spec.template.spec.containers.image").out
    assert "replicas" in kubectl("explain", "deploy", "--recursive").out
    refused = kubectl("explain", "wd.spec.nonsense", code=1)
    assert 'field "nonsense" does not exist' in refused.err


def test_it_tells_who_one_is_and_what_one_may_do(kubectl: Kubectl, walk: Walk) -> None:
    if kubectl.program != KUBECTLS["oldest"]:  # it knows only versions that are served no more
        assert "Username" in kubectl("auth", "whoami").out
    assert kubectl("auth", "can-i", "create", "deployments").out == "yes\n"
    assert kubectl("auth", "can-i", "*", "*", "--all-namespaces").out == "yes\n"
    assert "*.*" in kubectl("auth", "can-i", "--list").out
