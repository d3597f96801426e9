"""How each capability chooses: a table of cases for each, as its page of the model has them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from polyver.apis.policy import APIS
from polyver.compositions._revision_rules import COMPOSITIONS, COMPOSITIONS_MANUAL, REVISIONS
from polyver.core import (
    UNSPECIFIED,
    Dependent,
    Exact,
    Gone,
    InvalidVersion,
    KubeVersion,
    Labels,
    Lineage,
    NoMatch,
    Notes,
    Pin,
    Policy,
    PolyverError,
    Release,
    Selector,
    SemVer,
    Serial,
    Series,
    Stage,
    resolve,
)
from polyver.definitions.lineages import READER as DEFINITIONS_CAPABILITY
from polyver.definitions.versions import (
    DEFINITIONS,
    DEFINITIONS_EXACT,
    DEFINITIONS_FOLLOW,
    DEFINITIONS_LEGACY,
    DEFINITIONS_PRERELEASES,
    policy_for,
)
from polyver.functions.lineages import READER as FUNCTIONS_CAPABILITY
from polyver.functions.policy import FUNCTIONS


def check(
    lineage: Lineage,
    selector: Selector,
    policy: Policy,
    expected: str,
    *,
    pin: str = "",
    says: str = "",
) -> None:
    """`expected` is the release, or `error`; `says` is in the reason, a warning or the error."""
    release = lineage.get(pin) if pin else None
    dependent = Dependent(at="here", pin=release.pin if release else Pin(pin) if pin else None)
    if expected == "error":
        with pytest.raises(NoMatch) as caught:
            resolve(lineage, selector, policy, dependent)
        said = str(caught.value)
    else:
        found = resolve(lineage, selector, policy, dependent)
        assert found.release.name == expected
        said = "\n".join([found.reason, *found.warnings])
    assert says in said


def kube(name: str, stage: Stage = Stage.SERVED, warning: str = "") -> Release:
    return Release(KubeVersion.parse(name), stage=stage, notes=Notes(text=warning))


CRONTAB = Lineage(
    "CronTab",
    [
        kube("v3alpha1"),
        kube("v2"),
        kube("v2beta1", Stage.DEPRECATED, "example.com/v2beta1 CronTab is deprecated"),
        kube("v3", Stage.UNSERVED),
        kube("v1", Stage.DROPPED),
    ],
)


def exactly(text: str) -> Exact:
    return Exact(KubeVersion.parse(text))


@pytest.mark.parametrize(
    ("selector", "expected", "says"),
    [
        (UNSPECIFIED, "v2", "preferred served version"),
        (exactly("v2"), "v2", "exact version"),
        (exactly("v3alpha1"), "v3alpha1", ""),
        (exactly("v2beta1"), "v2beta1", "example.com/v2beta1 CronTab is deprecated"),
        (exactly("v3"), "error", "CronTab has no v3 that can be used: v3 is unserved (here)"),
        (exactly("v1"), "error", "CronTab v1 was dropped (here)"),
        (exactly("v9"), "error", "CronTab has no v9 (here); known: v3alpha1, v2beta1, v2, v3"),
    ],
)
def test_apis(selector: Selector, expected: str, says: str) -> None:
    check(CRONTAB, selector, APIS, expected, says=says)


def test_apis_with_nothing_served() -> None:
    unserved = Lineage("CronTab", [kube("v1", Stage.UNSERVED)])
    says = "CronTab has no preferred served version: v1 is unserved"
    check(unserved, UNSPECIFIED, APIS, "error", says=says)


def function(text: str, stage: Stage, **notes: str) -> Release:
    dates = {
        key: SemVer.parse(value) if key in ("since", "removed_in") else value
        for key, value in notes.items()
    }
    version = SemVer.parse(text)
    return Release(version, stage=stage, notes=Notes(**dates), name=f"v{version}")  # type: ignore[arg-type]


REPORT = Lineage(
    "Report",
    [
        function("0.0.0", Stage.DEPRECATED, since="0.2.0", removed_in="0.4.0", use="v0.1.0"),
        function("0.1.0", Stage.STABLE),
        function("0.2.0", Stage.CANDIDATE),
        function("0.0.9", Stage.REMOVED, removed_in="0.3.0", use="v0.1.0"),
    ],
)
DEPRECATED = "Report v0.0.0 is deprecated since 0.2.0 and will be removed in 0.4.0; use v0.1.0"
UNSTABLE = Lineage(
    "Draft", [function("0.0.0", Stage.CANDIDATE), function("0.1.0", Stage.CANDIDATE)]
)
CANDIDATES = Lineage("Draft", [function("0.1.0", Stage.CANDIDATE)])
PLAIN = Lineage("Plain", [function("0.0.0", Stage.STABLE)], versioned=False)


def pinned(text: str) -> Exact:
    return Exact(SemVer.parse(text))


def wished(text: str) -> Exact:
    return Exact(SemVer.parse(text), wish=True)


@pytest.mark.parametrize(
    ("lineage", "selector", "expected", "says"),
    [
        # funcVersion on the phase
        (REPORT, pinned("v0.2.0"), "v0.2.0", "exact version"),
        (REPORT, pinned("v0.0.0"), "v0.0.0", DEPRECATED),
        (REPORT, pinned("v0.3.0"), "error", "Report has no 0.3.0 (here)"),
        (
            REPORT,
            pinned("v0.0.9"),
            "error",
            "Report v0.0.9 was removed in 0.3.0 (here); use v0.1.0",
        ),
        # preferredVersion on the action
        (REPORT, wished("v0.2.0"), "v0.2.0", "the preferred version"),
        (REPORT, wished("v0.3.0"), "v0.1.0", "has no 0.3.0, the preferred version: v0.1.0 is used"),
        (REPORT, wished("v0.0.9"), "error", "was removed in 0.3.0"),
        # neither
        (REPORT, UNSPECIFIED, "v0.1.0", "stable version"),
        (UNSTABLE, UNSPECIFIED, "v0.0.0", "there is no stable version"),
        (
            CANDIDATES,
            UNSPECIFIED,
            "error",
            "v0.1.0 is candidate: only an exact selector chooses it",
        ),
        # a function that registers no versions at all
        (PLAIN, UNSPECIFIED, "v0.0.0", "stable version"),
        (PLAIN, pinned("v0.0.0"), "v0.0.0", "exact version"),
        (PLAIN, pinned("v7.0.0"), "v0.0.0", "registers no versions: v0.0.0 answers for 7.0.0"),
        (PLAIN, wished("v7.0.0"), "v0.0.0", "registers no versions: v0.0.0 answers for 7.0.0"),
    ],
)
def test_functions(lineage: Lineage, selector: Selector, expected: str, says: str) -> None:
    check(lineage, selector, FUNCTIONS, expected, says=says)


@pytest.mark.parametrize(
    ("lineage", "text", "warned"),
    [(REPORT, "v0.2.0", False), (PLAIN, "v0.0.0", False), (PLAIN, "v0.1.0", True)],
)
def test_functions_warn_only_when_they_must(lineage: Lineage, text: str, warned: bool) -> None:
    assert bool(resolve(lineage, pinned(text), FUNCTIONS).warnings) is warned


def test_functions_are_asked_for_exactly_and_never_as_a_series() -> None:
    read = FUNCTIONS_CAPABILITY.selector
    assert read("v0.1", REPORT) == pinned("v0.1.0")
    assert read("1", REPORT) == pinned("1.0.0")
    for lineage in (REPORT, PLAIN):
        with pytest.raises(InvalidVersion):
            read("newest", lineage)


def definition(*texts: str) -> Lineage:
    return Lineage("web", [Release(SemVer.parse(text), f"sha256:{text}") for text in texts])


WEB = definition("1.2.2", "1.2.3", "1.3.0", "2.0.0", "2.1.0-rc.1")
REFUSED = "only exact versions are deterministic"


@pytest.mark.parametrize(
    ("policy", "selector", "pin", "expected", "says"),
    [
        # absent
        (DEFINITIONS, pinned("1.2.2"), "1.2.2", "1.2.2", "exact version"),
        (DEFINITIONS, Series(1, 2), "1.2.2", "1.2.3", "newest in series 1.2"),
        (DEFINITIONS, Series(1), "", "1.3.0", "newest in series 1"),
        (DEFINITIONS, UNSPECIFIED, "", "2.0.0", "newest release"),
        (DEFINITIONS, UNSPECIFIED, "1.2.3", "1.2.3", "kept: it is the release in use"),
        # "true"
        (DEFINITIONS_FOLLOW, pinned("1.2.2"), "1.2.2", "1.2.2", ""),
        (DEFINITIONS_FOLLOW, Series(1, 2), "1.2.2", "1.2.3", ""),
        (DEFINITIONS_FOLLOW, UNSPECIFIED, "1.2.3", "2.0.0", "newest release"),
        # "false"
        (DEFINITIONS_EXACT, pinned("1.2.2"), "", "1.2.2", ""),
        (DEFINITIONS_EXACT, Series(1, 2), "", "error", REFUSED),
        (DEFINITIONS_EXACT, Series(1, 2), "1.2.3", "error", REFUSED),
        (DEFINITIONS_EXACT, UNSPECIFIED, "", "2.0.0", ""),
        (DEFINITIONS_EXACT, UNSPECIFIED, "1.2.3", "1.2.3", "kept"),
        # an exact version that does not exist fails in every case
        (DEFINITIONS, pinned("1.2.9"), "1.2.3", "error", "web has no 1.2.9 (here)"),
        (DEFINITIONS_FOLLOW, pinned("1.2.9"), "1.2.3", "error", "web has no 1.2.9"),
        (DEFINITIONS_EXACT, pinned("1.2.9"), "1.2.3", "error", "web has no 1.2.9"),
        # and so does a pin that is gone
        (
            DEFINITIONS,
            UNSPECIFIED,
            "1.1.0",
            "error",
            "web is pinned to 1.1.0, which does not exist",
        ),
        # prereleases
        (DEFINITIONS, Series(2), "", "2.0.0", ""),
        (DEFINITIONS, pinned("2.1.0-rc.1"), "", "2.1.0-rc.1", ""),
        (DEFINITIONS_PRERELEASES, Series(2), "", "2.1.0-rc.1", ""),
        (DEFINITIONS_PRERELEASES, UNSPECIFIED, "", "2.1.0-rc.1", ""),
    ],
)
def test_definitions(
    policy: Policy, selector: Selector, pin: str, expected: str, says: str
) -> None:
    check(WEB, selector, policy, expected, pin=pin, says=says)


def test_definitions_with_prereleases_alone() -> None:
    says = "1.0.0-rc.1 is a prerelease: only an exact selector chooses it"
    check(definition("1.0.0-rc.1"), UNSPECIFIED, DEFINITIONS, "error", says=says)


@pytest.mark.parametrize(
    ("annotation", "policy"),
    [(None, DEFINITIONS), ("true", DEFINITIONS_FOLLOW), ("false", DEFINITIONS_EXACT)],
)
def test_definitions_policy_by_annotation(annotation: str | None, policy: Policy) -> None:
    assert policy_for(annotation, WEB) is policy
    assert policy_for(annotation, LEGACY) is DEFINITIONS_LEGACY


def test_definitions_annotation_that_means_nothing() -> None:
    with pytest.raises(PolyverError, match='autoUpdate is "yes"; expected "true" or "false"'):
        policy_for("yes", WEB)


LEGACY = Lineage(
    "web",
    [
        Release(Serial(1), "sha256:a", name="web-v1"),
        Release(Serial(2), "sha256:b", name="web-v4.4"),
        Release(Serial(3), "sha256:c", name="web-v3"),
    ],
)


@pytest.mark.parametrize(
    ("text", "pin", "expected", "says"),
    [
        ("", "web-v1", "web-v3", "newest revision"),
        ("v1", "", "web-v1", ""),
        ("v4.4", "web-v1", "web-v4.4", ""),
        ("v4", "", "error", "web has no web-v4 (here); known: web-v1, web-v4.4, web-v3"),
    ],
)
def test_legacy_definitions(text: str, pin: str, expected: str, says: str) -> None:
    selector = DEFINITIONS_CAPABILITY.selector(text, LEGACY) if text else UNSPECIFIED
    check(LEGACY, selector, DEFINITIONS_LEGACY, expected, pin=pin, says=says)


@pytest.mark.parametrize(
    ("text", "selector"),
    [
        ("1", Series(1)),
        ("v1", Series(1)),
        ("1.2", Series(1, 2)),
        ("v3.4", Series(3, 4)),
        ("1.2.0", pinned("1.2.0")),
        ("v1.2.0", pinned("1.2.0")),
        ("1.2.0-rc.0", pinned("1.2.0-rc.0")),
    ],
)
def test_definitions_read_what_stands_behind_the_at(text: str, selector: Selector) -> None:
    assert DEFINITIONS_CAPABILITY.selector(text, WEB) == selector


@pytest.mark.parametrize("text", ["", ">1.2.0", "^1", "1.x", "*", "newest", "1.2-rc.1", "1.2.3.4"])
def test_definitions_take_no_range(text: str) -> None:
    with pytest.raises(
        InvalidVersion, match=r"expected 1\.2\.3, 1\.2 or 1; ranges are not supported"
    ):
        DEFINITIONS_CAPABILITY.selector(text, WEB)


def revision(number: int, *, active: bool, **labels: str) -> Release:
    stage = Stage.ACTIVE if active else Stage.INACTIVE
    return Release(Serial(number), f"sha256:{number}", stage, labels, name=f"fn-{number}")


FN = Lineage(
    "fn",
    [
        revision(6, active=True, channel="stable"),
        revision(7, active=True, channel="alpha"),
        revision(8, active=False, channel="alpha"),
        revision(9, active=False, channel="next"),
    ],
)
ALL_INACTIVE = Lineage("fn", [replace(one, stage=Stage.INACTIVE) for one in FN])


@pytest.mark.parametrize(
    ("lineage", "selector", "expected", "says"),
    [
        (FN, UNSPECIFIED, "fn-7", "highest-numbered active revision"),
        (FN, Exact("fn-6"), "fn-6", "exact version"),
        (FN, Labels.of({"channel": "stable"}), "fn-6", "active revision with channel=stable"),
        (FN, Labels.of({"channel": "alpha"}), "fn-7", ""),
        (FN, Exact("fn-8"), "error", "fn has no fn-8 that can be used: fn-8 is inactive"),
        (FN, Exact("other-1"), "error", "fn has no other-1 (here)"),
        (
            FN,
            Labels.of({"channel": "beta"}),
            "error",
            "fn has no revision with channel=beta (here)",
        ),
        (
            FN,
            Labels.of({"channel": "next"}),
            "error",
            "fn has no revision with channel=next that can be used: fn-9 is inactive",
        ),
        (
            ALL_INACTIVE,
            UNSPECIFIED,
            "error",
            "fn has no highest-numbered active revision: fn-9 is inactive, fn-8 is inactive",
        ),
    ],
)
def test_revisions(lineage: Lineage, selector: Selector, expected: str, says: str) -> None:
    check(lineage, selector, REVISIONS, expected, says=says)


def composition(number: int, **labels: str) -> Release:
    return Release(Serial(number), f"sha256:{number}", labels=labels, name=f"example-{number}")


EXAMPLE = Lineage(
    "example", [composition(1, channel="stable"), composition(2, channel="alpha"), composition(3)]
)
ALPHA = Labels.of({"channel": "alpha"})
STABLE = Labels.of({"channel": "stable"})


@pytest.mark.parametrize(
    ("policy", "selector", "pin", "expected"),
    [
        (COMPOSITIONS, UNSPECIFIED, "example-1", "example-3"),
        (COMPOSITIONS, ALPHA, "example-1", "example-2"),
        (COMPOSITIONS_MANUAL, UNSPECIFIED, "", "example-3"),
        (COMPOSITIONS_MANUAL, UNSPECIFIED, "example-1", "example-1"),
        (COMPOSITIONS_MANUAL, STABLE, "example-1", "example-1"),
        # the selector no longer matches what is in use: the newest match is taken once
        (COMPOSITIONS_MANUAL, ALPHA, "example-1", "example-2"),
        # a reference to what does not exist is an error and never another revision
        (COMPOSITIONS_MANUAL, UNSPECIFIED, "example-0", "error"),
        (COMPOSITIONS_MANUAL, Labels.of({"channel": "beta"}), "example-1", "error"),
    ],
)
def test_compositions(policy: Policy, selector: Selector, pin: str, expected: str) -> None:
    check(EXAMPLE, selector, policy, expected, pin=pin)


def test_a_removed_pin_of_a_definition_is_gone() -> None:
    gone = Lineage("web", [replace(WEB.releases[0], stage=Stage.REMOVED), *WEB.releases[1:]])
    with pytest.raises(Gone):
        resolve(gone, UNSPECIFIED, DEFINITIONS, Dependent(pin=WEB.releases[0].pin))
