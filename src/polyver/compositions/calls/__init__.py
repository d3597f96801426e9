"""Calls of composition functions: Crossplane's gRPC protocol over persistent connections."""

from polyver.compositions.calls._message_errors import UnreadableMessage, UnwritableMessage
from polyver.compositions.calls.authorities import (
    Authorities,
    IssuedCertificate,
    renewal,
    server_names,
)
from polyver.compositions.calls.caller import Caller, CallerLimits
from polyver.compositions.calls.certificates import CertificateFolder, FunctionCertificates
from polyver.compositions.calls.endpoints import Endpoint, Trust
from polyver.compositions.calls.errors import CallFailure, FunctionFailed
from polyver.compositions.calls.metrics import CallCounts, CallMetrics
from polyver.compositions.calls.readiness import probe

__all__ = [
    "Authorities",
    "CallCounts",
    "CallFailure",
    "CallMetrics",
    "Caller",
    "CallerLimits",
    "CertificateFolder",
    "Endpoint",
    "FunctionCertificates",
    "FunctionFailed",
    "IssuedCertificate",
    "Trust",
    "UnreadableMessage",
    "UnwritableMessage",
    "probe",
    "renewal",
    "server_names",
]
