"""Functions that are released and killed while composite resources are made."""

from __future__ import annotations

from pathlib import Path

from bench.applications import running
from bench.composites import disturb, packages

COMPOSITES, VERSIONS = 12, 2


def test_all_converge_and_none_is_made_by_revisions_of_different_moments(tmp_path: Path) -> None:
    file = packages(tmp_path / "functions", VERSIONS)
    (tmp_path / "data").mkdir()
    with running(tmp_path / "data", "apis,compositions", "--packages", str(file)) as server:
        found = disturb(server, COMPOSITES, VERSIONS, every=0.5, most=1)
    assert found.killed
    assert len(found.seen.ready) == COMPOSITES
    assert {*found.seen.stamps.values()} == {(VERSIONS, VERSIONS)}
    assert found.mixtures(VERSIONS) == {}
    assert found.seen.back == []
    assert found.lies() == []
