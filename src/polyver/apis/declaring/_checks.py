"""Check a declared kind as a whole, for example that it has exactly one storage version."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from polyver.apis.conversion.completeness import Completeness
from polyver.apis.declaring._fields import shown_name
from polyver.apis.definition import DefinedVersion, Definition, InvalidKind
from polyver.core import KubeVersion, listed
from polyver.kube.objects.schema import check_columns, check_scale, check_schema, check_selectable
from polyver.kube.objects.status import Cause
from polyver.kube.objects.webhooks import CONVERT, Webhook, webhook_problem
from polyver.languages.values.names import dns_1035_label_problems, dns_subdomain_problems

if TYPE_CHECKING:
    from polyver.apis.declaring._hooks import KindHook
    from polyver.apis.declaring._kind import DeclaredVersion, Kind

__all__ = ["check_hooks", "check_preserved", "complete"]


def complete(kind: Kind, declared: Sequence[DeclaredVersion]) -> Definition:
    """Check a kind and its versions; return the definition of the kind."""
    _check_names(kind)
    if kind.carry:
        _check_carry(kind)
    webhook = _webhook(kind)
    if not declared:
        raise _wrong(kind, "has no version", hint="declare one with @….version")
    for each in declared:
        _check_version(each)
    stored = _stored(kind, declared)
    hubs = [each for each in declared if each.hub]
    if len(hubs) > 1:
        names = listed([_shown(each) for each in hubs])
        raise _wrong(kind, f"has two hubs, {names}", hint="write hub=True at only one of them")
    versions = [
        replace(
            each.version,
            storage=each is stored,
            schema=_with_carry(kind, each),
        )
        for each in declared
    ]
    return Definition(
        kind.group,
        kind.names,
        tuple(versions),
        kind.scope,
        kind.strategy,
        webhook,
        hub=(hubs or [stored])[0].version.name,
        place=kind.place,
    )


def _webhook(kind: Kind) -> Webhook | None:
    """Check the webhook that a kind states; return it with the URL path that polyver serves.

    The path in the declaration wins.
    """
    webhook = kind.webhook
    if webhook is None:
        return None
    if kind.strategy == "None":
        hint = "remove one of them"
        raise _wrong(kind, 'has strategy="None", but also a webhook that converts', hint=hint)
    if problem := webhook_problem(webhook):
        hint = 'write Webhook(namespace="shop", service="hooks") or Webhook(url="https://…")'
        raise _wrong(kind, f"has a webhook that API servers cannot call: {problem}", hint=hint)
    return webhook if webhook.url or webhook.path else replace(webhook, path=CONVERT)


def check_preserved(kind: str, decided: Completeness, versions: Mapping[str, Any]) -> None:
    """Raise an error if `preserves` was called for a version that is not declared."""
    for version, names in decided.preserved.items():
        if version not in versions:
            fact = f"{kind} preserves fields of {version}, which is not declared"
            raise InvalidKind(fact, at=names.place, hint=f"known: {listed([*versions])}")


def _check_carry(kind: Kind) -> None:
    taken = kind.carry in ("apiVersion", "kind", "metadata", "spec", "status")
    if taken or not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*", kind.carry):
        fact = f'preserves fields in "{kind.carry}", which cannot be a field next to spec'
        raise _wrong(kind, fact, hint="choose a name such as carry")


def _with_carry(kind: Kind, declared: DeclaredVersion) -> Mapping[str, Any] | None:
    """Return the schema of a version; None if the version has no schema.

    The schema has an additional field if the kind reserves this field for preserved fields.
    """
    schema = declared.version.schema
    if not kind.carry or schema is None:
        return schema
    fields = schema.get("properties", {})
    if kind.carry in fields:
        fact = (
            f"preserves fields in {kind.carry}, which {_shown(declared)} declares as its own field"
        )
        raise _wrong(kind, fact, hint="choose a name that no version uses")
    field = {"type": "string", "description": _CARRY}
    return {**schema, "properties": {**fields, kind.carry: field}}


_CARRY = "Preserved fields: fields of other versions that this version lacks. Set by conversion."


def check_hooks(kind: str, hooks: Iterable[KindHook], classes: Mapping[str, type | None]) -> None:
    """Raise an error for a hook of an unknown version, or with a wrong class in its type hint.

    A hook takes an object of the class of its version, or a dict.
    """
    for hook in hooks:
        if hook.version not in classes:
            fact = f"{hook.name} is for {kind} {hook.version}, which is not declared"
            raise InvalidKind(fact, hint=f"known: {listed([*classes])}")
        if hook.cls is not None and hook.cls is not classes[hook.version]:
            fact = f"{hook.name} is for {kind} {hook.version}, and takes {shown_name(hook.cls)}"
            raise InvalidKind(fact, hint="use the class of that version, or dict, as its type")


def _shown(declared: DeclaredVersion) -> str:
    return f"{declared.version.name} ({shown_name(declared.cls)})"


def _wrong(kind: Kind, fact: str, *, hint: str = "") -> InvalidKind:
    return InvalidKind(f"{kind.kind} {fact}", at=kind.place, hint=hint)


def _stored(kind: Kind, declared: Sequence[DeclaredVersion]) -> DeclaredVersion:
    if len(declared) == 1 and declared[0].storage is not False:
        return declared[0]
    found = [each for each in declared if each.storage]
    if len(found) == 1:
        return found[0]
    if found:
        names = listed([_shown(each) for each in found])
        raise _wrong(kind, f"has two storage versions, {names}", hint="keep one")
    names = listed([_shown(each) for each in declared])
    raise _wrong(kind, f"has no storage version among {names}", hint="write storage=True at one")


def _check_names(kind: Kind) -> None:
    names = kind.names
    problems = dns_subdomain_problems(kind.group)
    if problems or "." not in kind.group:
        fact = f'has a group "{kind.group}" that is not a domain name with a dot'
        raise _wrong(kind, fact, hint="write one such as stable.example.com")
    given = [("kind", names.kind.lower()), ("plural", names.plural), ("singular", names.singular)]
    given += [("list kind", names.list_kind.lower())]
    given += [("short name", name) for name in names.short_names]
    given += [("category", name) for name in names.categories]
    for what, name in given:
        if problems := dns_1035_label_problems(name):
            raise _wrong(kind, f'has a {what} "{name}" that is invalid: {problems[0]}')
    if names.kind == names.list_kind:
        raise _wrong(kind, "has the same name as its lists")
    if kind.scope not in ("Namespaced", "Cluster"):
        raise _wrong(kind, f"has the scope {kind.scope}", hint="use Namespaced or Cluster")
    if kind.strategy not in (None, "None"):
        raise _wrong(kind, f"has the strategy {kind.strategy}", hint='use "None", or omit it')


def _check_version(declared: DeclaredVersion) -> None:
    version, place = declared.version, shown_name(declared.cls)
    if problems := dns_1035_label_problems(version.name):
        raise InvalidKind(f'"{version.name}" is not a version: {problems[0]}', at=place)
    KubeVersion.parse(version.name)
    causes = [*_causes(version)]
    if causes:
        more = f" (and {len(causes) - 1} more)" if len(causes) > 1 else ""
        fact = f"{version.name} cannot be served: {causes[0].message}{more}"
        raise InvalidKind(fact, at=f"{place}{_field(causes[0].field)}")


def _causes(version: DefinedVersion) -> Iterator[Cause]:
    from polyver.apis.crds import column_data, scale_data

    assert version.schema is not None
    yield from check_schema(version.schema, "", status=version.status)
    if version.scale:
        yield from check_scale(scale_data(version.scale), ".scale")
    yield from check_columns(map(column_data, version.columns), ".columns")
    selected = [{"jsonPath": path} for path in version.selectable]
    yield from check_selectable(selected, version.schema, ".selectable")
    if version.warning == "" or (version.warning and not version.warning.isprintable()):
        yield Cause(".deprecated", "the warning must be one line of printable characters")


def _field(path: str) -> str:
    """Translate a path in a schema to a path in a class.

    >>> _field(".properties[spec].properties[sizes].items.default")
    '.spec.sizes[].default'
    """
    path = re.sub(r"\.properties\[([^]]*)\]", r".\1", path)
    return path.replace(".items", "[]").replace(".additionalProperties", "{}")
