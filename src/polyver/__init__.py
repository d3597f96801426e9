"""Many versions of a platform's building blocks, alive at once."""

__version__ = "0.1.0"
