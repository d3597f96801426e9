"""Every test of a command imports modules of its own."""

from tests.own_modules import own_modules

__all__ = ["own_modules"]
