"""The result of a preflight: in the status, in the RolloutReport, and on the terminal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from tests.rollouts.composing import COMPOSITION, SYSTEM, composing
from tests.rollouts.releasing import Releasing, version
from tests.walks.support import eventually

from polyver.app import main
from polyver.capability.preflight_examples import short_diff
from polyver.client import Client
from polyver.core.preflight import ChangeExample, Preflight, PreflightReport
from polyver.kube.objects import encode_json
from polyver.kube.objects.status import ApiError
from polyver.rollouts import controller
from polyver.rollouts.commands.preflight import preflight_lines
from polyver.rollouts.reporting import store_report
from polyver.rollouts.reports import preflight_data, preflight_summary
from polyver.testing import EmbeddedServer

Object = dict[str, Any]
REPORTS = "/apis/polyver.dev/v1alpha1/namespaces/vela-system/rolloutreports"
ROLLOUTS = "/apis/polyver.dev/v1alpha1/namespaces/vela-system/rollouts"
NUMBER = 12


def config(kind: str = "ConfigMap", **data: str) -> Object:
    metadata = {"name": "x", "namespace": "default"}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": data}


def report_of(dependents: int, *, shapes: int = 1, failing: int = 0) -> PreflightReport:
    preflight = Preflight()
    for number in range(dependents):
        for shape in range(shapes):
            name = f"k{shape:04}"
            was, will_be = config(f"Kind{shape}", **{name: "1"}), config(f"Kind{shape}")
            preflight.compare(f"default/app-{number:04}", [was], [will_be])
    for number in range(failing):
        preflight.fail(f"default/bad-{number:04}", [f"cause {chr(97 + number % 26) * number}"])
    return preflight.report()


# The data.


def test_the_data_has_all_names_and_the_status_the_first_ten() -> None:
    data = preflight_data(report_of(25, failing=25))
    [group] = data["groups"]
    assert (group["dependents"], len(group["names"])) == (25, 25)
    assert len(data["failures"]) == 25
    assert "note" not in data
    shown = preflight_summary(data)
    assert shown["groups"][0] == {**group, "names": group["names"][:10]}
    assert len(shown["failures"]) == 20
    assert (shown["changed"], shown["fails"]) == (25, 25)


def test_an_example_names_the_dependent_and_the_object_with_the_changed_lines() -> None:
    [group] = preflight_data(report_of(2))["groups"]
    assert group["example"] == {
        "dependent": "default/app-0000",
        "object": "Kind0 default/x (v1)",
        "diff": "@@ -3,5 +3,4 @@\n metadata:\n   name: x\n   namespace: default\n"
        "-data:\n-  k0000: '1'\n+data: {}",
    }


@pytest.mark.parametrize("largest", [2_000, 20_000, 100_000])
def test_data_that_is_too_large_says_what_is_left_out(largest: int) -> None:
    report = report_of(300, shapes=30, failing=300)
    data = preflight_data(report, largest=largest)
    assert len(encode_json(data)) < largest + 500
    failures, groups = data.get("failures") or [], data.get("groups") or []
    assert failures
    assert groups
    left = {
        "failures": len(report.failures) - len(failures),
        "groups": len(report.groups) - len(groups),
        "names": sum(e["dependents"] - len(e["names"]) for e in (*failures, *groups)),
    }
    told = ", ".join(f"{number} {name}" for name, number in left.items() if number)
    assert data["note"] == f"the report has at most {largest // 1024} KiB; left out: {told}"


def test_the_status_cuts_long_texts() -> None:
    preflight = Preflight()
    preflight.fail("default/a", ["x" * 5000])
    data = preflight_data(preflight.report())
    assert data["failures"][0]["message"] == "x" * 5000
    assert preflight_summary(data)["failures"][0]["message"] == f"{'x' * 2000}…"


def diff_of(before: Object, after: Object) -> str:
    identity = ("", "ConfigMap", "default", "x")
    return short_diff(ChangeExample("default/a", identity, before, after))


def test_a_short_diff_has_at_most_30_lines_and_2000_characters() -> None:
    many = {f"k{number:03}": "1" for number in range(100)}
    found = diff_of(config(**many), config(**dict.fromkeys(many, "2"))).split("\n")
    assert len(found) == 31
    assert found[-1] == "(174 more lines)"
    long = {f"k{number}": f"{number}" * 500 for number in range(30)}
    found = diff_of(config(), config(**long)).split("\n")
    assert len("\n".join(found[:-1])) <= 2000
    assert found[-1].endswith(" more lines)")
    assert max(map(len, found)) == 201


def test_the_diff_of_a_large_object_is_not_computed() -> None:
    too_large = "(the object is too large for a diff)"
    many = {f"k{number:04}": "1" for number in range(1000)}
    assert diff_of(config(), config(**many)) == too_large
    assert diff_of(config(text="x" * 100_001), config()) == too_large


def test_the_terminal_shows_no_control_characters() -> None:
    preflight = Preflight()
    preflight.fail("default/a", ["\x1b[2Jgone\n"])
    lines = [*preflight_lines(preflight_data(preflight.report()))]
    assert lines[0] == "0 unchanged, 0 changed, 0 would lose objects, 1 would fail"
    assert lines[1:] == ["", r"1 would fail: \x1b[2Jgone\n", "  default/a"]


# Storing the report.


class Refusing:
    """A client that may not read and write RolloutReports."""

    async def get(self, *_: object) -> Object:
        raise ApiError(403, "Forbidden", "rolloutreports is forbidden")


def test_a_report_that_cannot_be_stored_is_named_in_the_status() -> None:
    metadata = {"name": "web-1.0.1", "namespace": "vela-system", "uid": "1"}
    rollout, data = {"metadata": metadata}, preflight_data(report_of(2))
    stored = asyncio.run(store_report(cast("Client", Refusing()), rollout, data))
    assert stored == {
        "note": "the complete result could not be stored: rolloutreports is forbidden"
    }


# On a control plane.


@pytest.fixture
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(capabilities=("apis", "definitions")) as server:
        yield server


def leaking(number: str) -> Object:
    """A version with a ConfigMap and a Secret."""
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: '{{ .context.name }}'}\n"
    secret += f"stringData: {{password: tiger-{number}}}"
    return version(number, f'data: {{from: "{number}"}}\n---\n{secret}')


def typed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    """Type `polyver rollout preflight`, and return what it prints."""
    assert main(["rollout", "preflight", *arguments]) == 0
    found = capsys.readouterr()
    return found.out, found.err


def test_the_command_prints_all_names_and_no_values_of_secrets(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))
    platform = Releasing(server)
    platform.publish(leaking("1.0.0"))
    platform.applications(NUMBER)
    names = sorted(f"default/app-{each}" for each in range(NUMBER))
    eventually(lambda: len(platform.written()) == NUMBER)
    platform.policy({"share": "100%"}, preflight={"sample": "all"})
    platform.publish(leaking("1.0.1"))
    shown = platform.reaches("Completed", "1/1")["preflight"]
    secrets, configs = sorted(shown["groups"], key=lambda each: each["change"], reverse=True)
    assert secrets["change"] == f"{NUMBER} Secrets: stringData.password changed"
    assert configs["change"] == f"{NUMBER} ConfigMaps: data.from 1.0.0 → 1.0.1"
    assert secrets["names"] == configs["names"] == names[:10]
    assert configs["example"]["object"] == "ConfigMap default/app-0 (v1)"
    assert "-  from: 1.0.0\n+  from: 1.0.1" in configs["example"]["diff"]
    assert "+  password: (changed)" in secrets["example"]["diff"]

    whole = server.request("GET", f"{REPORTS}/{shown['report']}")
    assert [each["names"] for each in whole["preflight"]["groups"]] == [names, names]
    out, err = typed(capsys, "web-1.0.1")
    assert err == ""
    assert out.startswith(f"0 unchanged, {NUMBER} changed, 0 would lose objects, 0 would fail\n")
    assert out.count(f"  {', '.join(names)}\n") == 2
    assert "  example: ConfigMap default/app-0 (v1) of default/app-0\n" in out
    assert "    -  from: 1.0.0\n    +  from: 1.0.1\n" in out
    assert json.loads(typed(capsys, "web-1.0.1", "-o", "json")[0]) == whole["preflight"]
    assert "tiger" not in f"{shown}{whole}{out}"

    server.request("DELETE", f"{REPORTS}/web-1.0.1")
    out, err = typed(capsys, "web-1.0.1")
    assert "this is only the beginning of the result: there is no RolloutReport web-1.0.1" in err
    assert out.count(f"  {', '.join(names[:10])} and 2 more\n") == 2


def stored(server: EmbeddedServer) -> Object | None:
    try:
        found: Object = server.request("GET", f"{REPORTS}/web-1.0.1")
    except ApiError:
        return None
    return found


def test_a_repeated_preflight_replaces_the_report_if_it_changes(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "_REPEATED", 0.0)
    platform = Releasing(server)
    platform.publish(version("1.0.0"))
    platform.applications(2)
    eventually(lambda: len(platform.written()) == 2)
    platform.policy({"share": "100%"})
    platform.publish(version("1.0.1", '{{ fail "broken" }}'))
    platform.reaches("Held", "0/1")
    first = eventually(lambda: stored(server))
    before = platform.rollout()["metadata"]["uid"]
    assert [each["uid"] for each in first["metadata"]["ownerReferences"]] == [before]
    platform.application("app-new")

    def changed() -> Object | None:
        found = stored(server)
        assert found is not None
        return found if found["preflight"] != first["preflight"] else None

    second = eventually(changed)
    [failure] = second["preflight"]["failures"]
    assert failure["names"] == ["default/app-0", "default/app-1", "default/app-new"]
    assert (first["metadata"]["generation"], second["metadata"]["generation"]) == (1, 2)
    server.request("DELETE", f"{ROLLOUTS}/web-1.0.1")
    eventually(lambda: stored(server) is None)


def test_a_preflight_of_composite_resources_hides_values_of_secrets(tmp_path: Path) -> None:
    with composing(tmp_path, NUMBER) as platform:
        platform.policy(COMPOSITION, {"share": "100%"})
        name = platform.publish_composition("2", "leaks")
        shown = eventually(lambda: platform.status(name).get("preflight"))
        whole = platform.request("GET", f"{SYSTEM}/rolloutreports/{shown['report']}")["preflight"]
        names = sorted(f"Stack/s{each}" for each in range(1, NUMBER + 1))
        changes = {each["change"]: each for each in whole["groups"]}
        copied = f"{NUMBER} ConfigMaps: data.composition 1 → 2, data.copy added"
        assert {*changes} == {copied, f"{NUMBER} Secrets added"}
        assert changes[copied]["names"] == names
        assert changes[copied]["example"]["dependent"] == "Stack/s1"
        assert changes[copied]["example"]["object"] == "ConfigMap default/s1-main (v1)"
        assert "+  copy: (secret)" in changes[copied]["example"]["diff"]
        assert [len(each["names"]) for each in shown["groups"]] == [10, 10]
        assert "tiger" not in f"{shown}{whole}"
