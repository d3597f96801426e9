"""`polyver crds` for kinds that state their own webhook."""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.app.test_cli import Ran
from tests.modules import forget_modules

from polyver.apis import InvalidKind, Kind, Webhook
from polyver.kube.http.tls import Authority
from polyver.kube.objects import load_manifests

INJECT = "cert-manager.io/inject-ca-from"
KINDS = """
from polyver import apis

job = apis.Kind("ExternalJob", group="ex.io", webhook=WEBHOOK)
plain = apis.Kind("Plain", group="ex.io")

for kind in (job, plain):
    @kind.version("v1")
    class V1:
        size: int

    @kind.version("v3", storage=True)
    class V3:
        size: int

    @kind.edge("v1", "v3")
    def same(e):
        pass
"""
STATED = (
    'apis.Webhook("jobs", "hooks", 8443, inject_ca_from="jobs/cert", reviews=("v1", "v1beta1"))'
)
SERVICE = {"namespace": "jobs", "name": "hooks", "path": "/convert", "port": 8443}


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Ran]]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    Path("kinds.py").write_text(KINDS.replace("WEBHOOK", STATED))
    Path("ca.crt").write_bytes(Authority.create("test", now=datetime.now(UTC)).pem)
    yield lambda *arguments: Ran(capsys, "crds", *arguments)
    forget_modules(tmp_path)


def crds(ran: Ran) -> dict[str, Any]:
    """Return the printed manifests by name; a name with several manifests has the last one."""
    assert ran.code == 0, ran.err
    found: list[Any] = [each.value for each in load_manifests(ran.out, "-")]
    return {each["metadata"]["name"]: each for each in found}


def client(crd: dict[str, Any]) -> Any:
    return crd["spec"]["conversion"]["webhook"]["clientConfig"]


def test_kubebuilder_the_webhook_annotation_of_a_type_fills_its_custom_resource_conversion(
    run: Callable[..., Ran],
) -> None:
    ran = run("kinds.py")
    found = crds(ran)
    job = found["externaljobs.ex.io"]
    assert job["spec"]["conversion"] == {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {"service": SERVICE},
            "conversionReviewVersions": ["v1", "v1beta1"],
        },
    }
    assert job["metadata"]["annotations"] == {INJECT: "jobs/cert"}
    assert found["plains.ex.io"]["spec"]["conversion"] == {"strategy": "None"}
    assert "no webhook converts Plain between" in ran.err
    assert "ExternalJob" not in ran.err


def test_an_address_in_the_options_replaces_the_whole_webhook_of_a_kind(
    run: Callable[..., Ran],
) -> None:
    for options, expected in (
        (("--webhook-service", "shop/all"), {"name": "all", "namespace": "shop"}),
        (("--webhook-url", "https://127.0.0.1:8443/convert"), None),
    ):
        found = crds(run("kinds.py", *options))
        for name in ("externaljobs.ex.io", "plains.ex.io"):
            given = client(found[name])
            if expected is None:
                assert given == {"url": "https://127.0.0.1:8443/convert"}
            else:
                assert given == {"service": expected | {"path": "/convert"}}
            assert "annotations" not in found[name]["metadata"]


def test_a_ca_in_the_options_replaces_the_ca_of_the_kinds_own_webhooks(
    run: Callable[..., Ran],
) -> None:
    bundle = base64.b64encode(Path("ca.crt").read_bytes()).decode()
    job = crds(run("kinds.py", "--webhook-ca", "ca.crt"))["externaljobs.ex.io"]
    assert client(job) == {"service": SERVICE, "caBundle": bundle}
    assert "annotations" not in job["metadata"]
    job = crds(run("kinds.py", "--inject-ca-from", "a/b"))["externaljobs.ex.io"]
    assert client(job) == {"service": SERVICE}
    assert job["metadata"]["annotations"] == {INJECT: "a/b"}


def test_manifests_state_the_webhook_in_their_conversion(run: Callable[..., Ran]) -> None:
    run("kinds.py", "--output", "crds")
    written = Path("crds/externaljobs.ex.io.yaml").read_text()
    assert run("crds/externaljobs.ex.io.yaml").out == written
    job = crds(run("crds", "--webhook-ca", "ca.crt"))["externaljobs.ex.io"]
    assert (client(job)["service"], job["metadata"].get("annotations")) == (SERVICE, None)
    job = crds(run("crds", "--webhook-url", "https://a.ex.io/c"))["externaljobs.ex.io"]
    assert (client(job), job["metadata"].get("annotations")) == (
        {"url": "https://a.ex.io/c"},
        None,
    )


def test_admission_is_at_the_webhook_of_the_kind(run: Callable[..., Ran]) -> None:
    ran = run("kinds.py", "--admission")
    assert ran.code == 2
    assert ran.err.endswith(
        "error: --admission needs --webhook-service or --webhook-url; "
        "no kind in Python states a webhook for Plain\n"
    )
    own = 'webhook=apis.Webhook(url="https://p.ex.io:8443/convert")'
    both = KINDS.replace("WEBHOOK", STATED).replace('"Plain", ', f'"Plain", {own}, ')
    Path("own.py").write_text(both)
    found = crds(run("own.py", "--admission"))
    job, plain = found["polyver.externaljobs.ex.io"], found["polyver.plains.ex.io"]
    assert job["kind"] == plain["kind"] == "ValidatingWebhookConfiguration"
    assert job["metadata"]["annotations"] == {INJECT: "jobs/cert"}
    [hook] = job["webhooks"]
    assert hook["clientConfig"] == {"service": SERVICE | {"path": "/admit/validate"}}
    [hook] = plain["webhooks"]
    assert hook["clientConfig"] == {"url": "https://p.ex.io:8443/admit/validate"}
    run("kinds.py", "--output", "crds")
    assert "no kind in Python states a webhook for" in run("crds", "--admission").err


@pytest.mark.parametrize(
    ("webhook", "says"),
    [
        (Webhook(), "it needs either a Service or a URL"),
        (Webhook(service="hooks"), "a Service needs a namespace and a name"),
        (Webhook("a", "b", url="https://a"), "it needs either a Service or a URL"),
        (Webhook(url="http://a"), "the URL http://a does not begin with https:// and a host"),
        (Webhook(url="https://a", port=1), "port and path belong to a Service"),
        (Webhook("a", "b", 0), "the port 0 is not between 1 and 65535"),
        (Webhook("a", "b", path="c"), "the path c does not begin with /"),
        (Webhook("a", "b", inject_ca_from="c"), "inject_ca_from c is not NAMESPACE/NAME"),
        (Webhook("a", "b", ca_bundle="c"), "ca_bundle is not a PEM certificate in base64"),
        (Webhook("a", "b", reviews=("v2",)), "reviews must be one or both of v1 and v1beta1"),
    ],
)
def test_a_webhook_that_cannot_be_called_is_an_error_of_the_kind(
    webhook: Webhook, says: str
) -> None:
    kind = Kind("Toy", group="ex.io", webhook=webhook)
    with pytest.raises(InvalidKind, match=r"test_crd_webhooks.py:\d+") as caught:
        kind.definition()
    assert caught.value.fact.startswith(f"Toy has a webhook that API servers cannot call: {says}")


def test_the_strategy_none_and_a_webhook_exclude_each_other() -> None:
    kind = Kind("Toy", group="ex.io", strategy="None", webhook=Webhook("a", "b"))
    with pytest.raises(InvalidKind, match='has strategy="None", but also a webhook'):
        kind.definition()
