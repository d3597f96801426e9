"""Composite resources: pipelines of functions run, and what comes of them applied."""

from polyver.engine.composites._driving import Ask, Look, drive

__all__ = ["Ask", "Look", "drive"]
