"""A webhook in a process of its own, as `polyver serve` starts it, with converters for tests.

python -m tests.webhook.process KINDS.json FOLDER|CERTIFICATE,KEY LINGER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.webhook.converters import GROUP, Hosts, served

from polyver.app._webhook import WebhookSettings
from polyver.app.serve import run
from polyver.cli.files import fingerprint
from polyver.core import PolyverError
from polyver.webhook import ReviewHandlers
from polyver.webhook.certificates import WebhookCertificates
from polyver.webhook.served_certificate import FilePairs


def main() -> None:
    kinds, where, linger = sys.argv[1:4]
    group = sys.argv[4] if len(sys.argv) > 4 else GROUP

    def load() -> ReviewHandlers:
        try:
            names = json.loads(Path(kinds).read_text())
        except ValueError:
            raise PolyverError("this is no list of kinds", at=f"{kinds}:1") from None
        return ReviewHandlers(served(*(Hosts(name, group=group) for name in names)))

    certificate, _, key = where.partition(",")
    own = WebhookCertificates(Path(where), ["127.0.0.1"])
    pair = FilePairs(Path(certificate), Path(key)) if key else own
    run(WebhookSettings(pair), load, lambda: fingerprint([kinds]), linger=float(linger))


if __name__ == "__main__":
    main()
