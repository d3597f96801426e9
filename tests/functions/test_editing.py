"""Edits of catalogues: the rules hold afterwards, and nothing else in the text has changed."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.functions.samples import CATALOGUE, catalogue

from polyver.core import SemVer, Stage
from polyver.functions.catalogue_edits import (
    Edited,
    EditRefused,
    add_release,
    deprecate,
    promote,
    remove,
)

FLOW = CATALOGUE
BLOCK = """\
# Who changes this tells the users.
releases:   # oldest first
  - 0.1.0
  - "0.2.0"
  - '0.3.0' # now

functions:
  Other: {versions: {v1.0.0: {stage: stable}}}  # untouched

  Report:
    versions:
      # the first one
      v0.0.0:
        stage: deprecated # long ago
        since: 0.2.0
        removedIn: "0.4.0"   # soon
        use: v0.1.0

      v0.1.0:
        stage: stable # for now

      v0.2.0:
        stage: candidate
      v0.0.9: {stage: removed, removedIn: 0.3.0, use: v0.1.0,} # a comma too many
"""
JSON = """\
{
  "releases": ["0.1.0", "0.2.0", "0.3.0"],
  "functions": {"Report": {"versions": {
    "v0.0.0": {"stage": "deprecated", "since": "0.2.0", "removedIn": "0.4.0", "use": "v0.1.0"},
    "v0.1.0": {"stage": "stable"},
    "v0.2.0": {"stage": "candidate"},
    "v0.0.9": {"stage": "removed", "removedIn": "0.3.0", "use": "v0.1.0"}
  }}}
}
"""
WINDOWS = BLOCK.replace("\n", "\r\n")
FORMS = pytest.mark.parametrize(
    "text",
    [FLOW, BLOCK, JSON, WINDOWS, BLOCK.rstrip()],
    ids=["flow", "block", "json", "crlf", "cut"],
)


def v(text: str) -> SemVer:
    return SemVer.complete(text)


def stages(text: str) -> dict[str, str]:
    lineage = catalogue(text).get("Report")
    assert lineage is not None
    return {release.name: release.stage.value for release in lineage}


def notes(text: str, version: str) -> tuple[str, str, str]:
    lineage = catalogue(text).get("Report")
    assert lineage is not None
    release = lineage.get(v(version))
    assert release is not None
    found = release.notes
    return str(found.since), str(found.removed_in), found.use


def comments(text: str) -> list[str]:
    return re.findall(r"#.*", text)


@FORMS
def test_promoting_demotes_the_old_one_and_starts_its_clock(text: str) -> None:
    made = promote(text, "c.yaml", "Report", v("0.2.0"))
    assert stages(made.text) == {
        "v0.0.0": "deprecated",
        "v0.0.9": "removed",
        "v0.1.0": "deprecated",
        "v0.2.0": "stable",
    }
    assert notes(made.text, "0.1.0") == ("0.3.0", "0.5.0", "v0.2.0")
    # Who was sent to the old one is sent on.
    assert notes(made.text, "0.0.0") == ("0.2.0", "0.4.0", "v0.2.0")
    assert made.said[:2] == (
        "Report v0.2.0 is stable",
        "Report v0.1.0 is deprecated since 0.3.0 and will be removed in 0.5.0; use v0.2.0",
    )
    assert comments(made.text) == comments(text)


@FORMS
def test_a_release_is_appended_and_removes_what_was_announced(text: str) -> None:
    made = add_release(text, "c.yaml", v("0.4.0"))
    assert [str(each) for each in catalogue(made.text).releases][-2:] == ["0.3.0", "0.4.0"]
    assert stages(made.text)["v0.0.0"] == "removed"
    assert made.said == ("0.4.0 is released", "Report v0.0.0 is removed")
    assert comments(made.text) == comments(text)
    gone = remove(made.text, "c.yaml", "Report", v("0.0.0"))
    assert v("0.0.0") in catalogue(gone.text).tombstones["Report"]


def test_nothing_but_the_lines_that_are_meant_changes() -> None:
    made = promote(BLOCK, "c.yaml", "Report", v("0.2.0"), removed_in=v("1.0.0")).text
    changed = [line for line in made.splitlines() if line not in BLOCK.splitlines()]
    assert changed == [
        "        use: v0.2.0",
        "        stage: deprecated # for now",
        "        since: 0.3.0",
        "        removedIn: 1.0.0",
        "        use: v0.2.0",
        "        stage: stable",
        "      v0.0.9: {stage: removed, removedIn: 0.3.0, use: v0.2.0,} # a comma too many",
    ]


def test_json_stays_json() -> None:
    import json

    made = promote(JSON, "c.json", "Report", v("0.2.0"))
    released = add_release(made.text, "c.json", v("0.4.0"))
    assert json.loads(released.text)["releases"][-1] == "0.4.0"


def test_windows_line_ends_stay() -> None:
    made = promote(WINDOWS, "c.yaml", "Report", v("0.2.0")).text
    assert made.count("\n") == made.count("\r\n") > 20


def test_a_candidate_is_deprecated_in_favour_of_the_stable_version() -> None:
    made = deprecate(FLOW, "c.yaml", "Report", v("0.2.0"))
    assert stages(made.text)["v0.2.0"] == "deprecated"
    assert notes(made.text, "0.2.0") == ("0.3.0", "0.5.0", "v0.1.0")


def test_a_removal_can_be_put_off_and_another_version_named() -> None:
    made = deprecate(FLOW, "c.yaml", "Report", v("0.0.0"), use=v("0.2.0"), removed_in=v("0.6.0"))
    assert notes(made.text, "0.0.0") == ("0.2.0", "0.6.0", "v0.2.0")


EARLY = FLOW.replace("since: 0.2.0, removedIn: 0.4.0", "since: 0.3.0, removedIn: 0.5.0")
OPEN = FLOW.replace("since: 0.2.0, removedIn: 0.4.0", "since: 0.1.0")


def test_a_version_without_an_announced_removal_goes_after_two_releases() -> None:
    made = remove(OPEN, "c.yaml", "Report", v("0.0.0"))
    assert notes(made.text, "0.0.0") == ("0.1.0", "0.3.0", "v0.1.0")
    with pytest.raises(EditRefused, match="that is 1 minor or major release later, at least 2"):
        remove(OPEN.replace("since: 0.1.0", "since: 0.2.0"), "c.yaml", "Report", v("0.0.0"))


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (lambda: promote(FLOW, "c", "Report", v("0.1.0")), "Report v0.1.0 is already stable"),
        (lambda: promote(FLOW, "c", "Report", v("0.0.0")), "is deprecated and cannot become sta"),
        (lambda: promote(FLOW, "c", "Report", v("0.0.9")), "is removed and cannot become stable"),
        (lambda: promote(FLOW, "c", "Report", v("0.7.0")), "Report has no v0.7.0"),
        (lambda: promote(FLOW, "c", "Repotr", v("0.2.0")), "did you mean Report?"),
        (
            lambda: promote(FLOW, "c", "Report", v("0.2.0"), removed_in=v("0.3.0")),
            "Report v0.1.0 cannot be removed in 0.3.0, which is already released",
        ),
        (
            lambda: promote(
                FLOW.replace("v0.2.0:", "v0.2.0-rc.1:"), "c", "Report", v("0.2.0-rc.1")
            ),
            "is a prerelease and cannot be stable",
        ),
        (lambda: deprecate(FLOW, "c", "Report", v("0.1.0")), "promote another version"),
        (lambda: deprecate(FLOW, "c", "Report", v("0.0.0")), "is deprecated since 0.2.0 already"),
        (
            lambda: deprecate(FLOW, "c", "Report", v("0.0.9")),
            "removed and cannot become deprecated",
        ),
        (
            lambda: deprecate(FLOW, "c", "Report", v("0.2.0"), use=v("0.0.9")),
            "Report v0.2.0 cannot be replaced by v0.0.9",
        ),
        (
            lambda: deprecate(FLOW, "c", "Report", v("0.2.0"), use=v("0.2.0")),
            "Report v0.2.0 cannot be replaced by v0.2.0",
        ),
        (
            lambda: remove(FLOW, "c", "Report", v("0.0.0")),
            "will be removed in 0.4.0 .*current catalogue release is 0.3.0",
        ),
        (lambda: remove(FLOW, "c", "Report", v("0.1.0")), "is stable and cannot become removed"),
        (lambda: remove(FLOW, "c", "Report", v("0.2.0")), "is candidate and cannot become removed"),
        (lambda: remove(FLOW, "c", "Report", v("0.0.9")), "is already removed"),
        (lambda: add_release(FLOW, "c", v("0.3.0")), "0.3.0 does not come after 0.3.0"),
        (
            lambda: add_release(EARLY, "c", v("0.5.0")),
            "deprecated since 0.3.0 and cannot be removed in 0.5.0 .*1 minor or major",
        ),
        (
            lambda: add_release(
                FLOW.replace("use: v0.1.0}\n", "use: v0.0.0}\n").replace(
                    "removedIn: 0.4.0, use: v0.0.0", "removedIn: 0.4.0, use: v0.1.0"
                ),
                "c",
                v("0.4.0"),
            ),
            "Report v0.0.9 cannot be replaced by v0.0.0",
        ),
    ],
)
def test_what_breaks_a_rule_is_refused(edit: Callable[[], Edited], complaint: str) -> None:
    with pytest.raises(EditRefused) as refused:
        edit()
    assert re.search(complaint.replace("?", r"\?"), str(refused.value)), str(refused.value)


ALIASES = """\
releases: [0.1.0]
functions:
  Report:
    versions:
      v0.1.0: {stage: stable}
      v0.2.0: &same {stage: candidate}
      v0.3.0: *same
"""


def test_a_text_in_which_one_place_stands_for_two_is_left_alone() -> None:
    with pytest.raises(
        EditRefused, match=r"cannot be edited automatically; edit it manually: Report v0.3.0 is"
    ):
        promote(ALIASES, "c.yaml", "Report", v("0.3.0"))
    with pytest.raises(EditRefused, match="cannot be edited automatically"):
        deprecate(ALIASES, "c.yaml", "Report", v("0.2.0"))


# Whatever is done, in whatever order.

versions = st.sampled_from(["v0.0.0", "v0.0.9", "v0.1.0", "v0.2.0", "v0.3.0"]).map(v)
later = st.none() | st.sampled_from(["0.4.0", "0.5.0", "0.9.0", "1.0.0"]).map(v)
Step = Callable[[str], Edited]
steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(
        lambda version, due: lambda text: promote(text, "c", "Report", version, removed_in=due),
        versions,
        later,
    ),
    st.builds(
        lambda version, use, due: (
            lambda text: deprecate(text, "c", "Report", version, use=use, removed_in=due)
        ),
        versions,
        st.none() | versions,
        later,
    ),
    st.builds(lambda version: lambda text: remove(text, "c", "Report", version), versions),
    st.builds(
        lambda minor: lambda text: add_release(text, "c", v(f"0.{minor}.0")), st.integers(2, 12)
    ),
)
MORE = "      v0.3.0: {stage: candidate}\n"


@settings(max_examples=60)
@given(st.sampled_from([FLOW + MORE, BLOCK + MORE]), st.lists(steps, max_size=12))
def test_any_sequence_of_accepted_edits_leaves_a_valid_catalogue(
    text: str, sequence: list[Step]
) -> None:
    known, said = stages(text), comments(text)
    for step in sequence:
        try:
            made = step(text)
        except EditRefused:
            continue
        after = stages(made.text)
        assert list(after.values()).count("stable") == 1
        assert after.keys() == known.keys()
        gone = [name for name, stage in stages(text).items() if stage == Stage.REMOVED.value]
        assert all(after[name] == Stage.REMOVED.value for name in gone)
        assert comments(made.text) == said
        text = made.text
