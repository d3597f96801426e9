"""What the page knows and tells, whoever wrote it there."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.core import (
    UNSPECIFIED,
    Dependent,
    Exact,
    Gate,
    Lineage,
    NoMatch,
    Notes,
    Policy,
    Release,
    Selector,
    SemVer,
    Series,
    Stage,
    answers,
    resolve,
)
from polyver.core import Index as CoreIndex
from polyver.web._data import (
    LINEAGES,
    RELEASES,
    dependent_data,
    dependents_data,
    lineage_data,
    overview_data,
    runs_data,
    why_data,
)
from polyver.web._html import tag
from polyver.web._paging import PAGE
from polyver.web.view_model import (
    DependentKey,
    LineageKey,
    LineageRequest,
    PageLineage,
    PageModel,
    PageRun,
    PageRunStep,
    UnresolvedRequest,
)

WHERE = LineageKey("definitions", "ComponentDefinition/vela-system/web")
POLICY = Policy(
    "example", usable=frozenset({Stage.PUBLISHED, Stage.DEPRECATED}), best="newest release"
)
NOTES = Notes(since=SemVer.parse("2.0.0"), use="2.0.0")


def releases(*versions: str, deprecated: str = "") -> list[Release]:
    return [
        Release(
            SemVer.parse(each),
            stage=Stage.DEPRECATED if each == deprecated else Stage.PUBLISHED,
            notes=NOTES if each == deprecated else Notes(),
        )
        for each in versions
    ]


def shown(*versions: str, deprecated: str = "") -> PageLineage:
    lineage = Lineage("web", releases(*versions, deprecated=deprecated))
    return PageLineage(WHERE, lineage, POLICY, "ComponentDefinition", scope="vela-system")


def asked(name: str, selector: Selector = UNSPECIFIED, at: str = "spec.type") -> LineageRequest:
    return LineageRequest(Dependent(name, at, uid=name), WHERE, str(selector), selector, POLICY)


def book_of(*names: str, selector: Selector = UNSPECIFIED) -> PageModel:
    book = PageModel()
    book.show(shown("1.0.0", "1.1.0", "2.0.0", deprecated="1.1.0"))
    for name in names:
        book.ask("definitions", name, [asked(name, selector)])
    return book


# Lineages.


def test_a_lineage_is_told_with_its_releases_highest_first() -> None:
    data = lineage_data(book_of("Application a/b"), WHERE)
    assert data is not None
    assert [each["name"] for each in data["releases"]] == ["2.0.0", "1.1.0", "1.0.0"]
    assert (
        data["releases"][1] | {"stage": "deprecated", "since": "2.0.0", "use": "2.0.0"}
        == (data["releases"][1])
    )
    assert data["default"] == {"release": "2.0.0", "reason": "newest release"}
    assert data["releases"][0]["users"] == 1


def test_what_is_deprecated_and_used_comes_before_what_nobody_uses() -> None:
    book = book_of("Application a/b", selector=Series(1))
    book.ask("definitions", "Application a/c", [asked("Application a/c", Series(3))])
    concerns = overview_data(book)["attention"]
    assert [(each["level"], each["dependents"]) for each in concerns] == [
        ("error", 1),
        ("warning", 1),
    ]
    assert concerns[0]["fact"] == "web has no release in series 3"
    assert concerns[1]["fact"] == "web 1.1.0 is deprecated since 2.0.0; use 2.0.0"
    book.ask("definitions", "Application a/b")
    levels = [(each["level"], each["release"]) for each in overview_data(book)["attention"]]
    assert levels == [("error", "-"), ("note", "1.1.0")]


def test_a_place_is_told_why_and_why_not_others() -> None:
    book = book_of("Application a/b", selector=Series(1))
    data = why_data(book, WHERE, DependentKey("Application a/b", "spec.type"))
    assert data is not None
    assert (data["release"], data["reason"]) == ("1.1.0", "newest in series 1")
    rejected = [(each["release"], each["why"]) for each in data["rejected"]]
    assert rejected == [("2.0.0", "not in series 1"), ("1.0.0", "1.1.0 is newer")]


def test_who_gets_nothing_is_told_what_there_is() -> None:
    book = book_of("Application a/b", selector=Exact(SemVer.parse("9.9.9")))
    data = why_data(book, WHERE, DependentKey("Application a/b", "spec.type"))
    assert data is not None
    assert data["problem"] == "web has no 9.9.9"
    assert len(data["rejected"]) == 3


def test_a_release_that_comes_moves_who_follows() -> None:
    book = book_of("Application a/b")
    before = book.revision
    book.show(shown("1.0.0", "2.0.0", "2.1.0"))
    data = lineage_data(book, WHERE)
    assert data is not None
    assert data["uses"]["items"][0]["release"] == "2.1.0"
    assert book.revision > before


def test_a_lineage_that_goes_is_no_longer_told_and_its_users_are() -> None:
    book = book_of("Application a/b")
    book.hide(WHERE)
    assert lineage_data(book, WHERE) is None
    told = dependent_data(book, "Application a/b")
    assert told is not None
    assert told["uses"][0]["problem"] == "its lineage does not exist"
    book.show(shown("3.0.0"))
    again = lineage_data(book, WHERE)
    assert again is not None
    assert again["uses"]["items"][0]["release"] == "3.0.0"


def test_a_dependent_of_two_capabilities_has_the_places_of_both() -> None:
    book = book_of("Application a/b")
    other = UnresolvedRequest(Dependent("Application a/b", "metadata.x"), "v9", "there is no v9")
    same = UnresolvedRequest(Dependent("Application a/b", "spec.type"), "v9", "there is no v9")
    book.ask("other", "Application a/b", [same])
    book.ask("other", "Application a/b")
    book.ask("apis", "Application a/b", [other])
    told = dependent_data(book, "Application a/b")
    assert told is not None
    assert [each["at"] for each in told["uses"]] == ["metadata.x", "spec.type"]
    book.ask("definitions", "Application a/b")
    told = dependent_data(book, "Application a/b")
    assert told is not None
    assert [each["at"] for each in told["uses"]] == ["metadata.x"]
    book.ask("apis", "Application a/b")
    assert dependent_data(book, "Application a/b") is None
    assert overview_data(book)["dependents"] == 0


# Pages of many.


@pytest.mark.parametrize(
    ("page", "first", "count"), [(1, 0, PAGE), (3, 2 * PAGE, 20), (99, 2 * PAGE, 20), (0, 0, PAGE)]
)
def test_many_are_told_in_pages(page: int, first: int, count: int) -> None:
    names = [f"Application a/{number:04}" for number in range(2 * PAGE + 20)]
    book = book_of(*reversed(names))
    data = lineage_data(book, WHERE, page=page)
    assert data is not None
    found = [each["name"] for each in data["uses"]["items"]]
    assert found == names[first : first + count]
    assert [each["name"] for each in dependents_data(book, page=page)["items"]] == found


def test_many_lineages_and_releases_are_bounded() -> None:
    book = PageModel()
    for number in range(LINEAGES + 3):
        lineage = Lineage("web", releases("1.0.0"))
        where = LineageKey("definitions", f"ComponentDefinition/a/{number:04}")
        book.show(PageLineage(where, lineage, POLICY, "ComponentDefinition"))
    assert [len(overview_data(book, page=page)["lineages"]) for page in (1, 2)] == [LINEAGES, 3]
    assert overview_data(book)["total"] == LINEAGES + 3
    lineage = Lineage("web", releases(*(f"1.{number}.0" for number in range(RELEASES + 9))))
    book.show(PageLineage(WHERE, lineage, POLICY, "ComponentDefinition"))
    name = "Application a/b"
    book.ask("definitions", name, [asked(name, Exact(SemVer.parse("1.0.0")))])
    data = lineage_data(book, WHERE)
    assert data is not None
    names = [each["name"] for each in data["releases"]]
    assert (len(names), names[-1]) == (RELEASES + 1, "1.0.0")
    assert data["releasesTotal"] == RELEASES + 9


def test_a_search_finds_names_and_places_of_one_release() -> None:
    book = book_of("Application a/shop", "Application b/shop", "Application b/cart")
    book.ask("definitions", "Application c/shop", [asked("Application c/shop", Series(1))])
    data = lineage_data(book, WHERE, text="SHOP", release="2.0.0")
    assert data is not None
    names = [each["name"] for each in data["uses"]["items"]]
    assert names == ["Application a/shop", "Application b/shop"]
    assert [each["name"] for each in dependents_data(book, text="cart")["items"]] == [
        "Application b/cart"
    ]


def test_runs_are_told_newest_first_and_by_state() -> None:
    book = PageModel()
    step = PageRunStep("weekly", "choose", LineageKey("functions", "Expired"), "v0.0.0", "complete")
    for number, state in enumerate(("complete", "failed", "running")):
        name = f"ActionSet a/{number}"
        book.run(name, PageRun(name, state, (step,), created=f"2026-01-0{number + 1}T00:00:00Z"))
    assert [run["state"] for run in runs_data(book)["items"]] == ["running", "failed", "complete"]
    assert runs_data(book, state="failed")["total"] == 1
    assert runs_data(book)["states"] == {"complete": 1, "failed": 1, "running": 1}
    book.run("ActionSet a/1", None)
    assert runs_data(book, state="failed")["total"] == 0


# Properties.

VERSIONS = ("1.0.0", "1.1.0", "2.0.0", "2.1.0-rc.1")
selectors: st.SearchStrategy[Selector] = st.one_of(
    st.just(UNSPECIFIED),
    st.sampled_from([Series(1), Series(2), Series(3), Series(1, 1)]),
    st.sampled_from([Exact(SemVer.parse(each)) for each in (*VERSIONS, "9.0.0")]),
)
changes = st.lists(
    st.one_of(
        st.tuples(st.integers(0, 5), st.lists(selectors, max_size=3)),
        st.sets(st.sampled_from(VERSIONS), min_size=1),
        st.none(),
    ),
    max_size=20,
)


@given(changes)
def test_whatever_happened_what_is_told_is_what_is(
    happened: list[tuple[int, list[Selector]] | set[str] | None],
) -> None:
    """A book that has seen changes tells the same as one that is told how it ended."""
    book, last, places = PageModel(), None, {}
    for each in happened:
        match each:
            case (number, wanted):
                name = f"Application a/{number}"
                now = [asked(name, one, f"spec[{n}]") for n, one in enumerate(wanted)]
                book.ask("definitions", name, now)
                places[name] = now
            case None:
                book.hide(WHERE)
                last = None
            case _:
                last = shown(*sorted(each))
                book.show(last)
    fresh = PageModel()
    if last is not None:
        fresh.show(last)
    for name, now in places.items():
        fresh.ask("definitions", name, now)
    assert lineage_data(book, WHERE) == lineage_data(fresh, WHERE)
    assert overview_data(book) == overview_data(fresh)
    assert dependents_data(book) == dependents_data(fresh)


gates = st.builds(
    Gate, st.just("r"), st.integers(1, 3), st.sampled_from([0.0, 0.3, 1.0]), st.just(({"a": "b"},))
)


@given(
    st.lists(st.tuples(selectors, st.booleans()), max_size=30),
    st.dictionaries(st.sampled_from(VERSIONS), st.one_of(st.none(), gates), min_size=1),
)
def test_answers_for_all_at_once_are_those_for_each(
    wanted: list[tuple[Selector, bool]], known: dict[str, Gate | None]
) -> None:
    lineage = Lineage("web", [Release(SemVer.parse(v), gate=gate) for v, gate in known.items()])
    people = {
        f"d{number}": (
            Dependent(f"d{number}", uid=str(number), labels={"a": "b"} if has else {}),
            s,
        )
        for number, (s, has) in enumerate(wanted)
    }
    index = CoreIndex.of((one, "web", selector, POLICY) for one, selector in people.values())
    told = {
        one.name: _told(answer.found)
        for answer in answers(index, lineage)
        for one in answer.dependents
    }
    assert told == {name: _asked(lineage, *each) for name, each in people.items()}


def _asked(lineage: Lineage, dependent: Dependent, selector: Selector) -> str:
    try:
        return _told(resolve(lineage, selector, POLICY, dependent))
    except NoMatch as error:
        return _told(error)


def _told(found: object) -> str:
    return str(getattr(getattr(found, "release", None), "name", "nothing"))


class _Read(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.values: list[str | None] = []
        self.texts = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.values += [value for _, value in attrs]

    def handle_data(self, data: str) -> None:
        self.texts += data


@given(st.text().filter(lambda text: "\r" not in text and "\0" not in text))
def test_no_text_becomes_markup(text: str) -> None:
    read = _Read(tag("p", text, [text], title=text))
    assert (read.tags, read.texts, read.values) == (["p"], text + text, [text])
