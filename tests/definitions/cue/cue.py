"""The cue that tests run: the one that is named, the one that was built, or the one on PATH."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.kube.build import cue

from polyver.definitions.cue import CueFailed, find_cue


def _found() -> Path | None:
    if not os.environ.get("POLYVER_CUE") and cue().is_file():
        return cue()
    try:
        return find_cue()
    except CueFailed:
        return None


CUE = _found()
needs_cue = [
    pytest.mark.cue,
    pytest.mark.skipif(
        CUE is None, reason="there is no cue on this machine, so NO template was run: `make cue`"
    ),
]
