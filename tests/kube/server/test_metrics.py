"""What the server counts, and what it says of its health."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from polyver.kube.http.health import Checks, health
from polyver.kube.server.http import HttpResponse
from polyver.kube.server.metrics import ApiServerMetrics


def samples(metrics: ApiServerMetrics) -> dict[tuple[str, tuple[str, ...]], float]:
    body = metrics.response().body
    assert isinstance(body, bytes)
    return {
        (
            sample.name,
            tuple(sample.labels.get(k, "") for k in ("verb", "group", "resource", "le")),
        ): (sample.value)
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


def test_requests_are_counted_by_what_they_are_about() -> None:
    metrics = ApiServerMetrics()
    for _ in range(3):
        metrics.observe("GET", "/api/v1/namespaces/a/configmaps", 200, 0.01)
    metrics.observe("PATCH", "/apis/ex.io/v1/namespaces/a/widgets/b/status", 200, 0.01)
    metrics.observe("POST", "/api/v1/namespaces", 201, 0.01)
    found = samples(metrics)
    name = "apiserver_request_total"
    assert found[name, ("LIST", "", "configmaps", "")] == 3
    assert found[name, ("PATCH", "ex.io", "widgets/status", "")] == 1
    assert found[name, ("POST", "", "namespaces", "")] == 1


def test_requests_are_counted_by_version() -> None:
    metrics = ApiServerMetrics()
    metrics.observe("GET", "/apis/ex.io/v1/widgets", 200, 0.01)
    metrics.observe("GET", "/apis/ex.io/v2/widgets", 200, 0.01)
    body = metrics.response().body
    assert isinstance(body, bytes)
    for version in ("v1", "v2"):
        found = text_string_to_metric_families(body.decode())
        samples = [each for family in found for each in family.samples]
        counted = [
            each.value
            for each in samples
            if each.name == "apiserver_request_total" and each.labels["version"] == version
        ]
        assert counted == [1]


def test_resources_that_are_not_served_are_no_labels() -> None:
    metrics = ApiServerMetrics(known=lambda group, version, plural: plural == "widgets")
    metrics.observe("GET", "/apis/ex.io/v1/widgets/a/status", 200, 0.01)
    for number in range(50):
        metrics.observe("GET", f"/apis/ex.io/v1/things{number}", 404, 0.01)
    found = samples(metrics)
    assert found["apiserver_request_total", ("GET", "ex.io", "widgets/status", "")] == 1
    assert found["apiserver_request_total", ("GET", "", "", "")] == 50
    assert len(list(metrics.series())) == 2


def test_times_fall_into_buckets() -> None:
    metrics = ApiServerMetrics()
    for seconds in (0.001, 0.005, 0.3, 100.0):
        metrics.observe("GET", "/version", 200, seconds)
    found = samples(metrics)
    name = "apiserver_request_duration_seconds"
    bucket = {le: found[f"{name}_bucket", ("GET", "", "", le)] for le in ("0.005", "0.4", "+Inf")}
    assert bucket == {"0.005": 2, "0.4": 3, "+Inf": 4}
    assert found[f"{name}_sum", ("GET", "", "", "")] == pytest.approx(100.306)


def test_a_watch_counts_but_takes_no_time() -> None:
    metrics = ApiServerMetrics()
    metrics.watchers = 2
    metrics.observe("GET", "/api/v1/pods", 200, None, watch=True)
    found = samples(metrics)
    assert found["apiserver_request_total", ("WATCH", "", "pods", "")] == 1
    assert found["apiserver_request_duration_seconds_count", ("WATCH", "", "pods", "")] == 0
    assert found["apiserver_longrunning_requests", ("", "", "", "")] == 2


def test_the_stores_revision_is_read_when_asked_for() -> None:
    revision = 7
    metrics = ApiServerMetrics(lambda: revision)
    assert samples(metrics)["polyver_store_revision", ("", "", "", "")] == 7
    revision = 8
    assert samples(metrics)["polyver_store_revision", ("", "", "", "")] == 8


def test_strangers_cannot_fill_the_memory_with_paths() -> None:
    metrics = ApiServerMetrics()
    for number in range(3000):
        metrics.observe("GET", f"/apis/g{number}/v1/things", 404, 0.01)
    assert len(list(metrics.series())) <= 1001
    assert samples(metrics)["apiserver_request_total", ("OTHER", "", "", "")] == 2000


def test_a_refused_request_is_counted_without_its_resource() -> None:
    metrics = ApiServerMetrics()
    metrics.observe("GET", "/api/v1/whatever", 403, 0.01)
    assert ("apiserver_request_total", ("GET", "", "", "")) in samples(metrics)


# Health. The texts are those of the real server.

WELL: Checks = {"ping": lambda: "", "store": lambda: ""}
ILL: Checks = {"ping": lambda: "", "store": lambda: "disk full"}


def told(response: HttpResponse) -> tuple[int, str]:
    assert isinstance(response.body, bytes)
    return response.status, response.body.decode()


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz/ping"])
def test_all_is_well(path: str) -> None:
    assert told(health(path, "", WELL)) == (200, "ok")


def test_every_check_is_named_on_request() -> None:
    assert told(health("/readyz", "verbose", WELL)) == (
        200,
        "[+]ping ok\n[+]store ok\nreadyz check passed\n",
    )


def test_what_is_wrong_is_named_but_not_why() -> None:
    status, text = told(health("/livez", "", ILL))
    assert status == 500
    assert text == "[+]ping ok\n[-]store failed: reason withheld\nlivez check failed\n"


def test_one_check_says_why() -> None:
    assert told(health("/livez/store", "", ILL)) == (500, "internal server error: disk full\n")


def test_a_check_can_be_left_out() -> None:
    assert told(health("/livez", "exclude=store&verbose", ILL)) == (
        200,
        "[+]ping ok\n[+]store excluded: ok\nlivez check passed\n",
    )


def test_leaving_out_what_is_not_there_is_remarked() -> None:
    _, text = told(health("/livez", "exclude=etcd&verbose", WELL))
    assert 'warn: some health checks cannot be excluded: no matches for "etcd"\n' in text


@pytest.mark.parametrize("path", ["/livez/", "/livez/nothing"])
def test_there_is_no_other_check(path: str) -> None:
    assert told(health(path, "", WELL)) == (404, "404 page not found\n")
