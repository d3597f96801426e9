"""How long tests wait for something that must happen.

A deadline here only ends a test that hangs. No test depends on how fast the machine is, and one
that is busy with other work may be fifty times slower than an idle one.
"""

from __future__ import annotations

HANG = 300
"""Seconds."""
