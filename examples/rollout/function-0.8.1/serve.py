"""Serves `answer` over Crossplane's protocol with what polyver itself needs: gRPC alone."""

import argparse
import signal
from concurrent import futures
from pathlib import Path

import grpc
from function import answer

from polyver.compositions import METHODS, decode_request, encode_response


class Protocol(grpc.GenericRpcHandler):
    """Every call of RunFunction, in any version of the protocol."""

    def service(self, call: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        if call.method not in METHODS:
            return None
        return grpc.unary_unary_rpc_method_handler(
            lambda request, _: answer(request),
            request_deserializer=decode_request,
            response_serializer=encode_response,
        )


def credentials(folder: Path) -> grpc.ServerCredentials:
    """Both sides show a certificate; who calls has to have one of the same authority."""
    key, certificate, authority = (
        (folder / name).read_bytes() for name in ("tls.key", "tls.crt", "ca.crt")
    )
    return grpc.ssl_server_credentials([(key, certificate)], authority, require_client_auth=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve a composition function.")
    parser.add_argument("--address", required=True)
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--tls-certs-dir", type=Path)
    how.add_argument("--insecure", action="store_true")
    given = parser.parse_args()
    server = grpc.server(futures.ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers([Protocol()])
    if given.insecure:
        server.add_insecure_port(given.address)
    else:
        server.add_secure_port(given.address, credentials(given.tls_certs_dir))
    server.start()
    signal.signal(signal.SIGTERM, lambda *_: server.stop(5))
    server.wait_for_termination()


if __name__ == "__main__":
    main()
