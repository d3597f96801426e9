"""The page in a real browser: what a reader sees, does and is spared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.definitions.samples import application, definition, entry
from tests.web.browser import NAMES, Tab, browser, program
from tests.web.visiting import Visited, visited

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        program() is None,
        reason=f"there is no browser ({', '.join(NAMES)}) on this machine, so NO page was opened:"
        " on Debian, apt install chromium",
    ),
]
LINEAGE = "/lineages/definitions/ComponentDefinition/vela-system/web"
HOSTILE = "<img src=x onerror=document.title='owned'>"


@pytest.fixture(scope="module")
def around() -> Iterator[Visited]:
    with visited() as found:
        old = entry("1.1.0", deprecated={"since": "2.0", "use": HOSTILE})
        found.platform.publish(definition("web", "1.0.0", old, "2.0.0"))
        for number in range(3):
            found.platform.deploy(application(f"shop-{number}", "web@1"))
        yield found


@pytest.fixture(scope="module")
def tab(around: Visited, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    executable = program()
    assert executable is not None
    with browser(executable, tmp_path_factory.mktemp("browser")) as opened:
        opened.go(around.server.page)
        yield opened


def at(around: Visited, path: str) -> str:
    return f"http://{around.visitor.host}{path}"


def test_the_printed_address_opens_the_page_and_does_not_stay(tab: Tab, around: Visited) -> None:
    tab.go(around.server.page)
    assert tab.run("location.href") == at(around, "/")
    assert tab.run("document.cookie") == ""
    assert "web 1.1.0 is deprecated since 2.0.0" in tab.text()
    assert around.visitor.token not in tab.run("document.documentElement.outerHTML")


def test_nothing_is_asked_of_anyone_else_and_nothing_is_refused(tab: Tab, around: Visited) -> None:
    for path in ("/", LINEAGE, "/dependents", "/runs"):
        tab.go(at(around, path))
        tab.eventually("document.getElementById('live').textContent === 'live'")
        assert tab.complaints == []
        assert all(url.startswith(at(around, "/")) for url in tab.requested)


def test_hostile_texts_stay_texts(tab: Tab, around: Visited) -> None:
    tab.go(at(around, LINEAGE))
    assert HOSTILE in tab.text()
    assert tab.run("document.title") == "web · polyver"
    assert tab.run("document.querySelectorAll('main img').length") == 0


def test_a_new_release_appears_by_itself_and_what_was_open_stays_open(
    tab: Tab, around: Visited
) -> None:
    tab.go(at(around, "/lineages/functions/Expired"))
    tab.eventually("document.getElementById('live').textContent === 'live'")
    tab.run("document.querySelector('details').open = true")
    tab.run("window.same = true")
    around.create(
        "Blueprint",
        "/apis/cr.kanister.io/v1alpha1/namespaces/default/blueprints",
        {
            "metadata": {"name": "appears"},
            "actions": {
                "run": {
                    "phases": [{"func": "Expired", "name": "a", "args": {"backups": [], "keep": 1}}]
                }
            },
        },
    )
    tab.eventually("document.getElementById('rows').innerText.includes('default/appears')")
    assert tab.run("window.same") is True
    assert tab.run("document.querySelector('details').open") is True


def test_what_is_sought_is_shown_while_one_writes(tab: Tab, around: Visited) -> None:
    tab.go(at(around, LINEAGE))
    tab.run("document.body.focus()")
    tab.press("/")
    assert tab.run("document.activeElement.type") == "search"
    for key in "shop-2":
        tab.press(key)
    tab.eventually("document.querySelectorAll('#rows tbody tr').length === 1")
    assert "shop-2" in tab.text("#rows")
    assert tab.run("new URL(location.href).searchParams.get('q')") == "shop-2"
    assert tab.run("document.activeElement.value") == "shop-2"


def test_a_keyboard_reaches_the_page_behind_the_navigation(tab: Tab, around: Visited) -> None:
    tab.go(at(around, "/"))
    tab.press("Tab")
    assert tab.run("document.activeElement.className") == "skip"
    tab.press("Enter")
    tab.eventually("document.activeElement.id === 'main'")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1300])
def test_it_fits_its_screen_and_can_be_read(
    tab: Tab, around: Visited, width: int, dark: bool
) -> None:
    tab.resize(width, dark=dark)
    for path in ("/", LINEAGE, "/dependents"):
        tab.go(at(around, path))
        assert tab.run("document.documentElement.scrollWidth") <= width
        assert contrasts(tab) == []


_CONTRAST = Path(__file__).with_name("contrast.js").read_text()


def contrasts(tab: Tab) -> list[str]:
    """Texts that differ too little from what is behind them, by the usual measure of 4.5 to 1."""
    return list(json.loads(tab.run(f"{_CONTRAST}; JSON.stringify(tooFaint(4.5))")))


def test_it_is_there_without_scripts(tab: Tab, around: Visited) -> None:
    tab.ask("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.go(at(around, f"{LINEAGE}?q=shop-1"))
        found = tab.ask("DOM.getDocument", depth=-1)
        shown = json.dumps(found)
        assert "Application default/shop-1" in shown
        assert "Application default/shop-2" not in shown
        assert "not live" in shown
    finally:
        tab.ask("Emulation.setScriptExecutionDisabled", value=False)
