"""Options of requests, from the query or the body, with the error messages of kube-apiserver."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote_plus

from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import (
    ApiError,
    Cause,
    bad_request,
    forbidden_field,
    invalid,
    invalid_field,
    required,
    unsupported,
)

__all__ = ["DeleteOptions", "ListOptions", "Query", "WriteOptions"]

_INTEGER = re.compile(r"[-+]?[0-9]+")
_LARGEST = 2**63
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def _options_kind(name: str) -> ResourceKind:
    return ResourceKind("meta.k8s.io", "v1", name, name, name, namespaced=False)


class Query:
    """The query parameters of a request. If a parameter is repeated, its first value counts.

    As in Go's URL library, parameters that cannot be parsed are ignored.
    """

    def __init__(self, text: str) -> None:
        self.all: dict[str, list[str]] = {}
        for pair in text.split("&") if text else ():
            if pair and ";" not in pair and not _BAD_ESCAPE.search(pair):
                key, _, value = pair.partition("=")
                self.all.setdefault(unquote_plus(key), []).append(unquote_plus(value))

    def text(self, name: str) -> str:
        values = self.all.get(name)
        return values[0] if values else ""

    def flag(self, name: str) -> bool:
        """Report whether a parameter is set to anything except an empty string, 0 or false."""
        return self.text(name).lower() not in ("false", "0", "")

    def number(self, name: str) -> int | None:
        text = self.text(name)
        if not text:
            return None
        if not _INTEGER.fullmatch(text):
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
        if not _is_short(text) or not -_LARGEST <= int(text) < _LARGEST:
            raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
        return int(text)


def _is_short(text: str) -> bool:
    """Report whether an integer may fit into 64 bits, by the number of its digits.

    Python refuses to parse integers with very many digits.
    """
    return len(text.lstrip("+-").lstrip("0")) <= 20


def parse_revision(text: str) -> int:
    """Parse a resourceVersion; raise ValueError with the message of Go's parser."""
    if not text.isascii() or not text.isdecimal():
        raise ValueError(f'strconv.ParseUint: parsing "{text}": invalid syntax')
    if not _is_short(text) or int(text) >= 2**64:
        raise ValueError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def read_revision(text: str) -> int:
    """Parse the resourceVersion in the query of a get or a watch. An empty string means 0."""
    try:
        return parse_revision(text) if text else 0
    except ValueError as error:
        message = f'resourceVersion: Invalid value: "{text}": {error}'
        raise ApiError(500, "", message) from None


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The query parameters of a list, a watch or the deletion of a collection."""

    labels: str = ""
    fields: str = ""
    limit: int = 0
    continued: str = ""
    revision: str = ""
    match: str = ""
    watch: bool = False
    bookmarks: bool = False
    initial: bool | None = None
    timeout: int | None = None

    @classmethod
    def read(cls, query: Query, *, watch: bool = False) -> ListOptions:
        initial = query.all.get("sendInitialEvents")
        options = cls(
            labels=query.text("labelSelector"),
            fields=query.text("fieldSelector"),
            limit=max(0, query.number("limit") or 0),
            continued=query.text("continue"),
            revision=query.text("resourceVersion"),
            match=query.text("resourceVersionMatch"),
            watch=watch or query.flag("watch"),
            bookmarks=query.flag("allowWatchBookmarks"),
            initial=query.flag("sendInitialEvents") if initial else None,
            timeout=query.number("timeoutSeconds"),
        )
        causes = options.problems()
        if causes:
            raise invalid(_options_kind("ListOptions"), "", causes)
        return options

    def problems(self) -> list[Cause]:
        if self.watch:
            return self._watch_problems()
        causes = self._match_problems() if self.match else []
        if self.initial is not None:
            problem = "sendInitialEvents is forbidden for list"
            causes.append(forbidden_field("sendInitialEvents", problem))
        return causes

    def _match_problems(self) -> list[Cause]:
        field, problems = "resourceVersionMatch", []
        if not self.revision:
            text = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            problems.append(forbidden_field(field, text))
        if self.continued:
            text = "resourceVersionMatch is forbidden when continue is provided"
            problems.append(forbidden_field(field, text))
        if self.match not in ("Exact", "NotOlderThan"):
            problems.append(unsupported(field, self.match, ["Exact", "NotOlderThan", ""]))
        if self.match == "Exact" and self.revision == "0":
            text = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            problems.append(forbidden_field(field, text))
        return problems

    def _watch_problems(self) -> list[Cause]:
        field, causes = "resourceVersionMatch", []
        if self.initial is not None:
            if self.match != "NotOlderThan":
                text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
                causes.append(forbidden_field(field, text))
                if self.match:
                    causes.append(unsupported(field, self.match, ["NotOlderThan"]))
        elif self.match:
            text = (
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            )
            causes.append(forbidden_field(field, text))
        if self.continued:
            text = "resourceVersionMatch is forbidden when continue is provided"
            causes.append(forbidden_field(field, text))
        return causes


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The query parameters of a write: dry run, field validation, field manager and `force`."""

    dry_run: bool
    validation: str
    manager: str
    force: bool

    @classmethod
    def read(
        cls, query: Query, name: str, *, agent: str = "", applied: bool | None = None
    ) -> WriteOptions:
        """Read the options from the query. `name` is the kind of the options in error messages.

        `agent` is the header User-Agent, from which the default field manager is taken. `applied`
        is None for a write that is not a patch. For a patch, it is True if the patch is a
        server-side apply: only an apply must name its field manager, and only an apply may set
        `force`.
        """
        manager = query.text("fieldManager")
        validation = query.text("fieldValidation")
        causes = dry_run_problems(query.all.get("dryRun", ()))
        if len(manager.encode()) > 128:
            text = "may not be more than 128 bytes"
            causes.append(Cause("fieldManager", f"Too long: {text}", "FieldValueTooLong"))
        elif not manager.isprintable():
            at = next(number for number, each in enumerate(manager) if not each.isprintable())
            text = f"invalid character U+{ord(manager[at]):04X} (at position {at})"
            causes.append(invalid_field("fieldManager", manager, text))
        if validation not in ("", "Ignore", "Warn", "Strict"):
            known = ["", "Ignore", "Strict", "Warn"]
            causes.append(unsupported("fieldValidation", validation, known))
        if applied and not manager:
            causes.append(required("fieldManager", "is required for apply patch"))
        if applied is False and "force" in query.all:
            text = "may not be specified for non-apply patch"
            causes.append(forbidden_field("force", text))
        if causes:
            raise invalid(_options_kind(name), "", causes)
        return cls(
            dry_run="dryRun" in query.all,
            validation=validation or "Warn",
            manager=manager or default_manager(agent),
            force=query.flag("force"),
        )


def default_manager(agent: str) -> str:
    """Return the default field manager: the part of the User-Agent before its first slash."""
    name = agent.partition("/")[0].strip() or "unknown"
    return "".join(character for character in name if character.isprintable())[:128]


def dry_run_problems(values: Sequence[str]) -> list[Cause]:
    """Return an error if `dryRun` has any value besides All."""
    if all(value == "All" for value in values):
        return []
    return [unsupported("dryRun", list(values), ["All"])]


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Options of a DELETE request, from its body or its query."""

    grace: int | None = None
    uid: str | None = None
    revision: str | None = None
    propagation: str | None = None
    orphan: bool | None = None
    dry_run: bool = False

    @classmethod
    def of(cls, query: Query, body: Mapping[str, object] | None) -> DeleteOptions:
        options = cls._from_query(query) if body is None else cls._from_body(body)
        causes = options._problems()
        if body is None:
            causes += dry_run_problems(query.all.get("dryRun", ()))
        elif isinstance(dry := body.get("dryRun"), list):
            causes += dry_run_problems([str(each) for each in dry])
        if causes:
            raise invalid(_options_kind("DeleteOptions"), "", causes)
        return options

    @classmethod
    def _from_query(cls, query: Query) -> DeleteOptions:
        return cls(
            grace=query.number("gracePeriodSeconds"),
            propagation=query.text("propagationPolicy") or None,
            orphan=query.flag("orphanDependents") if "orphanDependents" in query.all else None,
            dry_run="dryRun" in query.all,
        )

    @classmethod
    def _from_body(cls, body: Mapping[str, object]) -> DeleteOptions:
        given = body.get("preconditions")
        conditions: Mapping[str, object] = given if isinstance(given, dict) else {}
        uid, revision = conditions.get("uid"), conditions.get("resourceVersion")
        grace, policy = body.get("gracePeriodSeconds"), body.get("propagationPolicy")
        orphan = body.get("orphanDependents")
        return cls(
            grace=grace if isinstance(grace, int) else None,
            uid=None if uid is None else str(uid),
            revision=None if revision is None else str(revision),
            propagation=None if policy is None else str(policy),
            orphan=orphan if isinstance(orphan, bool) else None,
            dry_run=bool(body.get("dryRun")),
        )

    def _problems(self) -> list[Cause]:
        field, policy = "propagationPolicy", self.propagation
        if policy is None:
            return []
        causes: list[Cause] = []
        if self.orphan is not None:
            text = "orphanDependents and deletionPropagation cannot be both set"
            causes.append(invalid_field(field, policy, text))
        if policy not in ("Foreground", "Background", "Orphan"):
            known = ["Foreground", "Background", "Orphan", "nil"]
            causes.append(unsupported(field, policy, known))
        return causes
