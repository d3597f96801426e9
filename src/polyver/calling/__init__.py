"""Calls of composition functions: Crossplane's gRPC protocol, over connections that are kept."""

from polyver.calling._located import Unreadable, Unwritable
from polyver.calling.authorities import Authorities, Issued, renewal, server_names
from polyver.calling.caller import Caller, Limits
from polyver.calling.certificates import CertificateFolder, Certificates
from polyver.calling.endpoints import Endpoint, Trust
from polyver.calling.errors import Failure, FunctionFailed
from polyver.calling.metrics import Counts, Metrics
from polyver.calling.probing import probe

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
