"""`polyver run`: run one replica of polyver for a cluster, with its controllers and webhooks.

The leader among the replicas runs the controllers.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

from cyclopts import App, Parameter
from cyclopts.validators import Number

from polyver.app.capability_options import CapabilityOptions
from polyver.cli.exit_codes import Misused
from polyver.cli.output import flush, print_lines
from polyver.cli.signals import signalled
from polyver.kube.http.addresses import local_names

if TYPE_CHECKING:
    from polyver.app._replica import Replica, ReplicaSettings
    from polyver.kube.objects.webhooks import Webhook
    from polyver.webhook.served_certificate import PairSource

PORT = 8443
SERVICE = "polyver"
_USUAL = CapabilityOptions()

app = App(name="run")


@app.default
def run(
    *,
    kinds: Annotated[list[str] | None, Parameter(negative=())] = None,
    having: CapabilityOptions = _USUAL,
    kubeconfig: Path | None = None,
    context: str = "",
    namespace: str = "",
    service: str = SERVICE,
    webhook_url: str = "",
    host: str = "0.0.0.0",  # noqa: S104 - API servers call it
    port: Annotated[int, Parameter(validator=Number(gte=0, lte=65535))] = PORT,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    inject_ca_from: str = "",
    linger: Annotated[float, Parameter(validator=Number(gte=0, lte=600))] = 5.0,
    verbose: Annotated[bool, Parameter(negative=())] = False,
    traceback: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Run the controllers and webhooks on a cluster, until interrupted.

    Several replicas may run. Every replica answers conversion and admission reviews; only the
    leader runs the controllers. `polyver install` installs everything that this command needs on
    the cluster.

    Example: polyver run --context production --kinds myproject.kinds

    Parameters
    ----------
    kinds
        A module, file or folder with kinds declared in Python, as for the argument KINDS of
        `polyver crds`; repeatable. polyver converts the objects of these kinds, calls the kinds'
        hooks (functions that default or validate objects), and runs their controllers.
    kubeconfig
        The kubeconfig file. Default: the file that kubectl uses, or the service account of the pod.
    context
        The context of the kubeconfig. Default: the current context.
    namespace
        The namespace of two objects that polyver creates: the Lease for leader election, and the
        Secret with the certificates. Default: the namespace of the context or of the pod.
    service
        The Service through which API servers reach all replicas. It must be in the namespace of
        --namespace.
    webhook_url
        The URL at which API servers reach this process, instead of the Service: https://HOST:PORT.
    host
        The address to listen on.
    port
        The port to listen on; 0 chooses a free port.
    tls_cert
        A PEM file with a server certificate that another program, such as cert-manager, creates and
        renews. polyver reloads the file when it changes. Requires --tls-key. Default: the replicas
        create and renew one certificate that they share.
    tls_key
        A PEM file with the private key for the certificate of --tls-cert.
    inject_ca_from
        The Certificate object of cert-manager that issues the certificate of --tls-cert, as
        NAMESPACE/NAME. cert-manager injects the CA of this Certificate into
        CustomResourceDefinitions and webhook configurations.
    linger
        The shutdown grace period in seconds. For this time after SIGTERM, this replica still
        answers reviews, but reports that it is not ready, so that API servers stop calling it.
    verbose
        Log every conversion review and every admission review.
    traceback
        Also print the Python traceback if your code raises an exception while polyver imports it.
    """
    import uvloop

    from polyver.apis.commands.kinds import load_kinds
    from polyver.app._replica import ReplicaSettings
    from polyver.client.cluster import find_access

    choices = having.on_a_cluster(show_traceback=traceback)
    access = find_access(context, kubeconfig=kubeconfig)
    inside = namespace or access.namespace
    if inject_ca_from and tls_cert is None:
        raise Misused("--inject-ca-from needs --tls-cert and --tls-key")
    webhook = replace(_webhook(inside, service, webhook_url), inject_ca_from=inject_ca_from)
    settings = ReplicaSettings(
        access,
        webhook,
        host,
        port,
        inside,
        tuple(dict.fromkeys([*_names(webhook), *local_names(host)])),
        tuple(load_kinds(kinds, show_traceback=traceback)) if kinds else (),
        _pair(tls_cert, tls_key),
        identity=f"{socket.gethostname()}.{uuid.uuid4().hex[:8]}",
        verbose=verbose,
        choices=choices,
    )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(settings, linger))


async def _run(settings: ReplicaSettings, linger: float) -> None:
    from polyver.app._replica import replica

    ended = signalled()
    async with replica(settings) as running:
        _announce(running, settings)
        # Exclude the loaded objects from garbage collection. They are used until the end, so
        # scanning them again and again would be useless.
        gc.collect()
        gc.freeze()
        over: set[asyncio.Future[Any]] = {ended, running.failed}
        await asyncio.wait(over, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            running.failed.result()
        await running.retire()
        if ended.result() == signal.SIGTERM:
            await asyncio.sleep(linger)


def _announce(running: Replica, settings: ReplicaSettings) -> None:
    count = f"{running.kinds} {'kind' if running.kinds == 1 else 'kinds'}"
    print_lines(
        f"polyver runs on {settings.access.server} as {running.identity}, in {settings.namespace}",
        f"converting {count} at {running.url}/convert; {running.trust}",
    )
    flush()


def _webhook(namespace: str, service: str, url: str) -> Webhook:
    from polyver.kube.objects.webhooks import Webhook

    if not url:
        return Webhook(namespace, service)
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname or parts.path.strip("/") or parts.query:
        hint = "write https://HOST:PORT"
        raise Misused(f"{url!r} is not the URL of a webhook", at="--webhook-url", hint=hint)
    return Webhook(url=url.rstrip("/"))


def _names(webhook: Webhook) -> list[str]:
    """Return the host names at which API servers call the webhook, for the certificate."""
    if webhook.url:
        return [urlsplit(webhook.url).hostname or ""]
    name = f"{webhook.service}.{webhook.namespace}.svc"
    return [name, f"{name}.cluster.local"]


def _pair(certificate: Path | None, key: Path | None) -> PairSource | None:
    from polyver.webhook.served_certificate import FilePairs

    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise Misused(
            "--tls-cert and --tls-key are required together", hint="pass both files, or none"
        )
    return FilePairs(certificate, key)
