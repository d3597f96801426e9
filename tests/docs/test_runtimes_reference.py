"""The reference of runtimes: every reason is explained, and what it shows can be read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from polyver.compositions.runtimes import Reason
from polyver.compositions.runtimes.process import Timing, read_packages
from polyver.compositions.runtimes.process._digests import _ENDS_LEFT_OUT, _LEFT_OUT
from polyver.compositions.runtimes.process._projects import read_project

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "runtimes.md").read_text()
PACKAGES, COMMAND = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_every_reason_is_explained_and_no_other() -> None:
    told = re.findall(r"^\| `(\w+)` \|", PAGE.partition("## Reasons")[2], re.MULTILINE)
    assert sorted(told) == sorted(get_args(Reason))


def test_what_is_no_content_is_listed() -> None:
    for name in (*_LEFT_OUT, *_ENDS_LEFT_OUT):
        assert f"`{name}`" in PAGE


def test_the_map_of_packages_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "function-greet").mkdir()
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "function_greet-2.0.0-py3-none-any.whl").touch()
    (tmp_path / "map.yaml").write_text(PACKAGES)
    assert len(read_packages(tmp_path / "map.yaml")) == 3


def test_the_command_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "polyver-function.yaml").write_text(COMMAND)
    found = read_project(tmp_path).command
    assert found is not None
    assert found.env == {"LEVEL": "debug"}


def test_the_times_are_those_that_are_told() -> None:
    timing = Timing()
    for words in (
        f"every {timing.ask_every:.0f} s over a new connection",
        f"answer within {timing.start:.0f} s",
        f"replaced after {timing.silence:.0f} s",
        f"gives the calls in progress {timing.drain:.0f} s to finish",
        f"after {timing.grace:.0f} s SIGKILL",
        f"has run for {timing.stable:.0f} s",
        f"tries again after {timing.rebuilds.first:.0f} s",
    ):
        assert words in PAGE
