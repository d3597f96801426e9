"""A real Prometheus: the one that is named, the one that was downloaded, or the one on PATH.

`make prometheus` runs this: it unpacks Debian's package into a cache folder.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.walks.support import eventually

from polyver.testing._assets import cache_folder, platform_name

_CONFIG = """\
global: {{scrape_interval: 500ms, scrape_timeout: 500ms}}
scrape_configs:
- job_name: app
  static_configs: [{{targets: ["{target}"]}}]
"""


def _downloaded() -> Path:
    return cache_folder().parent / f"prometheus-{platform_name()}" / "usr" / "bin" / "prometheus"


def _found() -> str | None:
    named = os.environ.get("POLYVER_PROMETHEUS")
    if named or not _downloaded().is_file():
        return named or shutil.which("prometheus")
    return str(_downloaded())


PROMETHEUS = _found()
needs_prometheus = [
    pytest.mark.prometheus,
    pytest.mark.skipif(
        PROMETHEUS is None,
        reason="there is no Prometheus on this machine, so NONE was asked: `make prometheus`",
    ),
]


@contextmanager
def prometheus(folder: Path, *, target: str) -> Iterator[str]:
    """Run Prometheus, which scrapes a target twice a second; yield its URL."""
    assert PROMETHEUS is not None
    config = folder / "prometheus.yml"
    config.write_text(_CONFIG.format(target=target))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        PROMETHEUS,
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
    ]
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        eventually(lambda: _is_ready(f"http://{address}", running, folder / "log"))
        yield f"http://{address}"
    finally:
        running.kill()
        running.wait()


def _is_ready(url: str, running: subprocess.Popen[bytes], log: Path) -> bool:
    assert running.poll() is None, log.read_text()
    try:
        with urllib.request.urlopen(f"{url}/-/ready") as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False


# The download.


def _download(target: Path) -> None:
    folder = target.parents[2]
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder) as temporary:
        fetch = ["apt-get", "download", "prometheus"]
        if subprocess.run(fetch, cwd=temporary, stdout=sys.stderr, check=False).returncode:
            # In a new container, apt knows no packages yet.
            subprocess.run(["apt-get", "update"], stdout=sys.stderr, check=True)
            subprocess.run(fetch, cwd=temporary, stdout=sys.stderr, check=True)
        [package] = Path(temporary).glob("*.deb")
        subprocess.run(["dpkg", "-x", package, folder], check=True)


def main() -> int:
    target = _downloaded()
    try:
        if not target.is_file():
            _download(target)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"prometheus: error: {error}; install Debian's package prometheus", file=sys.stderr)
        return 1
    print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
