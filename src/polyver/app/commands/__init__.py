"""The commands about all capabilities."""
