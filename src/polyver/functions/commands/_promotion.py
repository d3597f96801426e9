"""Finds the blueprints that the promotion of a function version would break.

A promotion affects phases that request no version, because they call the stable version. The check
calls no function, because functions have side effects. It compares the arguments that phases pass,
and the outputs that templates read, with the declarations of the promoted version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from polyver.cli.exit_codes import RequestRefused
from polyver.cli.output import warn
from polyver.core import Lineage, SemVer, Stage, listed
from polyver.functions.blueprints import new_errors
from polyver.functions.catalogue import FunctionCatalogue
from polyver.functions.commands.blueprints import known_blueprints
from polyver.functions.registering import Function, Functions, KnownFunction

__all__ = ["check_promotion"]


def check_promotion(
    name: str, known: Functions, after: FunctionCatalogue, users: Sequence[str], *, force: bool
) -> None:
    """Refuse a promotion that breaks a blueprint. With `force`, only print warnings.

    `known` are the functions before the promotion, and `after` is the catalogue after it. `users`
    are the files, folders and clusters with the blueprints to check.
    """
    function, lineage = known.known.get(name), after.get(name)
    if function is None or lineage is None or not function.code:
        warn(f"no code registers {name}: its arguments are not compared; load it with --functions")
        return
    promoted = _with_lineage(known, function, lineage, after)
    broken = [
        str(finding)
        for blueprint in known_blueprints(users)
        for finding in new_errors(blueprint, known, promoted)
    ]
    changes = _changed_arguments(function, lineage)
    if broken and not force:
        told = "\n  ".join(["", *broken])
        hint = "pin them with funcVersion first, or use --force"
        raise RequestRefused(
            f"{name} cannot be promoted: it would break blueprints{told}", hint=hint
        )
    for each in broken:
        warn(f"it breaks {each}")
    if changes and not users:
        hint = "blueprints were not checked: pass them with -f FILE or -f cluster:"
        warn(f"{name}: {listed(changes)}; {hint}")


def _with_lineage(
    known: Functions, function: KnownFunction, lineage: Lineage, catalogue: FunctionCatalogue
) -> Functions:
    """Return the functions, with one lineage replaced by the given lineage from a catalogue.

    Registered versions that the catalogue does not list keep their stage, candidate.
    """
    unlisted = [each for each in function.lineage if lineage.get(each.version) is None]
    releases = Lineage(lineage.name, [*lineage, *unlisted])
    moved = replace(function, lineage=releases, catalogue=catalogue)
    return replace(known, known={**known.known, function.name: moved})


def _changed_arguments(function: KnownFunction, after: Lineage) -> list[str]:
    """Describe changed arguments: new required arguments, and arguments that were removed."""
    old, new = _stable(function, function.lineage), _stable(function, after)
    if old is None or new is None:
        return []
    before = {each.name for each in old.arguments.fields}
    now = {each.name: each for each in new.arguments.fields}
    added = [name for name, each in now.items() if each.required and name not in before]
    gone = sorted(before - now.keys()) if new.arguments.further is None else []
    return [f"{new.label} needs the argument {each}" for each in added] + [
        f"{new.label} does not take the argument {each}" for each in gone
    ]


def _stable(function: KnownFunction, lineage: Lineage) -> Function | None:
    for release in lineage:
        if release.stage is Stage.STABLE and isinstance(release.version, SemVer):
            return function.code.get(release.version)
    return None
