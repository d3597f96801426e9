"""Read earlier CustomResourceDefinitions and conversions for `polyver check --against`.

They are read from files, from a git revision, or from a cluster. This process has imported the
current Python modules, so it cannot import their earlier versions too. If a git revision declares
kinds in Python, a separate process imports them from a copy of the files.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from polyver.apis.checking import ConversionFinding, found
from polyver.apis.commands._behaviour import Key, behaviour_in
from polyver.apis.commands._live import compare_live
from polyver.apis.commands._subjects import LoadedKinds
from polyver.apis.commands.check_output import progress_bar
from polyver.apis.compatibility import RULES as COMPATIBILITY
from polyver.apis.compatibility import FindingSeverity, compare_definitions
from polyver.apis.conversion import Converter, build_converter, read_conversion
from polyver.apis.conversion.reading import GROUP, KIND
from polyver.apis.conversion_kind import CONVERSIONS, definition_of
from polyver.apis.crds import crd_of
from polyver.apis.definition import Definition
from polyver.apis.manifests import definitions_of
from polyver.apis.trials import BehaviourComparison, CheckedKind, EarlierConversions, Progress
from polyver.cli.cluster import CLUSTER, definitions_on, documents_on
from polyver.cli.exit_codes import Misused, UnreadableInput
from polyver.cli.files import SUFFIXES, read_manifests
from polyver.cli.output import warn
from polyver.client import GroupVersionResource
from polyver.core import PolyverError, listed
from polyver.kube.objects import Document, objects_of
from polyver.kube.objects.status import ApiError

__all__ = ["Earlier", "behaving", "compared", "earlier", "merged"]

_ALSO = f"{CLUSTER} is the cluster of the current context"
_CONVERSIONS = GroupVersionResource(
    CONVERSIONS.group, "v1alpha1", CONVERSIONS.names.plural, namespaced=False
)
_RUN = "import sys; from polyver.app import main; sys.exit(main())"


@dataclass(slots=True)
class Earlier:
    """Earlier CustomResourceDefinitions by name, and earlier conversions by group and kind."""

    definitions: dict[str, dict[str, Any]] = field(default_factory=dict)
    conversions: dict[Key, EarlierConversions] = field(default_factory=dict)


@contextmanager
def earlier(
    against: str, names: Sequence[str], kinds: Sequence[str], conversions: Sequence[str]
) -> Iterator[Earlier]:
    """Read the earlier state that the option --against names, and yield it to the `with` block.

    `names` are the names of the current CustomResourceDefinitions. `kinds` and `conversions` are
    arguments of `polyver check`.
    """
    if against.startswith(CLUSTER):
        yield _on_cluster(against, names)
    elif Path(against).exists():
        yield _in_manifests([against])
    else:
        with _of_revision(against, kinds, conversions) as found:
            yield found


def compared(loaded: LoadedKinds, before: Earlier, against: str) -> Iterator[ConversionFinding]:
    """Yield a finding for each change that may break users of a CustomResourceDefinition."""
    definitions = loaded.definitions
    invalid = {each.kind for each in loaded.findings}
    for name, old in before.definitions.items():
        if name not in definitions:
            if name in invalid:
                continue
            yield found("kind-removed", name, f"it is defined in {against}, but not here")
            continue
        now = definitions[name]
        for each in compare_definitions(_comparable(old, now), crd_of(now)):
            versions = (each.version,) if each.version else ()
            about = (name, each.rule, each.severity, each.fact, each.advice)
            yield ConversionFinding(*about, versions, each.path, now.place)


def behaving(
    loaded: LoadedKinds,
    before: Earlier,
    against: str,
    *,
    examples: int,
    seed: int,
    live: str | None,
) -> tuple[list[ConversionFinding], dict[str, int]]:
    """Compare the current conversions with the earlier ones, which are in `before`.

    Return a finding for each difference that clients can see. Also return the number of compared
    objects of the cluster `live` (None: no cluster), by the name of their CRD.
    """
    if not examples and live is None:
        return [], {}
    comparisons = [*_comparisons(loaded, before, against)]
    for each in comparisons if examples else ():
        with progress_bar(f"{each.subject.name}, before and now", examples) as progress:
            _generate(each, examples, seed, progress)
    objects = compare_live(live, comparisons) if live is not None else {}
    found = [finding for each in comparisons for finding in each.findings()]
    for each in comparisons:
        for note in each.notes:
            warn(note)
    return found, objects


def _generate(
    comparison: BehaviourComparison, examples: int, seed: int, progress: Progress
) -> None:
    """Compare generated objects.

    For a single version, the objects are only examples of changes of the schema, which the
    comparison of schemas finds, too. So it is no error if no objects can be generated.
    """
    try:
        comparison.generate(examples=examples, seed=seed, progress=progress)
    except PolyverError as error:
        if len(comparison.versions) > 1:
            raise
        about = f"{comparison.subject.name} {comparison.versions[0]}"
        comparison.notes.append(f"no example is shown for {about}: {error.fact}")


def _comparisons(
    loaded: LoadedKinds, before: Earlier, against: str
) -> Iterator[BehaviourComparison]:
    for subject in (*loaded.subjects, *loaded.parts):
        converter, is_part = subject.converter, subject in loaded.parts
        crd = before.definitions.get(subject.name)
        then = {each.name: each.schema for each in definition_of(crd).versions} if crd else {}
        known = before.conversions.get((converter.group, converter.kind))
        if known is not None and (is_part or len(converter.versions) > 1):
            dropped = frozenset(known.versions) - {*converter.versions}
            yield BehaviourComparison(subject, known, dropped)
            continue
        yield from _alone(subject, then)
        if len(then.keys() & {*converter.versions}) > 1:
            text = f"{against} has no conversions of {subject.name}: only schemas are compared"
            warn(text)


def _alone(subject: CheckedKind, then: Mapping[str, Any]) -> Iterator[BehaviourComparison]:
    """Yield a comparison for each version of a kind whose schema has changed.

    The comparison has no conversions between versions. `then` are the earlier schemas by version.
    """
    known = subject.schemas
    changed = [each for each, old in then.items() if old and known.get(each) not in (None, old)]
    for version in changed:
        group, kind = subject.converter.group, subject.converter.kind
        old, new = ({version: each[version]} for each in (then, subject.schemas))
        before = CheckedKind(Converter(group, kind, [version], [], schemas=old), old)
        now = replace(subject, converter=Converter(group, kind, [version], [], schemas=new))
        yield BehaviourComparison(now, EarlierConversions.of(before))


def merged(findings: Sequence[ConversionFinding]) -> list[ConversionFinding]:
    """Merge findings about one change: a changed schema, and the objects that it refuses.

    The result has the finding about the schema, with the example and the number of objects.
    """
    kept = [*findings]
    for shown in [each for each in findings if each.rule in ("refused", "unconverted")]:
        at = [n for n, each in enumerate(kept) if _is_cause(each, shown)]
        for number in at:
            about = {"example": shown.example, "objects": shown.objects, "object": shown.object}
            kept[number] = replace(kept[number], **about)  # type: ignore[arg-type]
        if at:
            kept.remove(shown)
    return kept


_REMOVED = ("stored-version-removed", "served-version-removed", "version-removed")


def _is_cause(change: ConversionFinding, shown: ConversionFinding) -> bool:
    """Report whether a change of a schema is the reason for a finding with an example."""
    if change.kind != shown.kind or change.rule not in COMPATIBILITY:
        return False
    if shown.rule == "unconverted":
        return change.rule in _REMOVED and change.versions == shown.versions[-1:]
    is_bad = change.severity is not FindingSeverity.SAFE
    return is_bad and change.versions == shown.versions[-1:] and change.path == shown.path


def _comparable(old: dict[str, Any], now: Definition) -> dict[str, Any]:
    """Return the earlier CRD, without its `spec.conversion` if the current CRD states none.

    Users often add `spec.conversion` to a manifest only when they install the CRD. So its absence
    in a file is not a change.
    """
    if now.strategy or now.webhook:
        return old
    spec = {name: value for name, value in old["spec"].items() if name != "conversion"}
    return {**old, "spec": spec}


def _on_cluster(against: str, names: Sequence[str]) -> Earlier:
    """Read from a cluster the CustomResourceDefinitions in `names`, and their Conversions."""
    context = against.removeprefix(CLUSTER)
    server, found = definitions_on(context, names)
    if not found:
        warn(f"{server} has none of {listed(names)}: nothing is compared")
        return Earlier()
    try:
        documents = documents_on(context, [_CONVERSIONS])
    except ApiError as error:
        if error.code != HTTPStatus.FORBIDDEN:
            raise
        warn(f"{error.message}: only schemas are compared")
        return Earlier(found)
    documents = [each for each in documents if _name_of(each) in found]
    return Earlier(found, _conversions_in(documents, map(definition_of, found.values())))


def _name_of(document: Document) -> str:
    value = document.value
    metadata = value.get("metadata") if isinstance(value, dict) else None
    return str(metadata.get("name")) if isinstance(metadata, dict) else ""


def _in_manifests(names: Sequence[str]) -> Earlier:
    documents = read_manifests(names)
    definitions = [*definitions_of(documents)]
    found = {each.name: crd_of(each) for each in definitions}
    return Earlier(found, _conversions_in(documents, definitions))


def _conversions_in(
    documents: Sequence[Document], definitions: Iterable[Definition]
) -> dict[Key, EarlierConversions]:
    """Build the conversions that documents declare; skip invalid Conversions with a warning."""
    known = {(each.group, each.kind): each for each in definitions}
    made: dict[Key, EarlierConversions] = {}
    for document in objects_of(documents, GROUP, KIND):
        try:
            declared = read_conversion(document)
            key = (declared.group, declared.kind)
            converter = build_converter(declared, known.get(key))
        except PolyverError as error:
            warn(f"the earlier Conversion is not compared: {error}")
            continue
        versions = known[key].versions if key in known else ()
        schemas = {each.name: each.schema for each in versions if each.schema is not None}
        made[key] = EarlierConversions.of(CheckedKind(converter, schemas))
    return made


@contextmanager
def _of_revision(
    revision: str, kinds: Sequence[str], conversions: Sequence[str]
) -> Iterator[Earlier]:
    if revision.startswith("-"):
        raise Misused(f"{revision} is neither a file nor a git revision", hint=_ALSO)
    top = Path(_git("rev-parse", "--show-toplevel", revision=revision).decode().strip())
    archive = _git("archive", "--format=tar", f"{revision}^{{commit}}", revision=revision, at=top)
    with TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            for member in files:
                _unpack(files, member, Path(folder))
        here = Path(folder) / Path.cwd().resolve().relative_to(top.resolve())
        then = [str(here / name) for name in conversions if (here / name).exists()]
        names = [name for name in kinds if _is_there(here, name)]
        found = _in_manifests(then)
        if not here.is_dir() or not (names or not (kinds or conversions)):
            yield found
            return
        found.definitions |= _crds_in(here, names, revision)
        with behaviour_in(here, names, revision) as known:
            found.conversions = {**known, **found.conversions}
            yield found


def _unpack(files: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Write one regular file of an archive; skip links, as they may lead out of the folder."""
    content = files.extractfile(member) if member.isfile() else None
    if content is not None:
        path = folder / member.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.read())


def _is_there(folder: Path, name: str) -> bool:
    """Report whether the file or folder `name` exists in the earlier revision.

    If `name` is the name of a module, return True: only importing it shows if it exists.
    """
    is_path = "/" in name or name.endswith((".py", *SUFFIXES)) or Path(name).is_dir()
    return not is_path or (folder / name).exists()


def _git(*arguments: str, revision: str, at: Path | None = None) -> bytes:
    try:
        ran = subprocess.run(  # noqa: S603 - git, with arguments that cannot be options
            ["git", *arguments],  # noqa: S607 - the git in the PATH of the user
            cwd=at,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise UnreadableInput(f"git cannot be run: {error.strerror}", at=revision) from None
    if ran.returncode:
        said = ran.stderr.decode(errors="replace").strip().splitlines()
        fact = f"{revision} is neither a file nor a git revision"
        why = f": {said[-1].removeprefix('fatal: ')}" if said else ""
        raise UnreadableInput(f"{fact}{why}", hint=_ALSO)
    return ran.stdout


def _crds_in(folder: Path, names: Sequence[str], revision: str) -> dict[str, dict[str, Any]]:
    command = [sys.executable, "-c", _RUN, "crds", *names, "-o", "json"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, check=False)  # noqa: S603
    if ran.returncode:
        said = ran.stderr.decode(errors="replace").strip().splitlines()
        fact = f"the kinds of {revision} cannot be read"
        raise UnreadableInput(fact, hint=said[-1].removeprefix("error: ") if said else "")
    read = json.loads(ran.stdout)
    crds = read["items"] if read["kind"] == "List" else [read]
    return {each["metadata"]["name"]: each for each in crds}
