"""The processes in which functions run, and what functions are given."""
