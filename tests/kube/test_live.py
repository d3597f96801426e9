"""The real API server: it starts, it ends with its owner, and it answers as it was recorded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.deadlines import HANG
from tests.kube.cases import Case, load_cases
from tests.kube.explain import differences
from tests.kube.record import target_of, transcript
from tests.kube.run import perform

from polyver.testing import ClusterError, LocalCluster, find_assets

pytestmark = pytest.mark.kube
CASES = load_cases()


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster() as running:
        yield running


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_real_server_answers_as_recorded(case: Case, cluster: LocalCluster) -> None:
    recorded = transcript(case.case)
    assert recorded is not None
    answered = perform(case, target_of(cluster))
    assert [str(found) for found in differences(case.case, recorded, answered)] == []


def kubectl(cluster: LocalCluster, *arguments: str) -> str:
    command: list[str | Path] = [cluster.kubectl, "--kubeconfig", cluster.kubeconfig, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_kubectl_reaches_it_with_a_kubeconfig_that_nobody_else_can_read(
    cluster: LocalCluster,
) -> None:
    assert "Active" in kubectl(cluster, "get", "namespace", "default")
    assert cluster.kubeconfig.stat().st_mode & 0o777 == 0o600


def test_a_namespace_gets_its_service_account(cluster: LocalCluster) -> None:
    kubectl(cluster, "create", "namespace", "accounts")
    kubectl(
        cluster,
        *("wait", "-n", "accounts", "serviceaccount/default", "--for=create", "--timeout=300s"),
    )


HOLDER = """
import sys, time
from polyver.testing import LocalCluster
with LocalCluster() as cluster:
    print(cluster.folder, flush=True)
    time.sleep(300)
"""


def test_it_ends_even_when_its_owner_is_killed() -> None:
    command = [sys.executable, "-c", HOLDER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        folder = owner.stdout.readline().strip()
        assert folder
        assert processes(folder), "the servers run while the owner does"
        owner.send_signal(signal.SIGKILL)
    end = time.monotonic() + HANG
    while (left := processes(folder)) or Path(folder).exists():
        assert time.monotonic() < end, left
        time.sleep(0.05)


def processes(folder: str) -> list[str]:
    """Command lines of running processes that name the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if folder in command and int(path.parent.name) != os.getpid():
            found.append(command)
    return found


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="there is no program"), LocalCluster(tmp_path):
        pass


def test_a_server_that_cannot_start_shows_the_end_of_its_log(tmp_path: Path) -> None:
    for program in ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl"):
        (tmp_path / program).symlink_to(find_assets() / program)
    (tmp_path / "etcd").unlink()
    (tmp_path / "etcd").write_text("#!/bin/sh\necho out of disk; exit 3\n")
    (tmp_path / "etcd").chmod(0o755)
    with pytest.raises(ClusterError) as caught, LocalCluster(tmp_path):
        pass
    assert "etcd ended by itself (code 3)" in str(caught.value)
    assert "out of disk" in str(caught.value)
