"""Prints the delay that others see for each hostile shape.

python -m tests.hostile [SIZE IN BYTES] [NAME OF A SHAPE ...]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.hostile.measuring import measured, prepared, table
from tests.hostile.shapes import LIMIT, SHAPES

if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else LIMIT
    names = sys.argv[2:] or list(SHAPES)
    with (
        tempfile.TemporaryDirectory() as folder,
        prepared(Path(folder), rows=min(5000, size // 600)) as server,
    ):
        for number, name in enumerate(names):
            found = measured(server, SHAPES[name], size)
            lines = table([found]).splitlines()
            print("\n".join(lines[bool(number) :]), flush=True)
            if found.statuses != SHAPES[name].statuses:
                print(f"  expected {SHAPES[name].statuses}, got {found.statuses}")
        print(Path(server.log).read_text()[-3000:])
