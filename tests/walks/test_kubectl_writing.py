"""kubectl, writing: what someone who changes things in a cluster does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.walks.kubectl import Kubectl, installed, kubectls
from tests.walks.support import Walk, definition, eventually


@pytest.fixture(params=kubectls())
def kubectl(request: pytest.FixtureRequest, walk: Walk, tmp_path: Path) -> Kubectl:
    return installed(request.param, walk, tmp_path)


def deployment(name: str, **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": "main", "image": "example.com/main:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


def test_a_kind_is_defined_used_and_withdrawn(kubectl: Kubectl, walk: Walk) -> None:
    crd = walk.widgets_crd
    created = kubectl("apply", "-f", "-", given=definition(walk.group))
    assert created.out == f"customresourcedefinition.apiextensions.k8s.io/{crd} created\n"
    kubectl("wait", "--for=condition=Established", f"crd/{crd}", "--timeout=300s")
    applied = eventually(lambda: _applied(kubectl, walk.widget("a")))
    assert applied == f"widget.{walk.group}/a created\n"
    assert kubectl("get", "crd", crd, "-o", "jsonpath={.status.storedVersions}").out == '["v1"]'
    old = kubectl("get", f"widgets.v1beta1.{walk.group}", "a")
    text = f"{walk.group}/v1beta1 Widget is deprecated"
    assert text in old.err
    kubectl("delete", "crd", crd)
    gone = kubectl("get", f"widgets.{walk.group}", code=1)
    assert "the server doesn't have a resource type" in gone.err or "NotFound" in gone.err


def _applied(kubectl: Kubectl, obj: object) -> str | None:
    """A kind that is new may be unknown to a kubectl that asks a moment too early."""
    try:
        return kubectl("apply", "-f", "-", given=obj).out
    except AssertionError:
        return None


def test_apply_creates_changes_and_removes_fields(kubectl: Kubectl, widgets: Walk) -> None:
    for one in (widgets.config_map("m", {"a": "1", "b": "2"}), widgets.widget("w", color="red")):
        assert kubectl("apply", "-f", "-", given=one).out.endswith(" created\n")
        assert kubectl("apply", "-f", "-", given=one).out.endswith(" unchanged\n")
    changed = kubectl("apply", "-f", "-", given=widgets.config_map("m", {"a": "3"}))
    assert changed.out == "configmap/m configured\n"
    assert kubectl.get("cm", "m")["data"] == {"a": "3"}
    wider = widgets.widget("w", size=2, parts=[{"name": "x"}])
    assert kubectl("apply", "-f", "-", given=wider).out.endswith("/w configured\n")
    assert kubectl.get("wd", "w")["spec"]["parts"] == [{"name": "x"}]
    last = kubectl("apply", "view-last-applied", "wd/w", "-o", "json").json()
    assert last["spec"] == {"size": 2, "parts": [{"name": "x"}]}


def test_apply_merges_lists_by_their_keys(kubectl: Kubectl, walk: Walk) -> None:
    one = deployment("d", replicas=1)
    kubectl("apply", "-f", "-", given=one)
    sidecar = {"spec": {"containers": [{"name": "side", "image": "example.com/side:1"}]}}
    kubectl("patch", "deploy", "d", "-p", json.dumps({"spec": {"template": sidecar}}))
    one["spec"]["template"]["spec"]["containers"][0]["image"] = "example.com/main:2"
    kubectl("apply", "-f", "-", given=one)
    containers = kubectl.get("deploy", "d")["spec"]["template"]["spec"]["containers"]
    assert {each["name"]: each["image"] for each in containers} == {
        "main": "example.com/main:2",
        "side": "example.com/side:1",
    }
    kubectl("set", "image", "deploy/d", "side=example.com/side:2")
    kubectl("set", "env", "deploy/d", "-c", "main", "A=b")
    found = kubectl.get("deploy", "d")["spec"]["template"]["spec"]["containers"]
    images = {each["name"]: each["image"] for each in found}
    assert images["side"] == "example.com/side:2"
    assert [each.get("env") for each in found if each["name"] == "main"] == [
        [{"name": "A", "value": "b"}]
    ]


def test_apply_prunes_what_is_no_longer_there(kubectl: Kubectl, walk: Walk) -> None:
    both = [walk.config_map(name, labels={"set": "s"}) for name in "ab"]
    given = {"apiVersion": "v1", "kind": "List", "items": both}
    kubectl("apply", "-f", "-", given=given)
    pruned = kubectl(
        *("apply", "-f", "-", "--prune", "-l", "set=s", "--prune-allowlist=core/v1/ConfigMap"),
        given={**given, "items": both[:1]},
    )
    assert "configmap/b pruned" in pruned.out
    assert kubectl("get", "cm", "-l", "set=s", "-o", "name").lines() == ["configmap/a"]


def test_server_side_apply_owns_fields(kubectl: Kubectl, widgets: Walk) -> None:
    def apply(manager: str, obj: object, *arguments: str, code: int = 0) -> str:
        done = kubectl(
            *("apply", "--server-side", "--field-manager", manager, "-f", "-", *arguments),
            given=obj,
            code=code,
        )
        return done.out + done.err

    assert apply("one", widgets.widget("w")).endswith("/w serverside-applied\n")
    refused = apply("two", widgets.widget("w", size=5), code=1)
    assert 'conflict with "one"' in refused
    assert ".spec.size" in refused
    apply("two", widgets.widget("w", size=5), "--force-conflicts")
    assert kubectl.get("wd", "w")["spec"]["size"] == 5
    apply("one", widgets.config_map("m", {"a": "1", "b": "1"}))
    apply("two", widgets.config_map("m", {"c": "1"}))
    apply("one", widgets.config_map("m", {"a": "2"}))
    assert kubectl.get("cm", "m")["data"] == {"a": "2", "c": "1"}
    managers = kubectl.get("cm", "m", "--show-managed-fields")["metadata"]["managedFields"]
    assert {each["manager"] for each in managers} == {"one", "two"}
    assert "managedFields" not in kubectl.get("cm", "m")["metadata"]


def test_patches_of_every_type(kubectl: Kubectl, widgets: Walk) -> None:
    kubectl("create", "-f", "-", given=widgets.widget("w", parts=[{"name": "x"}]))
    kubectl("create", "-f", "-", given=deployment("d"))
    ops = [{"op": "replace", "path": "/spec/size", "value": 4}]
    kubectl("patch", "wd", "w", "--type=json", "-p", json.dumps(ops))
    kubectl("patch", "wd", "w", "--type=merge", "-p", '{"spec":{"parts":[{"name":"y"}]}}')
    spec = kubectl.get("wd", "w")["spec"]
    assert (spec["size"], spec["parts"]) == (4, [{"name": "y"}])
    kubectl("patch", "deploy", "d", "-p", '{"spec":{"paused":true}}')
    assert kubectl.get("deploy", "d")["spec"]["paused"] is True
    refused = kubectl("patch", "wd", "w", "--type=strategic", "-p", "{}", code=1)
    assert "application/strategic-merge-patch+json is not supported" in refused.err
    unchanged = kubectl("patch", "wd", "w", "--type=merge", "-p", '{"spec":{"size":4}}')
    assert unchanged.out.endswith("/w patched (no change)\n")
    path = ["patch", "wd", "w", "--type=merge", "--subresource=status"]
    kubectl(*path, "-p", '{"status":{"phase":"Ready"},"spec":{"size":9}}')
    after = kubectl.get("wd", "w")
    assert (after["status"]["phase"], after["spec"]["size"]) == ("Ready", 4)


def test_an_object_is_edited(kubectl: Kubectl, widgets: Walk) -> None:
    kubectl("create", "-f", "-", given=widgets.widget("w", size=1))
    kubectl("create", "configmap", "m", "--from-literal=k=old")
    edited = kubectl("edit", "wd", "w", KUBE_EDITOR="sed -i s/size:.1/size:\\ 8/")
    assert edited.out.endswith("/w edited\n")
    assert kubectl.get("wd", "w")["spec"]["size"] == 8
    kubectl("edit", "cm", "m", KUBE_EDITOR="sed -i s/old/new/")
    assert kubectl.get("cm", "m")["data"] == {"k": "new"}
    assert "no changes made" in kubectl("edit", "cm", "m", KUBE_EDITOR="true").err


def test_labels_and_annotations(kubectl: Kubectl, walk: Walk) -> None:
    kubectl("create", "configmap", "m")
    kubectl("label", "cm", "m", "a=1", "b=2")
    kubectl("annotate", "cm", "m", "note=hello there")
    refused = kubectl("label", "cm", "m", "a=3", code=1)
    assert "already has a value (1), and --overwrite is false" in refused.err
    kubectl("label", "cm", "m", "a=3", "b-", "--overwrite")
    metadata = kubectl.get("cm", "m")["metadata"]
    assert (metadata["labels"], metadata["annotations"]) == ({"a": "3"}, {"note": "hello there"})
    invalid = kubectl("label", "cm", "m", "x=-bad", code=1)
    assert "a valid label must be" in invalid.err


def test_wait_ends_when_it_holds(kubectl: Kubectl, widgets: Walk) -> None:
    kubectl("create", "-f", "-", given=widgets.widget("w"))
    with kubectl.going("wait", "wd/w", "--for=jsonpath={.status.phase}=Ready") as lines:
        status = {"phase": "Ready", "conditions": [{"type": "Good", "status": "True"}]}
        body = json.dumps({"status": status})
        kubectl("patch", "wd", "w", "--type=merge", "--subresource=status", "-p", body)
        assert lines.readline().endswith("/w condition met\n")
    kubectl("wait", "wd/w", "--for=condition=Good", "--timeout=300s")
    failed = kubectl("wait", "wd/w", "--for=condition=Bad", "--timeout=100ms", code=1)
    assert "timed out waiting for the condition" in failed.err
    with kubectl.going("wait", "wd/w", "--for=delete", "-v=6") as lines:
        while "watch=true" not in lines.readline():
            pass  # it has not found the object yet, which may not be gone before
        kubectl("delete", "wd", "w")
        assert "/w condition met" in lines.read()


def test_diff_says_what_apply_would_change(kubectl: Kubectl, widgets: Walk) -> None:
    for old, new, line in (
        (widgets.widget("w"), widgets.widget("w", size=3), "+  size: 3"),
        (widgets.config_map("m", {"k": "1"}), widgets.config_map("m", {"k": "2"}), '+  k: "2"'),
    ):
        kubectl("apply", "-f", "-", given=old)
        assert kubectl("diff", "-f", "-", given=old).out == ""
        assert line in kubectl("diff", "-f", "-", given=new, code=1).lines()
    assert kubectl.get("cm", "m")["data"] == {"k": "1"}
    assert kubectl.get("wd", "w")["spec"]["size"] == 1


def test_scale_goes_by_the_subresource(kubectl: Kubectl, widgets: Walk) -> None:
    kubectl("create", "-f", "-", given=widgets.widget("w"))
    kubectl("create", "-f", "-", given=deployment("d"))
    assert kubectl("scale", "wd/w", "--replicas=5").out.endswith("/w scaled\n")
    assert kubectl("scale", "deploy/d", "--current-replicas=1", "--replicas=3").out
    assert kubectl.get("wd", "w")["spec"]["size"] == 5
    assert kubectl.get("deploy", "d")["spec"]["replicas"] == 3
    refused = kubectl("scale", "wd/w", "--current-replicas=1", "--replicas=3", code=1)
    assert "Expected replicas to be 1, was 5" in refused.err


def test_a_rollout_is_followed(kubectl: Kubectl, walk: Walk) -> None:
    kubectl("create", "-f", "-", given=deployment("d"))
    watching = kubectl("rollout", "status", "deploy/d", "--watch=false").out
    assert "Waiting for deployment" in watching
    status = {
        "observedGeneration": kubectl.get("deploy", "d")["metadata"]["generation"],
        "replicas": 1,
        "updatedReplicas": 1,
        "readyReplicas": 1,
        "availableReplicas": 1,
    }
    path = f"/apis/apps/v1/namespaces/{walk.namespace}/deployments/d/status"
    whole = kubectl.get("deploy", "d")
    walk.request("PUT", path, {**whole, "status": status})
    assert "successfully rolled out" in kubectl("rollout", "status", "deploy/d").out
    kubectl("rollout", "pause", "deploy/d")
    assert kubectl.get("deploy", "d")["spec"]["paused"] is True
    kubectl("rollout", "resume", "deploy/d")
    kubectl("rollout", "restart", "deploy/d")
    template = kubectl.get("deploy", "d")["spec"]["template"]["metadata"]
    assert "kubectl.kubernetes.io/restartedAt" in template["annotations"]
    assert kubectl("get", "deploy").lines()[1].split()[:4] == ["d", "1/1", "1", "1"]


def test_replace(kubectl: Kubectl, widgets: Walk) -> None:
    kubectl("create", "-f", "-", given=widgets.widget("w"))
    assert kubectl("replace", "-f", "-", given=widgets.widget("w", size=2)).out.endswith(
        "/w replaced\n"
    )
    whole = kubectl.get("wd", "w")
    kubectl("label", "wd", "w", "a=b")
    stale = kubectl("replace", "-f", "-", given=whole, code=1)
    assert "the object has been modified; please apply your changes to the latest" in stale.err
    uid = whole["metadata"]["uid"]
    kubectl("replace", "--force", "-f", "-", given=widgets.widget("w", size=3))
    assert kubectl.get("wd", "w")["metadata"]["uid"] != uid
    kubectl("create", "configmap", "m", "--from-literal=k=v")
    kubectl("replace", "-f", "-", given=widgets.config_map("m", {"k": "w"}))
    assert kubectl.get("cm", "m")["data"] == {"k": "w"}


def test_create_of_many_kinds(kubectl: Kubectl, walk: Walk) -> None:
    for arguments in (
        ("configmap", "m", "--from-literal=k=v"),
        ("secret", "generic", "s", "--from-literal=k=v"),
        ("serviceaccount", "sa"),
        ("deployment", "d", "--image=example.com/x"),
        ("job", "j", "--image=example.com/x"),
        ("cronjob", "cj", "--image=example.com/x", "--schedule=* * * * *"),
        ("service", "clusterip", "svc", "--tcp=80:8080"),
        ("ingress", "ing", "--rule=a.dev/*=svc:80"),
        ("role", "r", "--verb=get", "--resource=pods"),
        ("rolebinding", "rb", "--role=r", "--serviceaccount=default:sa"),
        ("quota", "q", "--hard=pods=1"),
        ("poddisruptionbudget", "pdb", "--selector=a=b", "--min-available=1"),
    ):
        assert kubectl("create", *arguments).out.endswith(" created\n")
    again = kubectl("create", "configmap", "m", code=1)
    assert again.err == ('error: failed to create configmap: configmaps "m" already exists\n')
    dry = kubectl("create", "configmap", "dry", "--dry-run=server")
    assert dry.out == "configmap/dry created (server dry run)\n"
    assert kubectl("get", "cm", "dry", "--ignore-not-found").out == ""
    rows = kubectl("get", "svc", "svc").lines()
    assert rows[0].split()[:3] == ["NAME", "TYPE", "CLUSTER-IP"]
    kubectl("expose", "deploy", "d", "--port=80")
    kubectl("run", "p", "--image=example.com/x")
    kubectl("autoscale", "deploy", "d", "--max=3")
    everything = kubectl("get", "all", "-o", "name").lines()
    assert {"pod/p", "service/svc", "deployment.apps/d", "job.batch/j"} <= set(everything)


def test_what_is_wrong_is_refused(kubectl: Kubectl, widgets: Walk) -> None:
    invalid = kubectl("create", "-f", "-", given=widgets.widget("w", size=-1), code=1)
    assert 'The Widget "w" is invalid:' in invalid.err
    assert "spec.size: Invalid value: -1" in invalid.err
    unknown = kubectl("create", "-f", "-", given=widgets.widget("w", wrong=1), code=1)
    assert 'unknown field "spec.wrong"' in unknown.err
    named = kubectl("create", "-f", "-", given=widgets.config_map("Bad_Name"), code=1)
    assert 'The ConfigMap "Bad_Name" is invalid: metadata.name: Invalid value' in named.err
    strict = kubectl("create", "-f", "-", given={**widgets.config_map("m"), "wrong": 1}, code=1)
    assert 'unknown field "wrong"' in strict.err
    warned = kubectl(
        "create", "-f", "-", "--validate=warn", given={**widgets.config_map("m"), "wrong": 1}
    )
    assert 'Warning: unknown field "wrong"' in warned.err


def owned(walk: Walk, name: str, owner: Any) -> Any:
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": True,
    }
    return walk.config_map(name, ownerReferences=[reference])


def gone(kubectl: Kubectl, name: str) -> bool:
    return kubectl("get", name, "--ignore-not-found").out == ""


def test_deletion_reaches_as_far_as_it_is_told(kubectl: Kubectl, walk: Walk) -> None:
    for way in ("foreground", "background", "orphan"):
        kubectl("create", "configmap", f"{way}-owner")
        owner = kubectl.get("cm", f"{way}-owner")
        kubectl("create", "-f", "-", given=owned(walk, f"{way}-owned", owner))
        kubectl("delete", "cm", f"{way}-owner", f"--cascade={way}")
        assert gone(kubectl, f"cm/{way}-owner")
    assert gone(kubectl, "cm/foreground-owned")
    eventually(lambda: gone(kubectl, "cm/background-owned"))
    left = kubectl.get("cm", "orphan-owned")
    assert "ownerReferences" not in left["metadata"]


def test_a_finalizer_holds_a_deletion_up(kubectl: Kubectl, widgets: Walk) -> None:
    held = widgets.widget("w")
    held["metadata"]["finalizers"] = ["walks.dev/hold"]
    kubectl("create", "-f", "-", given=held)
    kubectl("delete", "wd", "w", "--wait=false")
    assert kubectl.get("wd", "w")["metadata"]["deletionTimestamp"]
    timed_out = kubectl("delete", "wd", "w", "--timeout=100ms", code=1)
    assert "timed out waiting for the condition" in timed_out.err
    with kubectl.going("delete", "wd", "w") as lines:
        assert "widget" in lines.readline()
        kubectl("patch", "wd", "w", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        lines.read()  # to its end: the command waited
    assert gone(kubectl, "wd/w")


def test_many_are_deleted_at_once(kubectl: Kubectl, walk: Walk) -> None:
    for name in "abc":
        kubectl("create", "configmap", name)
    kubectl("label", "cm", "a", "b", "x=y")
    kubectl("delete", "cm", "-l", "x=y")
    assert not gone(kubectl, "cm/c")
    kubectl("delete", "cm", "c", "--now")
    kubectl("create", "secret", "generic", "s")
    kubectl("delete", "secrets", "--all")
    assert kubectl("get", "secrets", "-o", "name").out == ""
    assert "not found" in kubectl("delete", "cm", "c", code=1).err
    kubectl("delete", "cm", "c", "--ignore-not-found")


def test_a_namespace_goes_with_all_in_it(kubectl: Kubectl, walk: Walk) -> None:
    name = f"{walk.namespace}-more"
    kubectl("create", "namespace", name)
    kubectl("create", "configmap", "m", "-n", name)
    kubectl("delete", "namespace", name)
    assert gone(kubectl, f"namespace/{name}")
    late = kubectl("create", "configmap", "m", "-n", name, code=1)
    assert f'namespaces "{name}" not found' in late.err


def test_a_folder_with_a_kustomization_is_applied(kubectl: Kubectl, walk: Walk) -> None:
    folder = kubectl.home / "overlay"
    folder.mkdir()
    (folder / "kustomization.yaml").write_text(
        "namePrefix: pre-\nconfigMapGenerator:\n- name: m\n  literals: [k=v]\n"
        "generatorOptions: {disableNameSuffixHash: true}\n"
    )
    assert kubectl("apply", "-k", str(folder)).out == "configmap/pre-m created\n"
    assert kubectl("delete", "-k", str(folder)).out.startswith('configmap "pre-m" deleted')
