"""`polyver why`, as someone types it, beside a control plane that runs."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.app.test_cli import Ran
from tests.definitions.samples import Platform, application, definition, entry, served


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with served() as around:
        old = entry("1.1.0", deprecated={"since": "2.0", "use": "2.0"})
        around.publish(definition("web", "1.0.0", old, "2.0.0"))
        around.deploy(application("shop", "web@1"))
        around.deploy(application("wrong", "web@3", "web@2"))
        yield around


@pytest.fixture(autouse=True)
def _kubeconfig(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(platform.server.kubeconfig))


def test_it_tells_what_is_used_and_why_not_others(capsys: pytest.CaptureFixture[str]) -> None:
    done = Ran(capsys, "why", "app/shop", "--explain")
    assert done.code == 0
    assert "spec.components[0].type" in done.out
    assert "web@1" in done.out
    assert "newest in series 1, since 20" in done.out
    lines = [line.split(maxsplit=1) for line in done.out.splitlines()]
    assert ["2.0.0", "not in series 1"] in lines
    assert ["1.0.0", "1.1.0 is newer"] in lines
    assert "web 1.1.0 is deprecated since 2.0.0; use 2.0" in done.err


def test_it_tells_programs_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    done = Ran(capsys, "why", "app/shop", "-n", "default", "-o", "json", "--explain")
    [said] = json.loads(done.out)["resolutions"]
    assert (said["version"], said["requested"]) == ("1.1.0", "1")
    assert [each["release"] for each in said["rejected"]] == ["2.0.0", "1.0.0"]


def test_what_is_not_answered_is_told_beside_what_is(capsys: pytest.CaptureFixture[str]) -> None:
    done = Ran(capsys, "why", "app/wrong")
    assert done.code == 1
    assert "newest in series 2" in done.out
    assert "web has no release in series 3 (spec.components[0].type)" in done.err


@pytest.mark.parametrize(
    ("name", "code", "complaint"),
    [
        ("app/none", 1, "there is no application none in the namespace default"),
        ("shop", 2, "'shop' is not an ActionSet, application, package or composite"),
        ("app/", 2, "write actionset/NAME, app/NAME, package/NAME or xr/NAME"),
    ],
)
def test_what_is_not_there_is_told(
    capsys: pytest.CaptureFixture[str], name: str, code: int, complaint: str
) -> None:
    done = Ran(capsys, "why", name)
    assert (done.code, complaint in done.err) == (code, True)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("up", "--capabilities", "definitions"), "definitions needs the capability apis"),
        (("run", "--capabilities", "definitions"), "definitions needs the capability apis"),
        (
            ("run", "--capabilities", "functions"),
            "the capability apis is required on a cluster",
        ),
        (("install", "--image", "a", "--capabilities", ""), "the capability apis is required"),
    ],
)
def test_capabilities_that_do_not_go_together_are_told(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], complaint: str
) -> None:
    done = Ran(capsys, *arguments)
    assert (done.code, complaint in done.err) == (2, True)
