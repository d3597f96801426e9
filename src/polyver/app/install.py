"""`polyver install`: apply or print the manifests with which `polyver run` runs on a cluster."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter
from cyclopts.validators import Number

from polyver.app.capability_options import CapabilityOptions
from polyver.capability.capability import Surroundings
from polyver.cli.exit_codes import Misused
from polyver.cli.output import ManifestFormat, manifests_text, print_lines, warn
from polyver.core import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polyver.app.installing import Installation

app = App(name="install")

_NAMESPACE = "polyver-system"
_USUAL = CapabilityOptions()


@app.default
def install(
    *,
    image: str,
    namespace: str = _NAMESPACE,
    replicas: Annotated[int, Parameter(validator=Number(gte=1, lte=100))] = 2,
    kinds: Annotated[list[str] | None, Parameter(negative=())] = None,
    having: CapabilityOptions = _USUAL,
    role: Annotated[list[str] | None, Parameter(negative=())] = None,
    tls_secret: str = "",
    inject_ca_from: str = "",
    context: str = "",
    dry_run: Annotated[bool, Parameter(negative=())] = False,
    form: Annotated[ManifestFormat, Parameter(name=["-o"])] = ManifestFormat.YAML,
    adopt: Annotated[bool, Parameter(negative=())] = False,
    wait: Annotated[float, Parameter(validator=Number(gte=0, lte=3600))] = 300.0,
    traceback: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Install polyver on a cluster, or change an existing installation.

    If the command runs again with the same options, it changes nothing.

    Example: polyver install --dry-run --image example.com/shop/polyver:1 | kubectl apply -f -

    Parameters
    ----------
    image
        The container image to run. It must contain `polyver` on its PATH, and the modules of
        --kinds and --functions.
    namespace
        The namespace of the installation. If it does not exist, the command creates it.
    replicas
        The number of replicas.
    kinds
        A module, file or folder with kinds declared in Python, as for the argument KINDS of
        `polyver crds`; repeatable. The module, file or folder must have the same name on this
        machine and in the image. polyver installs the CustomResourceDefinitions of the kinds, and
        gives itself the access rights that it needs to run their controllers.
    role
        An existing ClusterRole with access rights that your controllers need, for example to create
        Deployments; repeatable. The command binds this ClusterRole to the service account of
        polyver.
    tls_secret
        The name of a Secret in the namespace of --namespace. cert-manager must create and renew the
        certificate and the key in it (`tls.crt` and `tls.key`). Requires --inject-ca-from. Default:
        polyver creates and renews its certificates itself.
    inject_ca_from
        The Certificate object of cert-manager that writes the Secret of --tls-secret, as
        NAMESPACE/NAME. cert-manager injects the CA of this Certificate into
        CustomResourceDefinitions and webhook configurations.
    context
        The context of the kubeconfig. Default: the current context.
    dry_run
        Print the manifests instead of applying them; no cluster is needed.
    form
        The output format of --dry-run.
    adopt
        Change existing objects that `polyver install` did not create, and fields that other field
        managers own. Without this option, the command refuses to change them.
    wait
        The maximum number of seconds to wait until new replicas have replaced the old replicas. The
        command waits only if existing CustomResourceDefinitions get new versions. It adds these
        versions after the wait, because the old replicas cannot convert them.
    traceback
        Also print the Python traceback if your code raises an exception while polyver imports it.
    """
    from polyver.apis.commands.kinds import load_kinds
    from polyver.app.installing import Installation, manifests

    _check(image, namespace, role or [])
    _check_tls(tls_secret, inject_ca_from)
    installation = Installation(
        image,
        namespace,
        replicas,
        (*having.arguments(), *(word for each in kinds or () for word in ("--kinds", each))),
        tuple(load_kinds(kinds, show_traceback=traceback) if kinds else ()),
        having.on_a_cluster(show_traceback=traceback).contributions(
            Surroundings(namespace=namespace)
        ),
        tuple(role or ()),
        tls_secret,
        inject_ca_from,
    )
    _warn(installation)
    wanted = manifests(installation)
    if dry_run:
        print_lines(manifests_text(wanted, form).removesuffix("\n"))
        return
    asyncio.run(_install(installation, wanted, context, adopt=adopt, wait=wait))


async def _install(
    installation: Installation,
    wanted: Sequence[dict[str, object]],
    context: str,
    *,
    adopt: bool,
    wait: float,
) -> None:
    from polyver.app.installing import Installer
    from polyver.client.cluster import ClusterClient, find_access

    access = find_access(context)
    place = f"{access.server}, {access.place}"
    async with ClusterClient(access, agent="polyver-install") as client:
        installer = Installer(client, place, print_lines, adopt=adopt, patience=wait)
        await installer.install(installation, wanted)
    namespace = installation.namespace
    command = f"kubectl -n {namespace} rollout status deployment/polyver"
    print_lines(f"installed; `{command}` shows the progress")


def _warn(installation: Installation) -> None:
    for kind in installation.kinds:
        definition = kind.definition()
        told = kind.converter or definition.webhook or definition.strategy
        if len(definition.versions) > 1 and not told:
            names = listed([version.name for version in definition.versions])
            warn(
                f"no webhook converts {definition.kind} between {names}, so the cluster changes "
                "only its apiVersion, until a Conversion for it is applied"
            )


def _check(image: str, namespace: str, roles: Sequence[str]) -> None:
    from polyver.languages.values.names import dns_label_problems

    if not re.fullmatch(r"[^\s]+", image):
        raise Misused(f"{image!r} is not an image reference", at="--image")
    if problems := dns_label_problems(namespace):
        raise Misused(f"{namespace!r} is not a valid namespace: {problems[0]}", at="--namespace")
    for role in roles:
        if not role or role in (".", "..") or re.search(r"[/%\s]", role):
            raise Misused(f"{role!r} is not a valid name of a ClusterRole", at="--role")


def _check_tls(secret: str, certificate: str) -> None:
    from polyver.languages.values.names import dns_subdomain_problems

    if bool(secret) != bool(certificate):
        hint = "pass both, or none"
        raise Misused("--tls-secret and --inject-ca-from are required together", hint=hint)
    if secret and dns_subdomain_problems(secret):
        raise Misused(f"{secret!r} is not a valid name of a Secret", at="--tls-secret")
    if certificate and not re.fullmatch(r"[^/:\s]+/[^/:\s]+", certificate):
        raise Misused(f"{certificate!r} is not NAMESPACE/NAME", at="--inject-ca-from")
