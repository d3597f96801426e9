"""`polyver serve`: serve conversion and admission webhooks for API servers, until a signal."""

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
    """Serve conversion and admission webhooks over HTTPS, until interrupted.

    Example: polyver serve --conversions conversions/ --hostname polyver.default.svc

    Parameters
    ----------
    conversions
        A file or folder with Conversions; repeatable. polyver reloads the Conversions when these
        files change, and on SIGHUP. If it cannot read the new files, it continues to use the
        Conversions that it loaded before.
    kinds
        A module, file or folder with kinds declared in Python, as for the argument KINDS of
        `polyver crds`; repeatable. polyver converts the objects of these kinds. It serves the
        kinds' hooks (functions that default or validate objects) as admission webhooks.
    host
        The address to listen on.
    port
        The port to listen on; 0 chooses a free port.
    tls_cert
        A PEM file with the server certificate and its intermediate certificates. polyver reloads
        the file when it changes. Requires --tls-key.
    tls_key
        A PEM file with the private key for the certificate of --tls-cert.
    certificates
        The folder in which polyver creates and renews a server certificate and its own certificate
        authority (CA). polyver uses this folder only without --tls-cert. API servers must trust the
        file `ca.crt` in this folder. Default: `$XDG_DATA_HOME/polyver/webhook`, or
        `~/.local/share/polyver/webhook` if the variable is not set.
    hostname
        A host name by which API servers call this webhook server, such as `NAME.NAMESPACE.svc`;
        repeatable. polyver creates its certificate for these names.
    largest
        The maximum size of a review that the webhook server accepts, in MiB. If --memory is too
        small for a review of this size, the maximum is lower.
    memory
        The memory that the process may use, in MiB. Default: the memory limit of its control group
        (container), or a quarter of the memory of the machine if there is no limit. Each review
        waits until enough memory is free. If it waits too long, the webhook server answers it with
        the HTTP status 429.
    linger
        The shutdown grace period in seconds. For this time after SIGTERM, the webhook server still
        answers reviews, but reports that it is not ready, so that API servers stop calling it.
    verbose
        Log every conversion review and every admission review.
    """
    from polyver.app._webhook import WebhookSettings

    paths = conversions or []
    if not paths and not kinds:
        hint = "pass --conversions or --kinds"
        raise Misused("no conversion is given", hint=hint)
    if "-" in paths:
        hint = "pass a file instead"
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
    """Serve the conversions that `load` returns, until the process receives a signal."""
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
        # Exclude the loaded objects from garbage collection. They are used until the end, so
        # scanning them again and again would be useless.
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
        raise Misused(
            "--tls-cert and --tls-key are required together", hint="pass both files, or none"
        )
    if certificates or hostnames:
        hint = "omit --certificates and --hostname, or --tls-cert and --tls-key"
        raise Misused(
            "--tls-cert excludes --certificates and --hostname", at="--tls-cert", hint=hint
        )
    from polyver.webhook.served_certificate import FilePairs

    return FilePairs(tls_cert, tls_key)


def _checked(hostname: str) -> str:
    from polyver.languages.values.names import dns_subdomain_problems

    try:
        return str(ipaddress.ip_address(hostname))
    except ValueError:
        if dns_subdomain_problems(hostname.removeprefix("*.")):
            hint = "write for example NAME.NAMESPACE.svc"
            raise Misused(f"{hostname!r} is not a host name", at="--hostname", hint=hint) from None
    return hostname
