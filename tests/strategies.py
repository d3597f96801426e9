"""What property tests are drawn from."""

from __future__ import annotations

from hypothesis import strategies as st

from polyver.core import (
    UNSPECIFIED,
    Dependent,
    Exact,
    Gate,
    KubeVersion,
    Labels,
    Lineage,
    Pin,
    Release,
    Selector,
    SemVer,
    Serial,
    Series,
    Stage,
)

numbers = st.integers(0, 3)
# Plain and awkward words that are no versions, and many that nearly are.
words = st.from_regex(r"[a-z0-9.-]{1,8}", fullmatch=True)
kube_texts = st.one_of(
    st.from_regex(r"v[0-9]{1,3}((alpha|beta)[0-9]{1,3})?", fullmatch=True),
    words,
    st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="/"), min_size=1),
)
kube_versions = kube_texts.map(KubeVersion.parse)

identifiers = st.one_of(
    st.integers(0, 12).map(str), st.from_regex("[a-b-][0-9a-bA]{0,2}", fullmatch=True)
)
tails = st.lists(identifiers, min_size=1, max_size=3).map(".".join)
semvers = st.builds(
    lambda core, prerelease, build: SemVer.parse(
        ".".join(map(str, core))
        + (f"-{prerelease}" if prerelease else "")
        + (f"+{build}" if build else "")
    ),
    st.tuples(numbers, numbers, numbers),
    st.none() | tails,
    st.none() | tails,
)
serials = st.integers(1, 12).map(Serial)
series = st.builds(Series, numbers, st.none() | numbers)

labels = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"))
gates = st.builds(
    Gate,
    st.just("spring"),
    st.just(1),
    share=st.sampled_from([0.0, 0.3, 1.0]),
    cohorts=st.lists(labels, max_size=2).map(tuple),
    returns=st.booleans(),
)
releases = st.builds(
    Release,
    semvers,
    digest=st.sampled_from(["sha256:1", "sha256:2"]),
    stage=st.sampled_from(Stage),
    labels=labels,
    gate=st.none() | gates,
)
lineages = st.lists(releases, max_size=12, unique_by=lambda release: release.version).map(
    lambda unique: Lineage("web", unique)
)
selectors: st.SearchStrategy[Selector] = st.one_of(
    semvers.map(Exact),
    st.builds(Exact, semvers, wish=st.just(True)),
    series,
    labels.map(Labels.of),
    st.just(UNSPECIFIED),
)


@st.composite
def dependents(draw: st.DrawFn, lineage: Lineage) -> Dependent:
    """Someone who may be pinned to a release of the lineage, or to one that never was."""
    known = [release.pin for release in lineage]
    pins = st.sampled_from([None, Pin("9.9.9", "sha256:9"), *known])
    return Dependent(
        name=f"default/{draw(st.integers(0, 30))}",
        at=f"spec.components[{draw(st.integers(0, 3))}].type",
        uid=draw(st.sampled_from(["", *map(str, range(20))])),
        labels=draw(labels),
        pin=draw(pins),
    )
