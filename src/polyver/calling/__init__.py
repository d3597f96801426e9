"""Calls of composition functions: Crossplane's gRPC protocol, over connections that are kept."""

from polyver.calling.authorities import Authorities, Issued, renewal, server_names
from polyver.calling.certificates import CertificateFolder, Certificates
from polyver.calling.endpoints import Endpoint, Trust
from polyver.calling.errors import Failure, FunctionFailed
from polyver.calling.probing import probe

__all__ = [
    "Authorities",
    "CertificateFolder",
    "Certificates",
    "Endpoint",
    "Failure",
    "FunctionFailed",
    "Issued",
    "Trust",
    "probe",
    "renewal",
    "server_names",
]
