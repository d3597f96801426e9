"""The pages of rollouts: the list, one rollout, and the links between them and lineages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.rollouts.composing import COMPOSITION, FUNCTION, Composing, packages
from tests.rollouts.releasing import BAD, ROLLOUTS, Releasing, version
from tests.walks.support import eventually
from tests.web.browser import NAMES, Tab, browser, program
from tests.web.test_browser import contrasts
from tests.web.visiting import Visitor

from polyver.testing import EmbeddedServer

LINEAGE = "/lineages/definitions/ComponentDefinition/vela-system/web"
ROLLOUT = "/rollouts/vela-system/web-1.0.1"
FREEZES = "/api/v1/namespaces/polyver-system/configmaps"
APPROVED = {"share": "50%", "pause": {"until": "Approved"}}
HOSTILE = "<img src=x onerror=document.title='owned'>"
FAILS = f"{{{{ fail `{HOSTILE}` }}}}"
FAILS_FOR_WEAK = f"{{{{ if .parameter.weak }}}}{FAILS}{{{{ end }}}}\ndata: {{from: '1.0.1'}}"


class Looking(Releasing):
    """Someone who releases versions, and looks at the page."""

    def __init__(self, server: EmbeddedServer) -> None:
        super().__init__(server)
        self.page = server.page
        self.visitor = Visitor(server.page)

    def sees(self, path: str, *words: str) -> str:
        """Wait until a page has all of these words; return everything that it says."""
        return str(
            eventually(
                lambda: (
                    found
                    if all(each in (found := self.visitor.see(path).words) for each in words)
                    else None
                )
            )
        )


@pytest.fixture
def looking() -> Iterator[Looking]:
    with EmbeddedServer(capabilities=("apis", "definitions"), page=True) as server:
        yield Looking(server)


@pytest.fixture
def paused(looking: Looking) -> Looking:
    """A rollout whose first step waits for approval, with one follower that will fail."""
    looking.publish(version("1.0.0"))
    looking.applications(5)
    looking.application("app-weak", properties={"weak": True})
    looking.policy(
        {"labels": {"no": "one"}},
        APPROVED,
        {"share": "100%"},
        preflight={"failures": 1},
        checks=[{"ready": {"failing": 1}}],
    )
    looking.publish(version("1.0.1", FAILS_FOR_WEAK))
    looking.reaches("Paused", "2/3")
    looking.sees(ROLLOUT, "step 2 waits for approval")
    return looking


def test_without_policies_the_list_says_how_to_begin(looking: Looking) -> None:
    words = looking.sees("/rollouts", "There are no policies, so every new version is used at once")
    assert "create a RolloutPolicy" in words
    assert "docs/how-to/roll-out-a-release.md" in words
    assert "There are no rollouts." in words


def test_with_a_policy_the_list_says_when_a_rollout_starts(looking: Looking) -> None:
    looking.publish(version("1.0.0"))
    looking.policy({"labels": {"tier": "dev"}}, {"share": "100%"})
    words = looking.sees("/rollouts", "careful", "applies to 1 lineage")
    assert "polyver starts one when a new version of a target is published" in words
    assert "label tier=dev → 100%" in words


def test_the_list_shows_where_a_rollout_is(paused: Looking) -> None:
    found = paused.visitor.data("/rollouts")
    [shown] = found["items"]
    counts = paused.status()["dependents"]
    assert (shown["name"], shown["to"]) == ("vela-system/web-1.0.1", "1.0.1")
    assert (shown["state"], shown["step"], shown["stepsTotal"]) == ("Paused", 2, 3)
    assert shown["counts"] == {**counts, "idle": 0, "running": 0}
    assert shown["lineage"] == {
        "capability": "definitions",
        "path": "ComponentDefinition/vela-system/web",
    }
    words = paused.visitor.see("/rollouts").words
    assert f"{counts['moved']} of 6 moved" in words
    assert "2 of 3" in words


def test_a_rollout_shows_its_steps_checks_preflight_and_history(paused: Looking) -> None:
    found = paused.visitor.data(ROLLOUT)
    assert [each["state"] for each in found["steps"]] == ["done", "paused", "not started"]
    assert [each["adds"] for each in found["steps"]] == ["label no=one", "50%", "100%"]
    assert found["steps"][1]["pause"] == "until it is approved"
    [check] = found["checks"]
    assert (check["name"], check["rule"]) == ("ready", "healthy within 10m, at most 1 failing")
    assert check["result"] == "Passed"
    preflight = found["preflight"]
    assert (preflight["changed"], preflight["fails"]) == (5, 1)
    assert preflight["failures"][0]["names"] == ["default/app-weak"]
    assert [(each["state"], each["step"]) for each in found["history"]] == [*paused.history()]
    words = paused.visitor.see(ROLLOUT).words
    assert "ConfigMaps: data.from 1.0.0 → 1.0.1" in words
    assert "default/app-0" in words
    assert "4 more names" in words
    [group] = preflight["groups"]
    example = group["example"]
    assert (example["dependent"], example["object"]) == (
        "default/app-0",
        "ConfigMap default/app-0 (v1)",
    )
    assert "-  from: 1.0.0\n+  from: 1.0.1" in example["diff"]
    assert "ConfigMap default/app-0 (v1) of default/app-0" in words
    assert "+ from: 1.0.1" in words


def test_a_rollout_shows_the_commands_for_its_state(paused: Looking) -> None:
    def commands() -> list[str]:
        found = paused.visitor.data(ROLLOUT)["commands"]
        return [each["command"].removeprefix("polyver rollout ") for each in found]

    name = "web-1.0.1 -n vela-system"
    assert commands() == [f"promote {name}", f"pause {name}", f"abort {name}"]
    paused.ask(paused=True)
    eventually(lambda: commands() == [f"promote {name}", f"resume {name}", f"abort {name}"])
    paused.ask(aborted=True)
    paused.reaches("Aborted", "2/3")
    again = "start ComponentDefinition/web --to 1.0.1 --policy careful -n vela-system"
    eventually(lambda: commands() == [again])
    steps = paused.visitor.data(ROLLOUT)["steps"]
    assert [each["state"] for each in steps] == ["taken back", "taken back", "not started"]


def test_a_held_rollout_shows_why_and_how_to_start_it(looking: Looking) -> None:
    looking.publish(version("1.0.0"))
    looking.applications(3)
    looking.policy({"share": "100%"}, windows=[{"days": ["Mon"], "from": "09:00", "to": "16:00"}])
    looking.publish(version("1.0.1", BAD))
    looking.reaches("Held", "0/1")
    words = looking.sees(ROLLOUT, "3 would fail, and 0 are allowed")
    assert "start the rollout in spite of the preflight" in words
    assert "this release is broken" in words
    assert "Mon from 09:00 to 16:00 UTC" in words
    assert "not evaluated yet" in words


def test_active_rollouts_come_first_and_can_be_filtered(paused: Looking) -> None:
    paused.publish(version("1.0.0"), of="other")
    paused.policy({"share": "100%"}, of="other")
    paused.publish(version("1.0.1"), of="other")
    paused.reaches("Completed", "1/1", "other-1.0.1")
    paused.sees("/rollouts", "Completed")

    def names(**query: str) -> list[str]:
        return [each["name"] for each in paused.visitor.data("/rollouts", **query)["items"]]

    assert names() == ["vela-system/web-1.0.1", "vela-system/other-1.0.1"]
    assert names(state="active") == ["vela-system/web-1.0.1"]
    assert names(state="Completed") == ["vela-system/other-1.0.1"]
    assert names(q="other") == ["vela-system/other-1.0.1"]
    assert "No rollout matches" in paused.visitor.see("/rollouts", q="nothing").words


def test_a_freeze_is_shown_until_it_ends(paused: Looking) -> None:
    data = {"reason": "incident 42"}
    metadata = {"name": "polyver-rollout-freeze"}
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    paused.request("POST", FREEZES, made)
    for path in ("/rollouts", ROLLOUT):
        assert "polyver rollout unfreeze" in paused.sees(path, "are frozen (incident 42)")
    paused.request("DELETE", f"{FREEZES}/polyver-rollout-freeze")
    eventually(lambda: "frozen" not in paused.visitor.see(ROLLOUT).words)
    assert paused.visitor.data("/rollouts")["freeze"] is None


def test_a_release_links_to_the_rollout_that_holds_it(paused: Looking) -> None:
    paused.sees(LINEAGE, "held by rollout web-1.0.1, step 2")
    links = [each.get("href") for name, each in paused.visitor.see(LINEAGE).tags if name == "a"]
    assert ROLLOUT in links
    links = [each.get("href") for name, each in paused.visitor.see(ROLLOUT).tags if name == "a"]
    assert LINEAGE in links


@pytest.mark.parametrize(
    ("target", "path"),
    [(COMPOSITION, "composition/stacks"), (FUNCTION, "maker")],
    ids=["composition", "function"],
)
def test_revisions_of_compositions_link_to_their_rollouts(
    target: dict[str, str], path: str, tmp_path: Path
) -> None:
    capabilities, file = ("apis", "compositions"), packages(tmp_path)
    with EmbeddedServer(capabilities=capabilities, packages=file, page=True) as server:
        platform, visitor = Composing(server), Visitor(server.page)
        platform.prepare()
        platform.stacks(4)
        platform.policy(target, APPROVED, {"share": "100%"})
        name = platform.publish(target, "better")
        platform.reaches(name, "Paused", "1/2")
        lineage = {"capability": "compositions", "path": path}
        rollout = f"polyver-system/{name}"
        eventually(lambda: visitor.data(f"/rollouts/{rollout}")["lineage"] == lineage)

        def holder() -> str:
            releases = visitor.lineage("compositions", path)["releases"]
            return str(next(each.get("rollout") for each in releases if each["name"] == name))

        eventually(lambda: holder() == rollout)


def test_a_deleted_rollout_disappears(paused: Looking) -> None:
    assert paused.visitor.see("/rollouts/vela-system/nothing").status == 404
    paused.request("DELETE", f"{ROLLOUTS}/web-1.0.1")
    eventually(lambda: paused.visitor.see(ROLLOUT).status == 404)
    assert paused.visitor.data("/rollouts")["items"] == []


def test_a_control_plane_without_rollouts_has_no_page_for_them() -> None:
    with EmbeddedServer(capabilities=("apis",), page=True) as server:
        visitor = Visitor(server.page)
        links = [each.get("href") for name, each in visitor.see("/").tags if name == "a"]
        assert "/rollouts" not in links
        assert visitor.see("/rollouts").status == 404


# In a browser.


@pytest.fixture
def tab(paused: Looking, tmp_path: Path) -> Iterator[Tab]:
    executable = program()
    if executable is None:
        pytest.skip(f"there is no browser ({', '.join(NAMES)}) on this machine")
    with browser(executable, tmp_path) as opened:
        opened.go(paused.page)
        yield opened


@pytest.mark.browser
def test_a_browser_shows_rollouts_on_every_screen_and_live(tab: Tab, paused: Looking) -> None:
    at = f"http://{paused.visitor.host}"
    for width in (390, 1280):
        for dark in (False, True):
            tab.resize(width, dark=dark)
            for path in ("/rollouts", ROLLOUT, LINEAGE):
                tab.go(f"{at}{path}")
                assert tab.run("document.documentElement.scrollWidth") <= width
                assert contrasts(tab) == []
                assert tab.complaints == []
    tab.go(f"{at}{ROLLOUT}")
    assert "healthy: " in tab.run("document.querySelector('svg.wide').getAttribute('aria-label')")
    assert HOSTILE in tab.text()
    assert tab.run("document.querySelectorAll('main img').length") == 0
    tab.eventually("document.getElementById('live').textContent === 'live'")
    tab.run("document.querySelector('details').open = true")
    paused.ask(approvedStep=2)
    tab.eventually("document.getElementById('about').innerText.includes('Completed')")
    assert tab.run("document.querySelector('details').open") is True
    assert "all steps have passed" in tab.text("#about")
