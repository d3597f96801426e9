"""The suite of the client, once for each kind of client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.client.running import (
    CLIENTS,
    Run,
    fake,
    running,
)

from polyver.testing import LocalCluster


@pytest.fixture(scope="session")
def real_server() -> Iterator[LocalCluster]:
    with LocalCluster() as cluster:
        yield cluster


@pytest.fixture(params=[pytest.param(fake, id="fake"), *CLIENTS])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a scenario in a namespace of its own."""
    return running(request)


@pytest.fixture(params=CLIENTS)
def run_on_servers(request: pytest.FixtureRequest) -> Run:
    """The same for what is beyond the small API in memory."""
    return running(request)
