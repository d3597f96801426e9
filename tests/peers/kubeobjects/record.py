"""Ask Kubernetes' own Go types about objects and patches, and keep what they say.

`make record` runs this; tests compare with the recordings and need no Go.
"""

from __future__ import annotations

import base64
import json
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.peers.kubeobjects.corpus import questions

from polyver.kube.objects.builtin import builtin_kinds
from polyver.kube.objects.protobuf import PROTOBUF_PREFIX

HERE = Path(__file__).parent
RECORDED = HERE.parent
ENVELOPES = [
    b"",
    b"k8s",
    b"garbage",
    b'{"apiVersion":"v1","kind":"ConfigMap"}',
    PROTOBUF_PREFIX,
    PROTOBUF_PREFIX + b"\x0a\x0f\x0a\x02v1\x12\x09ConfigMap",
    PROTOBUF_PREFIX + b"\x08\x01",
    PROTOBUF_PREFIX + b"\x00\x01",
    PROTOBUF_PREFIX + b"\x0c",
    PROTOBUF_PREFIX + b"\x7f",
    PROTOBUF_PREFIX + b"\xff" * 12,
]


def kinds() -> list[dict[str, str]]:
    """All built-in kinds, and the options that come with deletions, in all the ways they do."""
    known = [(kind.api_version, kind.kind) for kind in builtin_kinds()]
    known += [("v1", "DeleteOptions"), ("apps/v1", "DeleteOptions")]
    known += [("authentication.k8s.io/v1", "TokenRequest")]
    return [{"apiVersion": api_version, "kind": kind} for api_version, kind in known]


def broken(bodies: Sequence[str], *, count: int = 300) -> list[str]:
    """Bodies that are not right: cut off, or with a byte that is another one."""
    chance = random.Random(1)
    small = [body for body in map(base64.b64decode, bodies) if len(body) < 1000]
    wrong = [*ENVELOPES]
    for body in chance.choices(small, k=count):
        place = chance.randrange(4, len(body))
        rest = body[place + 1 :] if chance.random() < 0.6 else b""
        wrong.append(body[:place] + bytes([chance.randrange(256)]) + rest)
    return [base64.b64encode(each).decode() for each in wrong]


def ask(**asked: Any) -> dict[str, Any]:
    answer = subprocess.run(
        ["go", "run", "."], cwd=HERE, input=json.dumps(asked), text=True, stdout=-1, check=True
    )
    answers: dict[str, Any] = json.loads(answer.stdout)
    return answers


def keep(name: str, **parts: Sequence[Any]) -> None:
    """One line for each answer, so that changes can be read."""
    texts = []
    for part, answers in parts.items():
        lines = [json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in answers]
        texts.append(f'"{part}": [\n' + ",\n".join(lines) + "\n]")
    (RECORDED / name).write_text("{" + ",\n".join(texts) + "}\n")


def main() -> int:
    try:
        told = ask(kinds=kinds(), patches=questions())
        bodies = [each["protobuf"] for each in told["objects"]]
        refused = ask(broken=broken(bodies))["broken"]
    except (OSError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"the peers could not be asked: {error}; Go is needed\n")
        return 1
    keep("recorded_protobuf.json", objects=told["objects"], broken=refused)
    keep("recorded_strategic.json", patches=told["patches"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
