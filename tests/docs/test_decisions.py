"""The decision pages: each has a title and a status, and the index repeats both."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
PAGES = sorted(FOLDER.glob("[0-9]*.md"))
LINK = re.compile(r"\[(\d{4})\]\(([^)]+)\)")
STATUS = re.compile(r"in force|superseded by LINK|partly superseded by LINK, the rule is now: .+")


def title_of(page: Path) -> str:
    return page.read_text().splitlines()[0].partition(". ")[2]


def status_of(page: Path) -> str:
    found = re.findall(r"^Status: (.*)$", page.read_text(), re.MULTILINE)
    assert len(found) == 1, f"{page.name} has {len(found)} lines with a status"
    return str(found[0])


def slug(text: str) -> list[str]:
    return re.sub(r"[^a-z0-9]+", " ", text.lower().replace("'", "")).split()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name[:4])
def test_a_decision_is_named_after_its_title(page: Path) -> None:
    """A file name may leave out words of the title, and adds none."""
    number, words = page.stem[:4], page.stem[5:].split("-")
    assert page.read_text().startswith(f"# {int(number)}. ")
    rest = iter(slug(title_of(page)))
    assert all(word in rest for word in words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name[:4])
def test_a_decision_that_is_superseded_names_its_successor(page: Path) -> None:
    status = status_of(page)
    assert STATUS.fullmatch(LINK.sub("LINK", status)), status
    for number, name in LINK.findall(status):
        assert name.startswith(f"{number}-")
        later = FOLDER / name
        assert later in PAGES
        assert later != page
        assert f"]({page.name})" in later.read_text(), f"{name} does not name what it supersedes"


def test_the_index_has_every_decision_with_its_title_and_status() -> None:
    index = (FOLDER / "README.md").read_text()
    rows = [line for line in index.splitlines() if line.startswith("| [")]
    assert rows == [
        f"| [{page.name[:4]}]({page.name}) | {title_of(page)} | {status_of(page)} |"
        for page in PAGES
    ]
