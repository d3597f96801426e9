"""Reads composition functions from a cluster, with their revisions and the steps that call them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from polyver.cli.exit_codes import Misused, ProblemsFound, UnknownName, UnreadableInput
from polyver.cli.output import OutputFormat, emit, print_lines, print_table
from polyver.compositions._revision_rules import REVISIONS
from polyver.compositions.controllers.packages import (
    FUNCTION_REVISIONS,
    FUNCTIONS,
    ClientFunctionLookup,
    CompositionsOn,
)
from polyver.compositions.lineages import READER
from polyver.compositions.packages import (
    KnownFunctionRevision,
    StepFunctionUse,
    function_of,
    known_revision,
    lineage_of,
    read_function,
    users_of,
)
from polyver.compositions.settings import PACKAGE_NAMES
from polyver.core import (
    UNSPECIFIED,
    Dependent,
    Exact,
    InvalidVersion,
    Lineage,
    NoMatch,
    Release,
    Resolution,
    listed,
    resolve,
)
from polyver.core.plain import Object
from polyver.kube.objects.conditions import find_condition
from polyver.kube.objects.status import ApiError

if TYPE_CHECKING:
    from polyver.client import Client
    from polyver.compositions.decisions import CompositeExplanation

__all__ = [
    "InstalledFunction",
    "all_installed",
    "impact_of_package",
    "installed_on",
    "named",
    "on_cluster",
    "revision_called",
    "revision_in",
    "why_package",
]

T = TypeVar("T")
_ANYONE = StepFunctionUse(Dependent("a new step"), "", UNSPECIFIED)


@dataclass(frozen=True, slots=True)
class InstalledFunction:
    """A Function, its revisions in the order of their numbers, and the steps that call it."""

    function: Object
    revisions: tuple[Object, ...]
    uses: tuple[StepFunctionUse, ...] = ()

    @property
    def name(self) -> str:
        return str(self.function["metadata"]["name"])

    @property
    def known(self) -> list[KnownFunctionRevision]:
        return [*map(known_revision, self.revisions)]

    @property
    def lineage(self) -> Lineage:
        return lineage_of(self.name, self.known)

    @property
    def users(self) -> dict[str, tuple[str, ...]]:
        return dict(users_of(self.name, self.known, self.uses))

    @property
    def data(self) -> Object:
        """The Function and its revisions as plain data, for JSON output and tables."""
        spec, wanted = self.function["spec"], read_function(self.function)
        status = self.function.get("status") or {}
        found: Object = {
            "name": self.name,
            "package": wanted.package,
            "currentRevision": status.get("currentRevision", ""),
            "revisionActivationPolicy": spec.get("revisionActivationPolicy", "Automatic"),
            "revisionHistoryLimit": wanted.history_limit,
            "activeRevisionLimit": wanted.active_limit,
            "strictReferences": wanted.strict,
            "conditions": status.get("conditions") or [],
        }
        return found | {"revisions": [self._revision(each) for each in self.revisions]}

    def _revision(self, obj: Object) -> Object:
        known, status = known_revision(obj), obj.get("status") or {}
        return {
            "name": known.name,
            "revision": known.number,
            "state": obj["spec"]["desiredState"],
            "healthy": _status(obj, "Healthy"),
            "endpoint": status.get("endpoint", ""),
            "image": obj["spec"]["image"],
            "digest": known.digest,
            "labels": {k: v for k, v in known.labels.items() if k in known.copied},
            "selectedBy": [*self.users.get(known.name, ())],
            "message": (find_condition(obj, "RuntimeHealthy") or {}).get("message", ""),
        }


def _status(obj: Object, kind: str) -> str:
    return str((find_condition(obj, kind) or {}).get("status", ""))


def on_cluster(context: str, ask: Callable[[Client], Awaitable[T]]) -> T:
    """Run `ask` with a client for the cluster of a kubeconfig context, and return its result."""
    from polyver.client.cluster import ClusterClient, find_access

    access = find_access(context)

    async def within() -> T:
        async with ClusterClient(access) as client:
            try:
                return await ask(client)
            except ApiError as error:
                if error.code != 404 or error.details:
                    raise
                fact = "functions cannot be read: the server does not serve them"
                hint = "polyver up --capabilities apis,compositions serves them"
                raise UnreadableInput(fact, at=access.server, hint=hint) from None

    return asyncio.run(within())


async def all_installed(client: Client) -> list[InstalledFunction]:
    """Read all Functions with their revisions, but without the steps that call them."""
    functions = (await client.list(FUNCTIONS)).items
    revisions = (await client.list(FUNCTION_REVISIONS)).items
    return [
        InstalledFunction(each, _of(each["metadata"]["name"], revisions))
        for each in sorted(functions, key=lambda each: str(each["metadata"]["name"]))
    ]


async def installed_on(client: Client, name: str) -> InstalledFunction:
    """Read a Function with its revisions and the steps that call it.

    Raise UnknownName if the Function does not exist.
    """
    there = ClientFunctionLookup(client, CompositionsOn(client))
    function = await there.function(name)
    if function is None:
        names = [each["metadata"]["name"] for each in (await client.list(FUNCTIONS)).items]
        hint = f"known: {listed(sorted(names))}" if names else "no function is installed"
        raise UnknownName(f"there is no function {name}", hint=hint)
    revisions = await there.revisions(name)
    return InstalledFunction(function, _of(name, revisions), tuple(await there.uses(name)))


def _of(function: str, revisions: Iterable[Object]) -> tuple[Object, ...]:
    mine = {each["metadata"]["name"]: each for each in revisions if function_of(each) == function}
    ordered = lineage_of(function, map(known_revision, mine.values())).releases
    return tuple(mine[each.name] for each in ordered)


def named(text: str) -> tuple[str, str]:
    """Parse NAME or NAME@REVISION, with or without the prefix `package/`.

    Return the name and the revision, which may be empty.
    """
    kind, slash, rest = text.partition("/")
    name, at, revision = (rest if slash and kind.lower() in PACKAGE_NAMES else text).partition("@")
    if not name or "/" in name or (at and not revision):
        raise Misused(
            f"{text!r} is not the name of a function", hint="write NAME, or NAME@REVISION"
        )
    return name, revision


def revision_in(installed: InstalledFunction, text: str) -> Release:
    """Find a revision of a Function.

    `text` is its number, its whole name, or the part of its name after the Function's name.
    """
    return revision_called(installed.name, installed.lineage, text)


def revision_called(function: str, lineage: Lineage, text: str) -> Release:
    """Find a revision in a lineage; `text` has the same forms as for `revision_in`."""
    try:
        asked = READER.selector(text, lineage)
    except InvalidVersion as error:
        raise Misused(error.fact, hint=error.hint) from None
    wanted = asked.wanted if isinstance(asked, Exact) else ""
    found = lineage.get(wanted) or lineage.get(f"{function}-{text}")
    if found is None:
        known = listed([f"{each.version} ({each.name})" for each in lineage]) or "none"
        raise UnknownName(f"{function} has no revision {text}", hint=f"known: {known}")
    return found


# `polyver why` and `polyver impact`.

_Answer = Resolution | NoMatch


def _answers(
    installed: InstalledFunction, uses: Sequence[StepFunctionUse]
) -> list[tuple[StepFunctionUse, _Answer]]:
    found: list[tuple[StepFunctionUse, _Answer]] = []
    lineage = installed.lineage
    for use in uses:
        try:
            found.append((use, resolve(lineage, use.selector, REVISIONS, use.dependent)))
        except NoMatch as error:
            found.append((use, error))
    return found


def why_package(name: str, context: str, output: OutputFormat, *, explain: bool) -> None:
    """Print which revision of a function each step calls, and why."""
    installed = on_cluster(context, lambda client: installed_on(client, name))
    answers = _answers(installed, [_ANYONE, *installed.uses])
    _print(answers, output, explain=explain)
    errors = [str(each) for _, each in answers if isinstance(each, NoMatch)]
    if errors:
        raise ProblemsFound("; ".join(dict.fromkeys(errors)))


def impact_of_package(text: str, context: str, output: OutputFormat) -> None:
    """Print the steps that call a function, and the composite resources that these steps compose.

    If `text` names a revision, print only the steps that select this revision, or that request it
    by its name or number although they cannot select it. Also print only the composite resources
    that use the revision or would use it now.
    """
    from polyver.compositions.commands.composites import explained_on, impact_rows, print_composites

    name, revision = named(text)

    async def read(client: Client) -> tuple[InstalledFunction, list[CompositeExplanation]]:
        return await installed_on(client, name), await explained_on(client)

    installed, explained = on_cluster(context, read)
    answers, rows = _answers(installed, installed.uses), impact_rows(explained, name)
    if revision:
        wanted = revision_in(installed, revision)
        answers = [each for each in answers if _concerns(*each, wanted)]
        rows = [each for each in rows if each.concerns(wanted.name)]
    if output is not OutputFormat.TABLE:
        uses = [_data(*each, explain=False) for each in answers]
        emit({"uses": uses, "composites": [each.data for each in rows]}, output)
        return
    if not answers and not rows:
        print_lines("not used")
        return
    if answers:
        _print(answers, output, explain=False)
    if rows:
        print_lines(*([""] if answers else []))
        print_composites(rows)


def _concerns(use: StepFunctionUse, answer: _Answer, wanted: Release) -> bool:
    if isinstance(answer, Resolution):
        return answer.release.name == wanted.name
    return use.selector in (Exact(wanted.name), Exact(wanted.version))


def _print(
    answers: Sequence[tuple[StepFunctionUse, _Answer]], output: OutputFormat, *, explain: bool
) -> None:
    if output is not OutputFormat.TABLE:
        emit({"uses": [_data(*each, explain=explain) for each in answers]}, output)
        return
    rows = [
        (use.dependent.name, use.dependent.at, str(use.selector) or "default", *_told(answer))
        for use, answer in answers
    ]
    print_table(("USED BY", "REFERENCE", "REQUESTS", "USES", "WHY"), rows)
    for use, answer in answers if explain else ():
        rejected = [(each.release.name, each.why) for each in answer.rejected]
        if rejected:
            print_lines("", " ".join(filter(None, (use.dependent.name, use.dependent.at))))
            print_table(("NOT CHOSEN", "WHY"), rejected)


def _told(answer: _Answer) -> tuple[str, str]:
    if isinstance(answer, Resolution):
        return answer.release.name, answer.reason
    return "unresolved", answer.fact


def _data(use: StepFunctionUse, answer: _Answer, *, explain: bool) -> Object:
    gets, why = _told(answer)
    found: Object = {"who": use.dependent.name, "place": use.dependent.at}
    found |= {"asksFor": str(use.selector), "why": why}
    found |= {"gets": gets} if isinstance(answer, Resolution) else {}
    rejected = [{"revision": each.release.name, "why": each.why} for each in answer.rejected]
    return {k: v for k, v in found.items() if v} | ({"rejected": rejected} if explain else {})
