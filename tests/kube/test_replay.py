"""The embedded server, asked what the real one was asked: it answers the same.

What differs on purpose, or is not built yet, is listed in known.yaml with its reason; an entry that
no longer applies is an error, so that the list only shrinks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.deadlines import HANG
from tests.kube.build import kubernetes_version
from tests.kube.cases import Case, KnownDifference, known_differences, load_cases
from tests.kube.explain import differences
from tests.kube.leeway import leeway
from tests.kube.record import transcript
from tests.kube.run import Target, perform

from polyver.testing import EmbeddedServer, NoAssets, find_assets

CASES = load_cases()
KNOWN = list(known_differences())


def find_kubectl() -> Path | None:
    """The kubectl that `make kube` builds: another one has other words, and reads otherwise."""
    try:
        return find_assets() / "kubectl"
    except NoAssets:
        return None


@pytest.fixture(scope="session")
def target() -> Iterator[Target]:
    with EmbeddedServer(release=kubernetes_version(), capabilities=()) as server:
        kubectl = find_kubectl() or Path("kubectl")
        yield Target(
            server.url, server.ca_file, server.token, kubectl, server.kubeconfig, patience=HANG
        )


def whole(case: Case) -> KnownDifference | None:
    """Why a case is not asked at all, if it is not."""
    return next(
        (known for known in KNOWN if known.field == "*" and known.covers(case.case, 0, "")), None
    )


ASKED = {name: case for name, case in CASES.items() if not whole(case)}


@pytest.mark.parametrize("case", ASKED.values(), ids=ASKED)
def test_the_embedded_server_answers_as_the_real_one(case: Case, target: Target) -> None:
    if any(step.kubectl is not None for step in case.steps) and find_kubectl() is None:
        pytest.skip("not asked: its kubectl is not on this machine, and `make kube` builds it")

    seen: set[str] = set()

    def known(case: str, step: int, field: str) -> bool:
        covering = [each for each in KNOWN if each.covers(case, step, field)]
        seen.update(each.reason for each in covering)
        return bool(covering)

    recorded = transcript(case.case)
    assert recorded is not None
    answered = perform(case, target)
    assert [str(found) for found in differences(case.case, recorded, answered, known, leeway)] == []
    expected = {each.reason for each in KNOWN if each.case == case.case}
    assert expected <= seen, "a known difference that is none any more"
