"""Many versions of a platform's building blocks, alive at once."""
