"""How much CPU a conversion takes, beside reading and writing the same bytes with msgspec.

100 objects of about 3 KB, with full metadata, from one version to another two edges away and back.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec
from bench.rows import Row, print_rows

from polyver.apis.conversion import Converter, DeclaredEdge, Rules

COUNT, ROUNDS = 100, 40


def converter() -> Converter:
    first = Rules()
    first.move("spec.cronSpec", "spec.schedule")
    first.split(
        "spec.hostPort", into=("spec.host", "spec.port"), separator=":", types=("string", "integer")
    )
    first.wrap("spec.image", "spec.images")
    first.values("spec.policy", {"Allow": "allow", "Forbid": "forbid"})
    first.cast("spec.replicas", "string", "integer")
    first.scale("spec.timeoutSeconds", "spec.timeoutMillis", 1000)
    first.keyed("spec.envList", "spec.env", key="name", value="value")
    first.drop("spec.legacyMode")
    first.const("spec.engine", "cron")
    first.each("spec.containers", key="name").move("cmd", "command")
    second = Rules()
    second.move("spec.images", "spec.template.images")
    second.move("spec.schedule", "spec.when.cron")
    edges = [DeclaredEdge("v1", "v2", first.block()), DeclaredEdge("v2", "v3", second.block())]
    return Converter("stable.example.com", "CronTab", ["v1", "v2", "v3"], edges)


def crontab(number: int, *, legacy: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {f"f:field{each}": {} for each in range(24)}
    managed = [
        {
            "manager": manager,
            "operation": "Apply",
            "apiVersion": "stable.example.com/v1",
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": fields},
        }
        for manager in ("kubectl", "controller")
    ]
    metadata = {
        "name": f"crontab-{number}",
        "namespace": "default",
        "uid": f"0b2c3d4e-0000-4000-8000-{number:012}",
        "resourceVersion": "12345",
        "generation": 3,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"app": "crontab", "team": "platform"},
        "annotations": {"owner": "somebody@example.com"},
        "managedFields": managed,
    }
    spec = {
        "cronSpec": "*/5 * * * *",
        "hostPort": "db.example.com:5432",
        "image": "registry.example.com/team/crontab:1.2.3",
        "policy": "Allow",
        "replicas": "3",
        "timeoutSeconds": 30,
        "envList": [{"name": f"NAME_{each}", "value": "x" * 20} for each in range(8)],
        "containers": [
            {"name": f"c{each}", "cmd": "run", "args": ["--verbose"], "limits": {"cpu": "1"}}
            for each in range(3)
        ],
        **{f"setting{each}": {"value": each, "text": "as it was" * 3} for each in range(14)},
    }
    status = {"conditions": [{"type": "Ready", "status": "True", "message": "all is well " * 6}]}
    more = {"legacyMode": "strict"} if legacy else {}
    about = {"apiVersion": "stable.example.com/v1", "kind": "CronTab"}
    return {**about, "metadata": metadata, "spec": spec | more, "status": status}


def taken(objects: list[bytes], run: Callable[[bytes], object]) -> float:
    """Microseconds of CPU for each object."""
    began = time.process_time()
    for each in objects:
        run(each)
    return (time.process_time() - began) / COUNT * 1e6


def rows(*, quick: bool = False) -> Iterator[Row]:
    known = converter()
    decode, encode = msgspec.json.decode, msgspec.json.encode
    rounds = ROUNDS // 4 if quick else ROUNDS
    gc.disable()
    for title, legacy in (("", False), (", one field carried", True)):
        old = [encode(crontab(number, legacy=legacy)) for number in range(COUNT)]
        new = [known.convert_raw(each, "v3") for each in old]
        assert [decode(known.convert_raw(each, "v1")) for each in new] == [decode(o) for o in old]
        for way, objects, version in (("v1 to v3", old, "v3"), ("v3 to v1", new, "v1")):
            convert = partial(known.convert_raw, version=version)
            rounds_of_both = [
                (taken(objects, lambda each: encode(decode(each))), taken(objects, convert))
                for _ in range(rounds)
            ]
            theirs, ours = zip(*rounds_of_both, strict=True)
            name = f"one object of {len(old[0]):,} bytes from {way}{title}"
            peer = "msgspec, decode and encode"
            yield Row(name=name, unit="µs", ours=ours, peer=peer, theirs=theirs)


if __name__ == "__main__":
    print_rows(rows())
