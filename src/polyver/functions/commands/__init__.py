"""The commands of the capability functions."""
