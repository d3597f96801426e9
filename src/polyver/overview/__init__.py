"""Uses of releases across all capabilities, with the reasons."""
