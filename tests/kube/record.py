"""Runs every case on a real API server and keeps what it answered as test data.

python -m tests.kube.record [CASE …]       `make record` runs all
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.kube.cases import HERE, Case, load_cases
from tests.kube.run import CaseError, Target, perform

from polyver.core import PolyverError
from polyver.testing import LocalCluster

RECORDED = HERE / "recorded"
AT_ONCE = 4  # cases mostly wait: for controllers, for timeouts, for kubectl


def target_of(cluster: LocalCluster) -> Target:
    return Target(
        cluster.url,
        cluster.ca_file,
        cluster.token,
        cluster.kubectl,
        cluster.kubeconfig,
        cluster.restart_controllers,
    )


def transcript(case: str) -> list[Any] | None:
    """What the real server answered, if that was recorded."""
    path = RECORDED / f"{case}.json"
    if not path.exists():
        return None
    recorded: list[Any] = json.loads(path.read_text())
    return recorded


def encoded(answers: list[Any]) -> str:
    return json.dumps(answers, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def record(cases: dict[str, Case], folder: Path = RECORDED) -> Iterator[tuple[str, str]]:
    """Each case and what became of it: same, new, changed, or why it failed."""
    folder.mkdir(exist_ok=True)
    with LocalCluster() as cluster, ThreadPoolExecutor(AT_ONCE) as workers:
        target = target_of(cluster)
        asked = {name: workers.submit(perform, case, target) for name, case in cases.items()}
        for name, answers in asked.items():
            try:
                yield name, _keep(folder / f"{name}.json", encoded(answers.result()))
            except CaseError as error:
                yield name, f"failed: {error}"


def _keep(path: Path, answers: str) -> str:
    before = path.read_text() if path.exists() else None
    if answers == before:
        return "same"
    path.write_text(answers)
    return "new" if before is None else "changed"


def main(names: list[str]) -> int:
    cases = load_cases()
    unknown = [name for name in names if name not in cases]
    if unknown:
        print(f"there is no case {', '.join(unknown)}", file=sys.stderr)
        return 2
    wanted = {name: case for name, case in cases.items() if not names or name in names}
    started = time.monotonic()
    outcomes: dict[str, str] = {}
    for name, outcome in record(wanted):
        outcomes[name] = outcome.partition(":")[0]
        if outcome != "same":
            print(f"{name}: {outcome}", flush=True)
    stale = [] if names else [p for p in RECORDED.glob("*.json") if p.stem not in cases]
    for path in stale:
        path.unlink()
    counted = ", ".join(
        f"{list(outcomes.values()).count(kind)} {kind}" for kind in sorted(set(outcomes.values()))
    )
    took = time.monotonic() - started
    print(f"{len(outcomes)} cases in {took:.0f} s: {counted or 'none'}; {len(stale)} removed")
    return 1 if "failed" in outcomes.values() else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except PolyverError as error:
        sys.exit(f"error: {error}")
