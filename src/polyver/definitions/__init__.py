"""Definitions with semantic versions, and the applications that use these versions."""
