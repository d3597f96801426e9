"""Makes certificates for a function, and prints the folder for its `--tls-certs-dir`.

python examples/revisions/certificates.py FOLDER REVISION
"""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

from polyver.compositions.calls import CertificateFolder

if __name__ == "__main__":
    folder, revision = sys.argv[1:]
    made = CertificateFolder(Path(folder)).issue(revision, now=datetime.datetime.now(datetime.UTC))
    print(made.folder)  # noqa: T201
