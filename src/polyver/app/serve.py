"""`polyver serve`: a webhook that converts and admits for API servers, until interrupted."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter
from cyclopts.validators import Number

from polyver.cli.exit_codes import Misused
from polyver.cli.files import data_folder, fingerprint
from polyver.cli.output import flush, print_lines
from polyver.cli.signals import signalled
from polyver.kube.http.addresses import LOOPBACK, local_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polyver.app._webhook import RunningWebhook, WebhookSettings
    from polyver.webhook import ReviewHandlers
    from polyver.webhook.served_certificate import PairSource

PORT = 8443
_MIB = 1024 * 1024

app = App(name="serve")


@app.default
def serve(
    *,
    conversions: Annotated[
        list[str] | None,
        Parameter(name=["--conversions", "-f"], negative=(), allow_leading_hyphen=True),
    ] = None,
    kinds: Annotated[list[str] | None, Parameter(negative=())] = None,
    host: str = LOOPBACK,
    port: Annotated[int, Parameter(validator=Number(gte=0, lte=65535))] = PORT,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    certificates: Path | None = None,
    hostname: Annotated[list[str] | None, Parameter(negative=())] = None,
    largest: Annotated[int, Parameter(validator=Number(gte=1, lte=1024))] = 64,
    memory: Annotated[int | None, Parameter(validator=Number(gte=192))] = None,
    linger: Annotated[float, Parameter(validator=Number(gte=0, lte=600))] = 5.0,
    verbose: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Convert and admit objects for API servers that ask over HTTPS, until interrupted.

    Example: polyver serve --conversions conversions/ --hostname polyver.default.svc

    Parameters
    ----------
    conversions
        A file or a folder with Conversions; repeatable. They are read again when they change, and
        on SIGHUP; what cannot be read then leaves the old ones in place.
    kinds
        Where kinds are that are declared in Python: modules, .py files or folders, as for
        `polyver crds`; repeatable. Their hooks are served as admission.
    host
        The address to listen on.
    port
        The port to listen on; 0 takes any that is free.
    tls_cert
        A file with the certificate and those between it and its authority, as PEM. It is read again
        when it changes.
    tls_key
        A file with the key of that certificate, as PEM.
    certificates
        Where polyver keeps a certificate and an authority of its own, which it makes and renews:
        by default `polyver/webhook` in the user's data folder. `ca.crt` in it is what API servers
        have to trust.
    hostname
        A name by which API servers call this webhook, such as `NAME.NAMESPACE.svc`; repeatable.
    largest
        The largest review that is taken, in MiB; less where there is not the memory for it.
    memory
        How much memory the process may use, in MiB: by default the limit of its control group, as
        a container has one, else a quarter of the machine's. Reviews for which there is none wait,
        and are answered with 429 after half of their time.
    linger
        For how many seconds reviews are still taken after SIGTERM, while others hear that this
        webhook is not ready any more.
    verbose
        Log every review.
    """
    from polyver.app._webhook import WebhookSettings

    paths = conversions or []
    if not paths and not kinds:
        hint = "name --conversions or --kinds"
        raise Misused("nothing says how to convert", hint=hint)
    if "-" in paths:
        hint = "name a file, which can be read again"
        raise Misused("standard input cannot be watched", at="--conversions", hint=hint)
    pair = _pair(tls_cert, tls_key, certificates, hostname or [], host)
    settings = WebhookSettings(
        pair, host, port, largest * _MIB, verbose, memory * _MIB if memory else None
    )

    def load() -> ReviewHandlers:
        from polyver.apis.commands.conversions import load_served

        return load_served(paths, kinds or [])

    run(settings, load, lambda: fingerprint(paths), linger=linger)


def run(
    settings: WebhookSettings,
    load: Callable[[], ReviewHandlers],
    changes: Callable[[], str],
    *,
    linger: float,
) -> None:
    """Serve what is loaded until a signal arrives."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings, load, changes, linger))


async def _serve(
    settings: WebhookSettings,
    load: Callable[[], ReviewHandlers],
    changes: Callable[[], str],
    linger: float,
) -> None:
    from polyver.app._webhook import webhook

    ended = signalled()
    async with webhook(settings, load, changes) as running:
        _announce(running, settings)
        # What is loaded now stays; the garbage collector need not scan it repeatedly.
        gc.collect()
        gc.freeze()
        number = await ended
        running.drain()
        if number == signal.SIGTERM:
            await asyncio.sleep(linger)


def _announce(running: RunningWebhook, settings: WebhookSettings) -> None:
    from polyver.webhook.configurations import MUTATE, VALIDATE

    trust = settings.pair.trust
    print_lines(f"polyver converts {_kinds(running.converted)} at {running.url}/convert; {trust}")
    if running.admitted:
        where = f"{running.url}{MUTATE} and {VALIDATE}"
        print_lines(f"polyver admits {_kinds(running.admitted)} at {where}")
    flush()


def _kinds(count: int) -> str:
    return f"{count} {'kind' if count == 1 else 'kinds'}"


def _pair(
    tls_cert: Path | None,
    tls_key: Path | None,
    certificates: Path | None,
    hostnames: Sequence[str],
    host: str,
) -> PairSource:
    if tls_cert is None and tls_key is None:
        from polyver.webhook.certificates import WebhookCertificates

        names = dict.fromkeys([*map(_checked, hostnames), *local_names(host)])
        return WebhookCertificates(certificates or data_folder() / "webhook", list(names))
    if tls_cert is None or tls_key is None:
        raise Misused("--tls-cert and --tls-key go together", hint="name both files, or neither")
    if certificates or hostnames:
        hint = "leave out --certificates and --hostname, or both files"
        raise Misused("a certificate is given, so none is made", at="--tls-cert", hint=hint)
    from polyver.webhook.served_certificate import FilePairs

    return FilePairs(tls_cert, tls_key)


def _checked(hostname: str) -> str:
    from polyver.languages.values.names import dns_subdomain_problems

    try:
        return str(ipaddress.ip_address(hostname))
    except ValueError:
        if dns_subdomain_problems(hostname.removeprefix("*.")):
            hint = "write it as in NAME.NAMESPACE.svc"
            raise Misused(
                f"{hostname!r} is no name of a host", at="--hostname", hint=hint
            ) from None
    return hostname
