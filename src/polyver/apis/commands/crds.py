"""`polyver crds`: write the CustomResourceDefinitions of kinds that a project declares."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from polyver.apis.commands.kinds import load_kinds
from polyver.cli.exit_codes import Misused, OutOfDate, UnreadableInput
from polyver.cli.output import ManifestFormat, manifests_text, print_lines, warn
from polyver.core import listed

if TYPE_CHECKING:
    from polyver.apis.commands._webhook_options import WebhookOptions
    from polyver.apis.declaring import Kind

app = App(name="crds")


@app.default
def crds(
    *kinds: str,
    form: Annotated[ManifestFormat, Parameter(name=["-o"])] = ManifestFormat.YAML,
    output: Annotated[str | None, Parameter(name=["--output"])] = None,
    check: Annotated[bool, Parameter(negative=())] = False,
    webhook_service: str | None = None,
    webhook_url: str | None = None,
    webhook_ca: Path | None = None,
    inject_ca_from: str | None = None,
    admission: Annotated[bool, Parameter(negative=())] = False,
    traceback: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Write the CustomResourceDefinitions of kinds, to files or to standard output.

    If the kinds have not changed, the command writes the same bytes again.

    Example: polyver crds myproject.kinds --output config/crds --webhook-service shop/hooks

    Parameters
    ----------
    kinds
        The kinds: modules (myproject.kinds), .py files, files with CustomResourceDefinitions (v1 or
        v1beta1), or folders of these. In a folder, polyver imports only Python files that mention
        polyver. Default: the modules that pyproject.toml lists ([tool.polyver] kinds =
        ["myproject.kinds"]).
    form
        The output format.
    output
        The file or folder to write. In a folder, each kind gets its own file. Default: standard
        output.
    check
        Write nothing. Compare the CustomResourceDefinitions with the files in --output, print the
        differences, and exit with code 1 if a file differs.
    webhook_service
        The Service of the webhook server, as NAMESPACE/NAME[:PORT]. The webhook server converts
        objects of kinds with several versions. This option and --webhook-url replace the webhooks
        that the kinds state: Kind(…, webhook=Webhook(…)) in Python, spec.conversion in manifests.
    webhook_url
        The URL of the conversion webhook, if the webhook server is outside the cluster.
    webhook_ca
        A PEM file with the CA certificates with which API servers verify the webhook server of
        --webhook-service or --webhook-url, or else the webhooks that the kinds state.
    inject_ca_from
        The Certificate object from which cert-manager injects the CA bundle into the
        CustomResourceDefinitions, as NAMESPACE/NAME.
    admission
        Also write a MutatingWebhookConfiguration and a ValidatingWebhookConfiguration. Both call
        the webhook server that --webhook-service or --webhook-url names. Without these options,
        each kind must state its webhook in Python, and gets configurations of its own. The
        configurations cover kinds with functions that default or validate objects, and kinds with
        several versions that the webhook server converts.
    traceback
        Also print the Python traceback if your code raises an exception while polyver imports it.
    """
    if output in [each.value for each in ManifestFormat]:
        hint = f"for a format, write -o {output}"
        raise Misused(f"--output {output} names a file, not a format", hint=hint)
    if check and output is None:
        raise Misused("--check needs --output", hint="name the files with --output")
    from polyver.apis.commands._webhook_options import read_webhook_options

    webhooks = read_webhook_options(webhook_service, webhook_url, webhook_ca, inject_ca_from)
    found = load_kinds(kinds, show_traceback=traceback)
    webhooks.check(found)
    _warn(found, webhooks)
    manifests = _manifests(found, webhooks)
    if admission and (configurations := webhooks.admission(found)):
        manifests["admission"] = configurations
    texts = _texts(manifests, form, output)
    if output is None:
        print_lines(*(text.removesuffix("\n") for text in texts.values()))
    elif check:
        _compare(texts)
    else:
        _write(texts)


def _manifests(kinds: Sequence[Kind], webhooks: WebhookOptions) -> dict[str, list[dict[str, Any]]]:
    """Build the manifests, by file name without suffix, such as `crontabs.stable.example.com`."""
    from polyver.apis.crds import crd_of

    crds = [crd_of(kind.definition(), webhooks.webhook_of(kind)) for kind in kinds]
    return {crd["metadata"]["name"]: [crd] for crd in crds}


def _warn(kinds: Sequence[Kind], webhooks: WebhookOptions) -> None:
    for kind in kinds:
        definition = kind.definition()
        told = webhooks.webhook_of(kind) or definition.strategy
        if len(definition.versions) > 1 and not told:
            names = listed([version.name for version in definition.versions])
            warn(
                f"no webhook converts {definition.kind} between {names}, so a cluster would change "
                "only its apiVersion; pass --webhook-service, or declare "
                'webhook=Webhook(…) or strategy="None"'
            )


def _texts(
    manifests: dict[str, list[dict[str, Any]]], form: ManifestFormat, output: str | None
) -> dict[Path, str]:
    """Format manifests as text; return the text of each file by the path of the file.

    If `output` is a folder, each manifest gets its own file. Otherwise all manifests are in one
    text; its path is "-" (standard output) if `output` is None.
    """
    if output is not None and _is_folder(output):
        return {
            Path(output) / f"{name}.{form.value}": manifests_text(each, form)
            for name, each in manifests.items()
        }
    everything = [each for found in manifests.values() for each in found]
    return {Path(output or "-"): manifests_text(everything, form)}


def _is_folder(output: str) -> bool:
    path = Path(output)
    return path.is_dir() or output.endswith("/") or not path.suffix


def _write(texts: dict[Path, str]) -> None:
    for path, text in texts.items():
        if _read(path) == text:
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UnreadableInput(f"{path} cannot be written: {error.strerror}") from None
        print_lines(f"wrote {path}")


def _compare(texts: dict[Path, str]) -> None:
    stale = []
    for path, text in texts.items():
        found = _read(path)
        if found != text:
            stale.append(str(path))
            names = str(path) if found else "/dev/null", str(path)
            print_lines(*unified_diff(found.splitlines(), text.splitlines(), *names, lineterm=""))
    if stale:
        fact = f"outdated: {listed(stale)}"
        raise OutOfDate(fact, hint="run the command without --check")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableInput(f"{path} cannot be read: {error}") from None
