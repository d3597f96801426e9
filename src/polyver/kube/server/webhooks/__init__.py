"""Admission webhooks: whoever configures one has a say in writes, as on the real server."""

from __future__ import annotations

from polyver.kube.server.webhooks.dispatch import Webhooks
from polyver.kube.server.webhooks.subjects import AdmissionAttributes

__all__ = ["AdmissionAttributes", "Webhooks"]
