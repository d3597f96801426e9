"""Calls of composition functions with Crossplane's gRPC protocol, over persistent connections."""

from polyver.compositions.calls.authorities import (
    Authorities,
    IssuedCertificate,
    renewal,
    server_names,
)
from polyver.compositions.calls.caller import Caller, CallerLimits, probe
from polyver.compositions.calls.certificates import CertificateFolder, FunctionCertificates
from polyver.compositions.calls.endpoints import Endpoint, Trust
from polyver.compositions.calls.errors import (
    CallFailure,
    FunctionFailed,
    UnreadableMessage,
    UnwritableMessage,
)
from polyver.compositions.calls.metrics import CallCounts, CallMetrics

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
