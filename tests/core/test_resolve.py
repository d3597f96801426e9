"""Resolution: what is chosen, and what is said about it and about everything else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import strategies as our

from polyver.core import (
    UNSPECIFIED,
    Dependent,
    Exact,
    Gate,
    Gone,
    Labels,
    Lineage,
    NoMatch,
    Notes,
    Pin,
    Policy,
    Release,
    Resolution,
    Selector,
    SemVer,
    Serial,
    Series,
    Stage,
    Unspecified,
    resolve,
)

NEWEST = Policy(
    "newest", usable=frozenset({Stage.PUBLISHED, Stage.DEPRECATED}), best="newest release"
)
policies = st.builds(
    Policy,
    st.just("any"),
    usable=st.frozensets(st.sampled_from(Stage), min_size=1),
    best=st.just("newest"),
    preferred=st.frozensets(st.sampled_from(Stage), max_size=2),
    otherwise=st.none() | st.just(SemVer.parse("0.0.0")),
    prereleases=st.booleans(),
    keeps=st.frozensets(st.sampled_from([Unspecified, Labels, Series])),
    moves_when_unmatched=st.booleans(),
    refuses=st.dictionaries(st.just(Series), st.just("not here")),
)


@st.composite
def questions(draw: st.DrawFn) -> tuple[Lineage, Selector, Policy, Dependent]:
    lineage = draw(our.lineages)
    if len(lineage) == 1:
        lineage = Lineage("web", lineage.releases, versioned=draw(st.booleans()))
    known = [Exact(r.version, wish=wish) for r in lineage for wish in (False, True)]
    selectors = st.sampled_from(known) | our.selectors if known else our.selectors
    return lineage, draw(selectors), draw(policies), draw(our.dependents(lineage))


def asks_for(release: Release, selector: Selector) -> bool:
    match selector:
        case Exact():
            return release.version == selector.wanted
        case Series():
            return isinstance(release.version, SemVer) and release.version in selector
        case Labels():
            return dict(selector.wanted).items() <= release.labels.items()
        case _:
            return True


def is_allowed(release: Release, selector: Selector, policy: Policy, dependent: Dependent) -> bool:
    """Every rule for being chosen by a selector, one release at a time."""
    return (
        asks_for(release, selector)
        and release.stage in policy.usable
        and (isinstance(selector, Exact) or policy.prereleases or not is_prerelease(release))
        and (
            not isinstance(selector, Unspecified)
            or not policy.preferred
            or release.stage in policy.preferred
        )
        and is_seen(release, selector, dependent)
    )


def is_seen(release: Release, selector: Selector, dependent: Dependent) -> bool:
    """Gates are for followers, and nobody loses the release in use unless it is taken back."""
    gate = release.gate
    exact = isinstance(selector, Exact) and not selector.wish
    if gate is None or exact or dependent.lock is not None or gate.admits(dependent):
        return True
    return dependent.pin == release.pin and not gate.returns


def is_prerelease(release: Release) -> bool:
    return isinstance(release.version, SemVer) and release.version.is_prerelease


def attempt(
    lineage: Lineage, selector: Selector, policy: Policy, dependent: Dependent
) -> Resolution | NoMatch:
    try:
        return resolve(lineage, selector, policy, dependent)
    except NoMatch as error:
        return error


@given(questions())
def test_resolve_never_returns_what_its_policy_forbids(
    question: tuple[Lineage, Selector, Policy, Dependent],
) -> None:
    lineage, selector, policy, dependent = question
    found = attempt(*question)
    if isinstance(found, NoMatch):
        return
    chosen = found.release
    assert chosen in lineage.releases
    assert type(selector) not in policy.refuses
    assert chosen.stage in policy.usable
    if is_allowed(chosen, selector, policy, dependent):
        return
    # The exceptions. A pin may be kept where nothing else can be seen; all others must be visible.
    if dependent.pin == chosen.pin and found.reason.startswith("kept: "):
        return
    assert is_seen(chosen, selector, dependent)
    wished = isinstance(selector, Exact) and selector.wish and bool(found.warnings)
    alone = not lineage.versioned and bool(found.warnings)
    fallback = chosen.version == policy.otherwise
    assert wished or alone or fallback
    assert wished or alone or isinstance(selector, Unspecified)


@given(questions())
def test_without_exceptions_the_highest_allowed_release_is_chosen(
    question: tuple[Lineage, Selector, Policy, Dependent],
) -> None:
    lineage, selector, policy, dependent = question
    lineage = Lineage("web", lineage.releases)
    dependent = replace(dependent, pin=None)
    policy = replace(policy, otherwise=None, refuses={})
    selector = Exact(selector.wanted) if isinstance(selector, Exact) else selector
    allowed = [r for r in lineage if is_allowed(r, selector, policy, dependent)]
    found = attempt(lineage, selector, policy, dependent)
    if allowed:
        assert isinstance(found, Resolution)
        assert found.release is allowed[-1]
    else:
        assert isinstance(found, NoMatch)


@given(questions())
def test_every_other_release_is_accounted_for(
    question: tuple[Lineage, Selector, Policy, Dependent],
) -> None:
    lineage = question[0]
    found = attempt(*question)
    chosen = [found.release.name] if isinstance(found, Resolution) else []
    others = [rejection.release.name for rejection in found.rejected]
    assert sorted(others + chosen) == sorted(release.name for release in lineage)
    assert all(rejection.why for rejection in found.rejected)


@given(questions())
def test_an_error_says_where_and_what_is_known(
    question: tuple[Lineage, Selector, Policy, Dependent],
) -> None:
    found = attempt(*question)
    if isinstance(found, NoMatch):
        assert found.at == question[3].at
        assert found.at in str(found)
        assert "web" in str(found)
        assert set(found.nearest) <= set(found.known)


def lineage(*texts: str) -> Lineage:
    return Lineage("web", [Release(SemVer.parse(text)) for text in texts])


def explained(found: Resolution | NoMatch) -> dict[str, str]:
    return {rejection.release.name: rejection.why for rejection in found.rejected}


def test_a_series_chooses_its_newest_and_says_why_not_the_others() -> None:
    found = resolve(lineage("1.2.2", "1.2.3", "1.3.0-rc.1", "2.0.0"), Series(1, 2), NEWEST)
    assert found.release.name == "1.2.3"
    assert found.reason == "newest in series 1.2"
    assert explained(found) == {
        "2.0.0": "not in series 1.2",
        "1.3.0-rc.1": "not in series 1.2",
        "1.2.2": "1.2.3 is newer",
    }


def test_a_series_follows_a_new_patch_release() -> None:
    before = lineage("1.2.3", "1.3.0")
    after = before.publish(Release(SemVer.parse("1.2.5")))
    assert resolve(before, Series(1, 2), NEWEST).release.name == "1.2.3"
    assert resolve(after, Series(1, 2), NEWEST).release.name == "1.2.5"


def test_a_prerelease_is_chosen_only_exactly_or_where_the_policy_allows_it() -> None:
    known = lineage("1.2.0", "1.3.0-rc.1")
    assert resolve(known, Series(1), NEWEST).release.name == "1.2.0"
    assert resolve(known, UNSPECIFIED, NEWEST).release.name == "1.2.0"
    assert resolve(known, Exact(SemVer.parse("1.3.0-rc.1")), NEWEST).release.name == "1.3.0-rc.1"
    allowing = replace(NEWEST, prereleases=True)
    assert resolve(known, Series(1), allowing).release.name == "1.3.0-rc.1"
    why = explained(resolve(known, Series(1), NEWEST))["1.3.0-rc.1"]
    assert why == "a prerelease: only an exact selector chooses it"


def test_no_match_names_the_place_what_is_known_and_what_is_near() -> None:
    with pytest.raises(NoMatch) as caught:
        resolve(
            lineage("1.2.3", "1.2.5", "2.0.0"),
            Exact(SemVer.parse("1.2.9")),
            NEWEST,
            Dependent(at="spec.components[0].type"),
        )
    assert str(caught.value) == (
        "web has no 1.2.9 (spec.components[0].type); known: 1.2.3, 1.2.5, 2.0.0;"
        " nearest: 1.2.3, 1.2.5"
    )
    assert caught.value.nearest == ("1.2.3", "1.2.5")


def test_among_many_only_the_nearest_are_named() -> None:
    many = lineage(*(f"1.{minor}.{patch}" for minor in range(10) for patch in range(10)))
    with pytest.raises(NoMatch, match=r"nearest: 1\.4\.7, 1\.4\.8, 1\.4\.9 \(of 100\)$"):
        resolve(many, Exact(SemVer.parse("1.4.12")), NEWEST)
    with pytest.raises(NoMatch, match=r"no release in series 1\.12; nearest: 1\.9\.7, 1\.9\.8"):
        resolve(many, Series(1, 12), NEWEST)
    with pytest.raises(NoMatch, match=r"known: 1\.0\.0, .* and 88 more$"):
        resolve(many, Series(3), NEWEST)


def test_an_empty_lineage_has_nothing_to_offer() -> None:
    with pytest.raises(NoMatch, match="web has no newest release; it has no releases"):
        resolve(Lineage("web"), UNSPECIFIED, NEWEST)


def test_a_pin_to_a_removed_release_says_when_and_what_replaced_it() -> None:
    gone = Release(
        SemVer.parse("1.0.0"),
        stage=Stage.REMOVED,
        notes=Notes(removed_in=SemVer.parse("3.1.0"), use="1.1.0"),
    )
    known = Lineage("web", [gone, Release(SemVer.parse("1.1.0"))])
    with pytest.raises(Gone) as caught:
        resolve(known, Exact(SemVer.parse("1.0.0")), NEWEST, Dependent(at="here"))
    assert str(caught.value) == "web 1.0.0 was removed in 3.1.0 (here); use 1.1.0"


def test_a_deprecated_release_warns_with_dates_and_replacement() -> None:
    notes = Notes(since=SemVer.parse("2.0.0"), removed_in=SemVer.parse("4.0.0"), use="1.1.0")
    old = Release(SemVer.parse("1.0.0"), stage=Stage.DEPRECATED, notes=notes)
    found = resolve(Lineage("web", [old]), UNSPECIFIED, NEWEST)
    assert found.warnings == (
        "web 1.0.0 is deprecated since 2.0.0 and will be removed in 4.0.0; use 1.1.0",
    )


def held(text: str, **gate: object) -> Release:
    return Release(SemVer.parse(text), gate=Gate("spring", 2, **gate))  # type: ignore[arg-type]


def test_who_is_outside_a_gate_does_not_see_the_release() -> None:
    known = lineage("1.2.3").publish(held("1.2.4", cohorts=({"tier": "test"},)))
    inside = resolve(known, Series(1), NEWEST, Dependent(labels={"tier": "test"}))
    outside = resolve(known, Series(1), NEWEST, Dependent(labels={"tier": "shop"}))
    assert inside.release.name == "1.2.4"
    assert outside.release.name == "1.2.3"
    assert explained(outside) == {"1.2.4": "held by rollout spring, step 2"}


def test_who_can_see_nothing_but_what_a_gate_holds_keeps_its_pin() -> None:
    known = lineage("1.4.0").publish(held("2.0.0"))
    pinned = Dependent(uid="a", pin=Pin("1.4.0"))
    found = resolve(known, Series(2), NEWEST, pinned)
    assert found.release.name == "1.4.0"
    assert found.reason == "kept: 2.0.0 is held by rollout spring, step 2"
    with pytest.raises(NoMatch, match=r"2\.0\.0 is held by rollout spring, step 2"):
        resolve(known, Series(2), NEWEST, Dependent(uid="a"))


def test_gates_are_for_followers_only() -> None:
    known = lineage("1.4.0").publish(held("2.0.0", returns=True))
    exact = Exact(SemVer.parse("2.0.0"))
    assert resolve(known, exact, NEWEST, Dependent(uid="a")).release.name == "2.0.0"
    locked = Dependent(uid="a", lock=Pin("2.0.0"))
    assert resolve(known, Series(2), NEWEST, locked).release.name == "2.0.0"


def test_a_dependent_returns_to_the_release_that_it_had_before() -> None:
    known = lineage("1.2.2", "1.2.3").publish(held("1.2.4", returns=True))
    moved = Dependent(uid="a", pin=Pin("1.2.4"), previous=Pin("1.2.2"))
    found = resolve(known, Series(1), NEWEST, moved)
    assert found.release.name == "1.2.2"
    assert found.reason == "the release before one that was taken back"
    unknown = replace(moved, previous=Pin("0.9.0"))
    assert resolve(known, Series(1), NEWEST, unknown).release.name == "1.2.3"
    inside = known.restate(held("1.2.4", share=1.0))
    assert resolve(inside, Series(1), NEWEST, moved).release.name == "1.2.4"


def test_a_kept_pin_that_a_gate_takes_away_is_left() -> None:
    known = lineage("1.0.0").publish(held("2.0.0", returns=True))
    found = resolve(known, UNSPECIFIED, KEEPING, Dependent(uid="a", pin=Pin("2.0.0")))
    assert found.release.name == "1.0.0"
    alone = Lineage("web", [held("2.0.0", returns=True)])
    kept = resolve(alone, Series(2), KEEPING, Dependent(uid="a", pin=Pin("2.0.0")))
    assert kept.release.name == "2.0.0", "who uses it and can see nothing else is not broken"


FUNCTION = Policy(
    "function",
    usable=frozenset({Stage.CANDIDATE, Stage.STABLE, Stage.DEPRECATED}),
    best="stable version",
    preferred=frozenset({Stage.STABLE}),
    otherwise=SemVer.parse("0.0.0"),
)


def test_a_wish_for_what_a_gate_holds_falls_back() -> None:
    stable = replace(held("0.1.0"), stage=Stage.STABLE, gate=None)
    known = Lineage("F", [stable, replace(held("0.2.0"), stage=Stage.CANDIDATE)])
    found = resolve(known, Exact(SemVer.parse("0.2.0"), wish=True), FUNCTION)
    assert found.release.name == "0.1.0"
    assert found.warnings == (
        "F 0.2.0 is held by rollout spring, step 2, the preferred version: 0.1.0 is used",
    )


def test_the_fallback_says_that_a_gate_holds_the_stable_version() -> None:
    first = replace(held("0.0.0"), stage=Stage.DEPRECATED, gate=None)
    known = Lineage("F", [first, replace(held("0.1.0"), stage=Stage.STABLE)])
    found = resolve(known, UNSPECIFIED, FUNCTION)
    assert found.release.name == "0.0.0"
    assert found.reason == "0.0.0: 0.1.0 is held by rollout spring, step 2"
    hidden = Lineage("F", [replace(held("0.0.0"), stage=Stage.CANDIDATE)])
    with pytest.raises(NoMatch):
        resolve(hidden, UNSPECIFIED, FUNCTION)


def test_the_fallback_must_be_usable() -> None:
    known = Lineage("F", [replace(held("0.0.0"), stage=Stage.REMOVED, gate=None)])
    with pytest.raises(NoMatch, match=r"F has no stable version: 0\.0\.0 is removed"):
        resolve(known, UNSPECIFIED, FUNCTION)


def test_a_function_without_versions_that_is_removed_answers_nobody() -> None:
    gone = replace(held("0.0.0"), stage=Stage.REMOVED, gate=None)
    with pytest.raises(Gone):
        resolve(Lineage("F", [gone], versioned=False), Exact(SemVer.parse("7.0.0")), FUNCTION)
    hidden = replace(held("0.0.0"), stage=Stage.STABLE)
    wish = Exact(SemVer.parse("7.0.0"), wish=True)
    with pytest.raises(NoMatch):
        resolve(Lineage("F", [hidden], versioned=False), wish, FUNCTION)


def test_a_wish_that_falls_back_to_a_deprecated_release_says_both() -> None:
    old = replace(held("0.0.0"), stage=Stage.DEPRECATED, gate=None)
    found = resolve(Lineage("F", [old]), Exact(SemVer.parse("0.2.0"), wish=True), FUNCTION)
    assert [warning.partition(" is ")[0] for warning in found.warnings] == [
        "F has no 0.2.0, the preferred version: 0.0.0",
        "F 0.0.0",
    ]


def test_a_refused_selector_is_the_reason_for_every_release() -> None:
    exact_only = replace(NEWEST, refuses={Series: "only exact versions here"})
    with pytest.raises(NoMatch, match="web@1 is refused: only exact versions here") as caught:
        resolve(lineage("1.0.0"), Series(1), exact_only)
    assert explained(caught.value) == {"1.0.0": "1 is refused"}


def test_a_pin_may_be_to_a_prerelease_or_to_what_was_preferred_once() -> None:
    pinned = Dependent(pin=Pin("1.1.0-rc.1"))
    assert resolve(lineage("1.0.0", "1.1.0-rc.1"), UNSPECIFIED, KEEPING, pinned).release.name == (
        "1.1.0-rc.1"
    )
    choosy = replace(KEEPING, preferred=frozenset({Stage.PUBLISHED}))
    old = replace(held("1.0.0"), stage=Stage.DEPRECATED, gate=None)
    known = Lineage("web", [old, Release(SemVer.parse("2.0.0"))])
    assert resolve(known, UNSPECIFIED, choosy, Dependent(pin=Pin("1.0.0"))).release.name == "1.0.0"


def test_a_rollback_of_a_gate_takes_its_dependents_back() -> None:
    moved = Dependent(uid="a", pin=Pin("1.2.4"))
    known = lineage("1.2.3").publish(held("1.2.4", share=1.0))
    assert resolve(known, Series(1), NEWEST, moved).release.name == "1.2.4"
    stays = known.restate(held("1.2.4", share=0.0))
    assert resolve(stays, Series(1), NEWEST, moved).release.name == "1.2.4"
    back = known.restate(held("1.2.4", returns=True))
    assert resolve(back, Series(1), NEWEST, moved).release.name == "1.2.3"


KEEPING = replace(NEWEST, keeps=frozenset({Unspecified}))


def test_a_kept_pin_stays_when_something_newer_appears() -> None:
    found = resolve(lineage("1.0.0", "2.0.0"), UNSPECIFIED, KEEPING, Dependent(pin=Pin("1.0.0")))
    assert found.release.name == "1.0.0"
    assert found.reason == "kept: it is the release in use"
    assert explained(found) == {"2.0.0": "1.0.0 is in use"}


def test_a_kept_pin_that_is_lost_is_an_error_that_says_how() -> None:
    known = Lineage(
        "web", [Release(SemVer.parse("1.0.0"), "sha256:a"), Release(SemVer.parse("2.0.0"))]
    )
    for pin, message in (
        (Pin("0.9.0"), r"web is pinned to 0\.9\.0, which does not exist"),
        (
            Pin("1.0.0", "sha256:b"),
            r"web 1\.0\.0 differs from what was pinned \(sha256:a, not sha256:b\)",
        ),
    ):
        with pytest.raises(NoMatch, match=message):
            resolve(known, UNSPECIFIED, KEEPING, Dependent(pin=pin))
    inactive = known.restate(replace(known.releases[0], stage=Stage.INACTIVE))
    with pytest.raises(NoMatch, match=r"web is pinned to 1\.0\.0, which is inactive"):
        resolve(inactive, UNSPECIFIED, KEEPING, Dependent(pin=Pin("1.0.0", "sha256:a")))
    gone = known.restate(replace(known.releases[0], stage=Stage.REMOVED))
    with pytest.raises(Gone, match=r"web 1\.0\.0 was removed"):
        resolve(gone, UNSPECIFIED, KEEPING, Dependent(pin=Pin("1.0.0", "sha256:a")))


def test_a_renumbered_revision_is_still_the_pinned_one() -> None:
    pin = Pin("fn-aaaa", "sha256:a")
    before = Lineage("fn", [Release(Serial(1), "sha256:a", name="fn-aaaa")])
    after = Lineage("fn", [Release(Serial(3), "sha256:a", name="fn-aaaa")])
    for known in (before, after):
        assert resolve(known, UNSPECIFIED, KEEPING, Dependent(pin=pin)).release.pin == pin


def test_labels_must_all_be_there_and_the_highest_wins() -> None:
    known = Lineage(
        "fn",
        [
            Release(Serial(1), name="fn-1", labels={"channel": "alpha", "tier": "gold"}),
            Release(Serial(2), name="fn-2", labels={"channel": "alpha"}),
            Release(Serial(3), name="fn-3", labels={"channel": "beta"}),
        ],
    )
    alpha = resolve(known, Labels.of({"channel": "alpha"}), NEWEST)
    assert alpha.release.name == "fn-2"
    assert explained(alpha) == {"fn-3": "without channel=alpha", "fn-1": "fn-2 is higher"}
    assert (
        resolve(known, Labels.of({"channel": "alpha", "tier": "gold"}), NEWEST).release.name
        == "fn-1"
    )
    assert resolve(known, Labels.of({}), NEWEST).release.name == "fn-3"
    with pytest.raises(NoMatch, match="fn has no release with channel=gamma"):
        resolve(known, Labels.of({"channel": "gamma"}), NEWEST)


# Locks.

WEB = Lineage(
    "web", [Release(SemVer.parse(v), f"sha256:{v}") for v in ("1.2.3", "1.2.5", "1.3.0-rc.1")]
)


def locked_to(version: str, digest: str = "") -> Dependent:
    pin = Pin("1.2.5", "sha256:1.2.5")
    return Dependent("shop", pin=pin, lock=Pin(version, digest or f"sha256:{version}"))


@given(questions(), st.data())
def test_with_a_lock_it_is_that_release_or_an_error(
    question: tuple[Lineage, Selector, Policy, Dependent], data: st.DataObject
) -> None:
    lineage, selector, policy, dependent = question
    locks = [each.pin for each in lineage] + [Pin("9.9.9", "sha256:9")]
    dependent = replace(dependent, lock=data.draw(st.sampled_from(locks)))
    found = attempt(lineage, selector, policy, dependent)
    allowed = [r for r in lineage if is_allowed(r, selector, policy, dependent)]
    if isinstance(found, NoMatch):
        there = [each for each in allowed if not each.stage.is_gone]
        assert all(each.pin != dependent.lock for each in there)
    else:
        assert (found.release.pin, found.reason) == (dependent.lock, "locked")
        assert found.release in allowed


@pytest.mark.parametrize(
    ("selector", "lock", "fact"),
    [
        (Series(1, 2), locked_to("9.9.9"), "web is locked to 9.9.9, which does not exist"),
        (
            Series(1, 2),
            locked_to("1.2.3", "sha256:x"),
            "the content of web 1.2.3 differs from what was locked (sha256:1.2.3, not sha256:x)",
        ),
        (Series(1, 3), locked_to("1.2.3"), "web is locked to 1.2.3, which is not in series 1.3"),
        (
            UNSPECIFIED,
            locked_to("1.3.0-rc.1"),
            "web is locked to 1.3.0-rc.1, which is a prerelease: only an exact selector chooses it",
        ),
    ],
    ids=["missing", "other content", "other series", "prerelease"],
)
def test_a_lock_that_cannot_be_had_is_told(selector: Selector, lock: Dependent, fact: str) -> None:
    with pytest.raises(NoMatch) as error:
        resolve(WEB, selector, NEWEST, lock)
    assert error.value.fact == fact


def test_a_lock_answers_what_is_refused_without_one() -> None:
    exact = replace(NEWEST, refuses={Series: "only exact versions are deterministic"})
    found = resolve(WEB, Series(1, 2), exact, locked_to("1.2.3"))
    assert (found.release.name, found.reason) == ("1.2.3", "locked")
    assert [(each.release.name, each.why) for each in found.rejected] == [
        ("1.3.0-rc.1", "not in series 1.2"),
        ("1.2.5", "1.2.3 is locked"),
    ]
