"""A bucket is two ConfigMaps: its settings, which say how it is encrypted, and who may use it."""

from typing import Any

import grpc
from crossplane.function import resource, response
from crossplane.function.proto.v1 import run_function_pb2 as protocol
from crossplane.function.proto.v1 import run_function_pb2_grpc as service

OPEN_TO = ("readers", "writers")


class Bucket(service.FunctionRunnerService):
    """Composes the settings of a bucket and its access."""

    async def RunFunction(  # noqa: N802 - the protocol calls it so
        self, request: protocol.RunFunctionRequest, _: grpc.aio.ServicerContext
    ) -> protocol.RunFunctionResponse:
        answer = response.to(request)
        bucket = resource.struct_to_dict(request.observed.composite.resource)
        spec = bucket.get("spec", {})
        if not spec.get("region"):
            response.fatal(answer, "spec.region is missing: say where the bucket is to be")
            return answer
        place = namespace(request, bucket)
        parts = {"settings": settings(spec, place), "access": access(spec, place)}
        for name, part in parts.items():
            resource.update(answer.desired.resources[name], part)
            ready(request, answer, name)
        if not spec.get("encryption"):
            response.warning(answer, "spec.encryption is not set: aes256 is used")
        resource.update_status(answer.desired.composite, {"parts": len(parts)})
        return answer


def settings(spec: dict[str, Any], place: str) -> dict[str, Any]:
    # Functions get numbers as doubles: 20 arrives as 20.0.
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": place, "labels": {"part": "settings"}},
        "data": {
            "region": spec["region"],
            "gigabytes": str(int(spec.get("gigabytes", 1))),
            "encryption": spec.get("encryption", "aes256"),
        },
    }


def access(spec: dict[str, Any], place: str) -> dict[str, Any]:
    granted = {role: ",".join(spec.get(role, [])) for role in OPEN_TO}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": place, "labels": {"part": "access"}},
        "data": {role: names for role, names in granted.items() if names},
    }


def namespace(request: protocol.RunFunctionRequest, bucket: dict[str, Any]) -> str:
    """Where its parts are: as the input says, else beside a bucket that is in a namespace."""
    said = resource.struct_to_dict(request.input).get("namespace")
    return str(said or bucket["metadata"].get("namespace") or "default")


def ready(
    request: protocol.RunFunctionRequest, answer: protocol.RunFunctionResponse, name: str
) -> None:
    """Call a resource ready once it is there."""
    there = name in request.observed.resources
    answer.desired.resources[name].ready = protocol.READY_TRUE if there else protocol.READY_FALSE
