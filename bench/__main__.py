"""Measures everything, beside peers that it builds, and prints one table.

python -m bench [--quick] [SECTION …]

Each section runs in a process of its own, so that none pays for what another has left behind, and
one that does not end costs its own rows alone. Progress goes to standard error.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from bench.chart import chart
from bench.report import Report, here, markdown, missed, reported, written
from bench.rows import Found, Gap, Row, print_rows, say

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "build" / "bench"
KEPT = Path(__file__).with_name("results.json")
TITLE = "CPU time by number of releases, dependents or applications"
LIMIT = 15 * 60
"""Seconds for all sections together, without what is built first."""


def build_webhook() -> None:
    from bench.webhooks import build_peer

    build_peer()


def build_kubernetes() -> None:
    from tests.kube.build import assets

    assets()


@dataclass(frozen=True, slots=True)
class Section:
    """A file here that measures, and what it needs."""

    module: str
    about: str
    seconds: float
    """How long it may take; beyond that its rows are not measured."""
    build: Callable[[], None] | None = None
    """Makes the peer that it measures beside."""
    quick: bool = True
    """Whether a quick run has it, which has no peers."""


SECTIONS = {
    "conversion": Section(
        "webhooks", "conversion webhooks beside controller-runtime's", 300, build_webhook, False
    ),
    "server": Section(
        "server", "the embedded server beside kube-apiserver and etcd", 400, build_kubernetes, False
    ),
    "calling": Section("calling", "calls of functions beside the SDK's messages", 120, None, False),
    "codec": Section("conversion", "conversions beside a JSON codec", 30),
    "core": Section("core", "resolve and affected", 180),
    "applications": Section("applications", "a release and many applications", 300),
    "rollouts": Section("rollouts", "a step of a rollout, and many applications", 300),
    "composites": Section("composing", "composite resources", 180, None, False),
}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="a minute, without peers")
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if unknown := set(given.sections) - SECTIONS.keys():
        parser.error(f"there is no {', '.join(sorted(unknown))}: {', '.join(SECTIONS)}")
    if given.into:
        return measure(given.sections[0], given.into, quick=given.quick)
    names = given.sections or [
        name for name, section in SECTIONS.items() if section.quick or not given.quick
    ]
    report = run(names, quick=given.quick)
    tell(report)
    if not given.quick and set(names) == SECTIONS.keys():
        keep(report, RESULTS)
    return 1 if report.gaps else 0


# One section, in its own process.


def measure(name: str, into: Path, *, quick: bool) -> int:
    """Measure one section, each finding written as soon as it is there."""
    with into.open("ab", buffering=0) as file:

        def note(found: Found) -> None:
            say(f"{name}: {found.name}")
            file.write(msgspec.json.encode(reported([found], here())) + b"\n")

        try:
            for found in importlib.import_module(f"bench.{SECTIONS[name].module}").rows(
                quick=quick
            ):
                note(found)
        except SystemExit as error:
            note(Gap(name, str(error.code)))
        except Exception as error:
            traceback.print_exc()
            note(Gap(name, f"{type(error).__name__}: {error}"))
    return 0


# All of them.


def run(names: Sequence[str], *, quick: bool) -> Report:
    """Build what is needed, then measure section by section, as long as there is time."""
    gaps = {name: why for name in names if (why := built(name))}
    conditions, began = here(), time.monotonic()
    found: list[Found] = []
    for name in names:
        if name in gaps:
            found.append(Gap(name, gaps[name]))
            continue
        left = LIMIT - (time.monotonic() - began)
        say(f"{name}: {SECTIONS[name].about}")
        try:
            found += section(name, min(left, SECTIONS[name].seconds), quick=quick)
        except KeyboardInterrupt:
            found += [Gap(each, "interrupted") for each in names[names.index(name) :]]
            break
    seconds = round(time.monotonic() - began, 1)
    return reported(found, dataclasses.replace(conditions, seconds=seconds))


def built(name: str) -> str:
    """Build the peer of a section; why it cannot be, if it cannot."""
    build = SECTIONS[name].build
    if build is None:
        return ""
    say(f"{name}: building the peer (minutes when Go's caches are cold)")
    try:
        build()
    except SystemExit as error:
        return str(error.code)
    except Exception as error:
        return f"its peer cannot be built: {error}"
    return ""


def section(name: str, seconds: float, *, quick: bool) -> list[Found]:
    if seconds <= 0:
        return [Gap(name, f"no time was left of {LIMIT} s")]
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [sys.executable, "-m", "bench", name, "--into", file.name]
        began = time.monotonic()
        ended = waited([*command, *(["--quick"] if quick else [])], seconds)
        found = findings(Path(file.name).read_bytes())
    say(f"{name}: {len(found)} findings in {time.monotonic() - began:.0f} s")
    if ended == 0 and found:
        return found
    why = f"it did not end within {seconds:.0f} s" if ended is None else f"it ended with {ended}"
    return [*found, Gap(name, f"{why}; what it said is above")]


def findings(lines: bytes) -> list[Found]:
    reports = [msgspec.json.decode(line, type=Report) for line in lines.splitlines()]
    return [found for each in reports for found in [*each.lines, *each.curves]]


def waited(command: Sequence[str], seconds: float) -> int | None:
    """How a process has ended, all that it started included; None if it had to be ended."""
    with subprocess.Popen(command, cwd=ROOT, process_group=0) as process:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Let it take down what it has started, and then whatever is left of it."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


# What is told.


def tell(report: Report) -> None:
    print_rows(report.lines)
    with_goal = [row for row in report.rows if row.met is not None]
    short_of = missed(report)
    print(f"\n{len(with_goal) - len(short_of)} of {len(with_goal)} goals are met.")
    listed("NOT MET", (f"{row.name}: {row.told_goal}{_instead(row)}" for row in short_of))
    listed("NOT MEASURED", (f"{gap.name}: {gap.why}" for gap in report.gaps))


def _instead(row: Row) -> str:
    found = row.told if row.ratio is None else f"{row.told}, {row.ratio:.1f}×"
    return f", found {found}"


def listed(what: str, lines: Iterable[str]) -> None:
    for line in lines:
        print(f"======== {what}: {line}")


def keep(report: Report, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_bytes(written(report))
    (folder / "results.md").write_text(markdown(report))
    if report.curves:
        (folder / "scale.svg").write_text(chart(report.curves, title=TITLE))
    print(f"\nKept in {folder.relative_to(ROOT)}.", end=" ")
    if report.gaps:
        print("They are not for the documentation, as not everything was measured.")
        return
    results = (folder / "results.json").relative_to(ROOT)
    print("To put these figures into the documentation:")
    print(f"cp {results} {KEPT.relative_to(ROOT)} && make docs")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
