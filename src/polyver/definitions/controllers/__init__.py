"""Controllers of definitions and applications."""
