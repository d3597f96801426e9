"""The webhooks of CustomResourceDefinitions, from command-line options and from the kinds.

Each kind can state its own webhook: a kind in Python with `Kind(…, webhook=Webhook(…))`, a
CustomResourceDefinition in `spec.conversion`. Options apply to all kinds, and override what the
kinds state. `--webhook-service` and `--webhook-url` replace the whole webhook, because another
server has another CA. Without them, the options for the CA replace the CA of the kinds' own
webhooks.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyver.cli.exit_codes import Misused, UnreadableInput
from polyver.cli.output import warn
from polyver.core import listed
from polyver.kube.objects.webhooks import CONVERT, Webhook, webhook_problem

if TYPE_CHECKING:
    from polyver.apis.declaring import Kind

__all__ = ["WebhookOptions", "read_webhook_options"]


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """The parsed command-line options that describe the webhook server."""

    address: Webhook | None
    """The webhook of --webhook-service or --webhook-url, with its CA."""
    ca_bundle: str
    inject_ca_from: str

    def webhook_of(self, kind: Kind) -> Webhook | None:
        """Return the webhook that converts objects of a kind; None if there is none."""
        own = kind.definition().webhook
        if self.address or own is None or not (self.ca_bundle or self.inject_ca_from):
            return self.address or own
        return replace(own, ca_bundle=self.ca_bundle, inject_ca_from=self.inject_ca_from)

    def check(self, kinds: Iterable[Kind]) -> None:
        """Raise Misused if there are options for the CA, but no webhook to which they apply."""
        if self.address or any(kind.definition().webhook for kind in kinds):
            return
        given = {"--inject-ca-from": self.inject_ca_from, "--webhook-ca": self.ca_bundle}
        for option in (option for option, value in given.items() if value):
            hint = "or state the webhook at the kind: Kind(…, webhook=Webhook(…))"
            raise Misused(f"{option} needs --webhook-service or --webhook-url", hint=hint)

    def admission(self, kinds: Sequence[Kind]) -> list[dict[str, Any]]:
        """Build the webhook configurations for admission of kinds.

        With --webhook-service or --webhook-url, one webhook server admits all kinds. Otherwise,
        each kind needs a webhook of its own, and gets its own configurations.
        """
        from polyver.apis.admission.kinds import wanted_by
        from polyver.webhook.configurations import configurations

        wanted = {kind.definition().name: wanted_by(kind) for kind in kinds}
        if not any(wanted.values()):
            warn("no kind has hooks or conversions, so no webhook is needed")
        if self.address:
            server = _server(self.address)
            return configurations([each for found in wanted.values() for each in found], server)
        named = [kind for kind in kinds if wanted[kind.definition().name]]
        self._check_admission(named)
        return [
            manifest
            for kind in named
            if (webhook := self.webhook_of(kind)) is not None
            for manifest in configurations(
                wanted[kind.definition().name],
                _server(webhook),
                name=f"polyver.{kind.definition().name}",
            )
        ]

    def _check_admission(self, kinds: Sequence[Kind]) -> None:
        """Raise Misused for kinds that state no webhook of polyver.

        The webhook in a CustomResourceDefinition can be a program that only converts.
        """
        lacking = [each.kind for each in kinds if not (each.is_ours and each.webhook)]
        if lacking or not kinds:
            fact = "--admission needs --webhook-service or --webhook-url"
            hint = f"no kind in Python states a webhook for {listed(lacking)}" if lacking else ""
            raise Misused(fact, hint=hint)


def read_webhook_options(
    service: str | None, url: str | None, ca: Path | None, inject: str | None
) -> WebhookOptions:
    """Parse the options; raise Misused if one of them is wrong."""
    if service and url:
        raise Misused("--webhook-service and --webhook-url exclude each other")
    if inject and not re.fullmatch(r"[^/:]+/[^/:]+", inject):
        raise Misused(f"--inject-ca-from {inject} is not NAMESPACE/NAME")
    bundle = _bundle(ca)
    address = _at_service(service) if service else _at_url(url) if url else None
    if address is not None:
        address = replace(address, ca_bundle=bundle, inject_ca_from=inject or "")
    return WebhookOptions(address, bundle, inject or "")


def _at_url(url: str) -> Webhook:
    found = Webhook(url=url)
    if webhook_problem(found):
        raise Misused(f"--webhook-url {url} does not begin with https:// and a host")
    return found


def _at_service(service: str) -> Webhook:
    parts = re.fullmatch(r"([^/:]+)/([^/:]+)(?::([0-9]+))?", service)
    port = int(parts[3]) if parts and parts[3] else None
    if parts is None or (port is not None and not 0 < port < 65536):
        raise Misused(f"--webhook-service {service} is not NAMESPACE/NAME[:PORT]")
    return Webhook(parts[1], parts[2], port, CONVERT)


def _bundle(file: Path | None) -> str:
    if file is None:
        return ""
    from cryptography import x509

    hint = "pass the ca.crt that `polyver serve` prints"
    try:
        content = file.read_bytes()
        x509.load_pem_x509_certificates(content)
    except OSError as error:
        fact = f"{file} cannot be read: {error.strerror}"
        raise UnreadableInput(fact, at="--webhook-ca", hint=hint) from None
    except ValueError:
        raise UnreadableInput(
            f"{file} contains no certificate", at="--webhook-ca", hint=hint
        ) from None
    return base64.b64encode(content).decode()


def _server(webhook: Webhook) -> Webhook:
    """Return the webhook without the URL path for conversions: admission has other paths."""
    if not webhook.url:
        return webhook
    server, _, path = webhook.url.removeprefix("https://").partition("/")
    if path not in ("", CONVERT.removeprefix("/")):
        hint = f"write https://HOST:PORT{CONVERT}, as `polyver serve` prints it"
        raise Misused(f"/{path} is not the address of the webhook", hint=hint)
    return replace(webhook, url=f"https://{server}")
