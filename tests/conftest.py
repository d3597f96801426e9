"""Settings for all tests."""

from __future__ import annotations

from hypothesis import settings

# No test depends on how fast this machine is.
settings.register_profile("polyver", settings(), deadline=None, print_blob=True)
settings.load_profile("polyver")
