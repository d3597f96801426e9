"""Calls of composition functions: Crossplane's gRPC protocol, over connections that are kept."""

from polyver.compositions.calls._message_errors import Unreadable, Unwritable
from polyver.compositions.calls.authorities import Authorities, Issued, renewal, server_names
from polyver.compositions.calls.caller import Caller, Limits
from polyver.compositions.calls.certificates import CertificateFolder, Certificates
from polyver.compositions.calls.endpoints import Endpoint, Trust
from polyver.compositions.calls.errors import Failure, FunctionFailed
from polyver.compositions.calls.metrics import Counts, Metrics
from polyver.compositions.calls.readiness import probe

__all__ = [
    "Authorities",
    "Caller",
    "CertificateFolder",
    "Certificates",
    "Counts",
    "Endpoint",
    "Failure",
    "FunctionFailed",
    "Issued",
    "Limits",
    "Metrics",
    "Trust",
    "Unreadable",
    "Unwritable",
    "probe",
    "renewal",
    "server_names",
]
