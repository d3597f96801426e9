"""Admission webhooks, which are called before an object is stored, as in kube-apiserver."""

from __future__ import annotations

from polyver.kube.server.webhooks.dispatch import Webhooks
from polyver.kube.server.webhooks.subjects import AdmissionAttributes

__all__ = ["AdmissionAttributes", "Webhooks"]
