"""`polyver versions`: sort version strings that are given as arguments."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial
from operator import itemgetter
from typing import Annotated

from cyclopts import App, Parameter

from polyver.cli.exit_codes import Misused, UnreadableInput
from polyver.cli.files import read_standard_input
from polyver.cli.output import print_lines
from polyver.core import InvalidVersion, KubeVersion, PolyverError, SemVer

app = App(
    name="versions",
    help="""Sort version strings.

Example: polyver versions sort --order kube v1 v2beta1""",
)


class _VersionOrder(Enum):
    """The orders that the option `--order` can name."""

    KUBE = "kube"
    SEMVER = "semver"


_PARSE: dict[_VersionOrder, Callable[[str], KubeVersion | SemVer]] = {
    _VersionOrder.KUBE: KubeVersion.parse,
    _VersionOrder.SEMVER: SemVer.parse,
}


@app.command
def sort(
    *version: str,
    order: Annotated[
        _VersionOrder,
        Parameter(
            help=(
                "The order to sort by: kube for Kubernetes API versions, such as v1 and v2beta1;"
                " semver for semantic versions, such as 1.2.3."
            )
        ),
    ],
) -> None:
    """Print versions one per line, the highest priority first.

    Example: polyver versions sort --order kube v1 v2beta1 v10

    Parameters
    ----------
    version
        The versions to sort. Default: the versions on standard input, one per line.
    """
    given = _arguments(version) if version else _standard_input()
    found = [(_parsed(text, order, complaint), text) for text, complaint in given]
    found.sort(key=itemgetter(0), reverse=True)
    print_lines(*(text for _, text in found))


_Complaint = Callable[[str], PolyverError]


def _arguments(arguments: tuple[str, ...]) -> Iterator[tuple[str, _Complaint]]:
    for number, text in enumerate(arguments, start=1):
        yield text, partial(Misused, at=f"argument {number}")


def _standard_input() -> Iterator[tuple[str, _Complaint]]:
    if sys.stdin.isatty():
        raise Misused("there is nothing to sort", hint="name versions, or pipe them in")
    for number, line in enumerate(read_standard_input().splitlines(), start=1):
        if text := line.strip():
            yield text, partial(UnreadableInput, at=f"standard input, line {number}")


def _parsed(text: str, order: _VersionOrder, complaint: _Complaint) -> KubeVersion | SemVer:
    try:
        return _PARSE[order](text)
    except InvalidVersion as error:
        raise complaint(error.fact) from None
