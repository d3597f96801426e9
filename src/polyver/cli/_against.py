"""What was before: CustomResourceDefinitions in files, of a git revision, or on a cluster.

The kinds of a revision are read by a process of its own, from a copy of the files: Python that was
imported here cannot be imported a second time.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from polyver.apis import Definition, crd_of, definitions_of
from polyver.capabilities.apis.checking import Finding, found
from polyver.capabilities.apis.compatibility import compare_definitions
from polyver.cli._cluster import CLUSTER, definitions_on
from polyver.cli._exit import Misused, Unreadable
from polyver.cli._files import SUFFIXES, read_manifests
from polyver.cli._output import warn
from polyver.core import listed

__all__ = ["compared"]

_ALSO = f"{CLUSTER} is the cluster of the current context"
_RUN = "import sys; from polyver.cli import main; sys.exit(main())"


def compared(
    definitions: Mapping[str, Definition],
    against: str,
    kinds: Sequence[str],
    conversions: Sequence[str],
) -> Iterator[Finding]:
    """What users of the definitions that were before lose by those of now."""
    if against.startswith(CLUSTER):
        before = _on_cluster(against, [*definitions])
    else:
        before = _before(against, kinds, conversions)
    for name, old in before.items():
        if name not in definitions:
            yield found("kind-removed", name, f"it is defined in {against}, and not here")
            continue
        now = definitions[name]
        for each in compare_definitions(_comparable(old, now), crd_of(now)):
            versions = (each.version,) if each.version else ()
            about = (name, each.rule, each.severity, each.fact, each.advice)
            yield Finding(*about, versions, each.path, now.place)


def _comparable(old: dict[str, Any], now: Definition) -> dict[str, Any]:
    """What was, without who converts, unless it is said now, too: often that is written later."""
    if now.strategy or now.webhook:
        return old
    spec = {name: value for name, value in old["spec"].items() if name != "conversion"}
    return {**old, "spec": spec}


def _before(
    against: str, kinds: Sequence[str], conversions: Sequence[str]
) -> dict[str, dict[str, Any]]:
    if Path(against).exists():
        return _in_manifests([against])
    return _of_revision(against, kinds, conversions)


def _on_cluster(against: str, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Those of the kinds at hand; a cluster has many others, which are none of our business."""
    server, found = definitions_on(against.removeprefix(CLUSTER), names)
    if not found:
        warn(f"{server} has none of {listed(names)}: nothing was compared")
    return found


def _in_manifests(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    return {each.name: crd_of(each) for each in definitions_of(read_manifests(names))}


def _of_revision(
    revision: str, kinds: Sequence[str], conversions: Sequence[str]
) -> dict[str, dict[str, Any]]:
    if revision.startswith("-"):
        raise Misused(f"{revision} is neither a file nor a revision of git", hint=_ALSO)
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
        if here.is_dir() and (names or not (kinds or conversions)):
            found |= _crds_in(here, names, revision)
        return found


def _unpack(files: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Write one file; nothing else is of interest, least of all a link that leads elsewhere."""
    content = files.extractfile(member) if member.isfile() else None
    if content is not None:
        path = folder / member.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.read())


def _is_there(folder: Path, name: str) -> bool:
    """Whether a file of that name was there; of modules it is found out when they are imported."""
    is_path = "/" in name or name.endswith((".py", *SUFFIXES)) or Path(name).is_dir()
    return not is_path or (folder / name).exists()


def _git(*arguments: str, revision: str, at: Path | None = None) -> bytes:
    try:
        ran = subprocess.run(  # noqa: S603 - git, with arguments that cannot be options
            ["git", *arguments],  # noqa: S607 - whichever git its user has
            cwd=at,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise Unreadable(f"git cannot be run: {error.strerror}", at=revision) from None
    if ran.returncode:
        said = ran.stderr.decode(errors="replace").strip().splitlines()
        fact = f"{revision} is neither a file nor a revision that git knows here"
        why = f": {said[-1].removeprefix('fatal: ')}" if said else ""
        raise Unreadable(f"{fact}{why}", hint=_ALSO)
    return ran.stdout


def _crds_in(folder: Path, names: Sequence[str], revision: str) -> dict[str, dict[str, Any]]:
    command = [sys.executable, "-c", _RUN, "crds", *names, "-o", "json"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, check=False)  # noqa: S603
    if ran.returncode:
        said = ran.stderr.decode(errors="replace").strip().splitlines()
        fact = f"the kinds of {revision} cannot be read"
        raise Unreadable(fact, hint=said[-1].removeprefix("error: ") if said else "")
    read = json.loads(ran.stdout)
    crds = read["items"] if read["kind"] == "List" else [read]
    return {each["metadata"]["name"]: each for each in crds}
