"""`polyver convert`: convert objects in files to another version, without a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from polyver.cli.exit_codes import Misused, UnknownName, UnreadableInput
from polyver.cli.files import read_manifests
from polyver.cli.output import ManifestFormat, manifests_text, print_lines, warn
from polyver.core import PolyverError, listed
from polyver.core.plain import Object
from polyver.kube.objects import Document

if TYPE_CHECKING:
    from polyver.apis.conversion import Converter

app = App(name="convert")

Key = tuple[str, str]


@app.default
def convert(
    *,
    file: Annotated[
        list[str], Parameter(name=["--file", "-f"], negative=(), allow_leading_hyphen=True)
    ],
    to: str,
    conversions: Annotated[list[str] | None, Parameter(negative=())] = None,
    kinds: Annotated[list[str] | None, Parameter(negative=())] = None,
    output: Annotated[ManifestFormat, Parameter(name=["--output", "-o"])] = ManifestFormat.YAML,
    explain: Annotated[bool, Parameter(negative=())] = False,
    traceback: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Convert objects to another version of their kind, and print the converted objects.

    If the version of --to does not have a field of an object, the printed object preserves the
    field, by default in an annotation. When the object is converted back, the field is restored.

    Example: polyver convert -f crontab.yaml --conversions conversions/ --to stable.example.com/v2

    Parameters
    ----------
    file
        A file or folder with the objects, or '-' for standard input; repeatable. The items of a
        List object are converted and printed one by one.
    to
        The version to convert to: GROUP/VERSION. Objects of other API groups are printed unchanged.
    conversions
        A file or folder with Conversions; repeatable. CustomResourceDefinitions in these files
        state which fields each version has.
    kinds
        A module, file or folder with kinds declared in Python, as for the argument KINDS of
        `polyver crds`; repeatable.
    output
        The output format.
    explain
        Also print on standard error which fields of each object are preserved because the version
        of --to does not have them.
    traceback
        Also print the Python traceback if your code raises an exception while polyver imports it.
    """
    group, version = _target(to)
    if not conversions and not kinds:
        raise Misused("no conversion is given", hint="pass --conversions or --kinds")
    from polyver.apis.commands.conversions import load_converters

    converters = load_converters(conversions or [], kinds or [], show_traceback=traceback)
    if group not in {key[0] for key in converters}:
        known = listed(sorted({key[0] for key in converters}))
        raise UnknownName(f"no conversion for {group}", at="--to", hint=f"known: {known}")
    made = [
        _converted(document, converters, group, version)
        for document in _objects(read_manifests(file))
    ]
    if explain:
        _explain(made, converters)
    print_lines(manifests_text(made, output).removesuffix("\n"))


def _target(text: str) -> Key:
    group, _, version = text.rpartition("/")
    if not group or not version:
        raise Misused(f"{text!r} is not GROUP/VERSION", at="--to", hint="write GROUP/VERSION")
    return group, version


def _objects(documents: Sequence[Document]) -> Iterator[Document]:
    """Yield the objects in documents; for a List object, yield its items instead."""
    for document in documents:
        value = document.value
        if not isinstance(value, Mapping):
            raise document.error("this is not an object")
        if isinstance(value.get("items"), list) and str(value.get("kind", "")).endswith("List"):
            for number in range(len(value["items"])):
                yield document.part("items", number)
        else:
            yield document


def _converted(
    document: Document, converters: Mapping[Key, Converter], group: str, version: str
) -> Object:
    value = document.value
    if not isinstance(value, dict):
        raise document.error("this is not an object")
    own, _, _ = str(value.get("apiVersion", "")).rpartition("/")
    found = converters.get((own, str(value.get("kind", ""))))
    if own != group or found is None:
        return value
    try:
        return found.convert(value, version)
    except PolyverError as error:
        raise document.error(error.fact, hint=error.hint) from None
    except Exception as error:
        # Only the user's code raises anything else.
        raise UnreadableInput(
            f"the conversion to {version} failed: {type(error).__name__}: {error}",
            at=document.place(),
        ) from error


def _explain(made: Sequence[Object], converters: Mapping[Key, Converter]) -> None:
    for obj in made:
        group, _, _ = str(obj.get("apiVersion", "")).rpartition("/")
        found = converters.get((group, str(obj.get("kind", ""))))
        name = f"{obj.get('kind')}/{(obj.get('metadata') or {}).get('name', '')}"
        if found and (strange := found.unknown_format(obj)):
            warn(
                f"{name} has preserved fields that this release cannot read ({strange}); they are "
                "kept unchanged and not restored"
            )
        for version, fields in (found.carried(obj) if found else {}).items():
            warn(f"{name} has preserved fields of {version}: {listed(fields)}")
    for (group, kind), converter in converters.items():
        if unknown := [each for each in converter.versions if each not in converter.schemas]:
            warn(
                f"{kind} of {group} has no schema for {listed(unknown)}, so fields that a version "
                "lacks cannot be detected, and are copied"
            )
