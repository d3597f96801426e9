"""The processes in which functions run, and the context of a call."""
