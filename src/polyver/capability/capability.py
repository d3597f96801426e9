"""A capability as one value, which lists everything that the capability adds to polyver.

The package `polyver.app` has the list of these values; no other code names a capability. The values
are small. The code to which they refer is loaded when it is first used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from polyver.apis.declaring import Kind
    from polyver.capability.contributions import Contribution
    from polyver.capability.lineages import LineageReader
    from polyver.capability.planning import Planner
    from polyver.capability.subjects import Subject
    from polyver.client.cluster import ClusterAccess
    from polyver.controllers.egress import AllowedHttp

__all__ = [
    "Capability",
    "OptionsOfCapability",
    "Surroundings",
    "WorkerAccess",
]


@dataclass(frozen=True, slots=True)
class WorkerAccess:
    """The access to the Kubernetes API that one function call gets in its worker process."""

    access: ClusterAccess
    runs_pods: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Data about a control plane, from which a capability builds its Contribution."""

    folder: Path | None = None
    """The data folder of the embedded server."""
    namespace: str = ""
    """The namespace of polyver on a cluster."""
    lend: Callable[[], AbstractContextManager[WorkerAccess]] | None = None
    """Returns a context manager that provides the credentials for one function call. If this field
    is None, no function can be called.
    """
    http: AllowedHttp | None = None
    """The HTTP servers to which polyver may send the requests that a user's object specifies, such
    as checks of a rollout. None allows no server.
    """
    kinds: tuple[Kind, ...] = ()
    """The kinds of users that are declared in Python."""
    others: tuple[Contribution, ...] = ()
    """The contributions of the capabilities before this one in the list of all capabilities."""
    every: Callable[[], Sequence[Contribution]] = tuple
    """Returns the contributions of all enabled capabilities, as soon as all of them are built."""


class OptionsOfCapability(Protocol):
    """The command-line options of one capability: a dataclass that cyclopts fills in."""

    @property
    def given(self) -> str:
        """The options that the user set and that need this capability, as text for a message.

        The text is `--a and --b`, or empty if the user set no such option.
        """

    def settings(self, *, enabled: bool, show_traceback: bool) -> Any:
        """Check the options, and return the settings. Load users' code only if `enabled`."""

    def arguments(self) -> Iterator[str]:
        """Yield the options as command-line arguments, for starting another command."""


def _never(others: Sequence[Contribution]) -> bool:
    del others
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """Everything that one capability adds to polyver."""

    name: str
    contribution: Callable[[Any, Surroundings], Contribution]
    """Returns the Contribution to a control plane, for the given settings (None: the defaults)."""
    earlier_name: str = ""
    """The former name of the capability. The name is still accepted, with a warning."""
    requires: tuple[str, ...] = ()
    """The names of other capabilities that this capability needs."""
    options: Callable[[], OptionsOfCapability] | None = None
    """The class of its command-line options; None if it has none."""
    joins: Callable[[Sequence[Contribution]], bool] = _never
    """Reports whether this capability is enabled although the user did not name it.

    It gets the contributions of the enabled capabilities that come earlier in the list.
    """
    enabled_by_options: bool = False
    """True if setting an option of this capability also enables the capability. This applies only
    if the user does not set `--capabilities`.
    """
    commands: Mapping[str, str] = field(default_factory=dict)
    """The commands of the capability, by name, with the module and variable of each command."""
    reader: Callable[[], LineageReader] | None = None
    """Returns the reader of the capability's lineages in manifests, for `polyver resolve`."""
    subjects: Callable[[], tuple[Subject, ...]] = tuple
    """Returns the types of objects that `polyver why` and `polyver impact` explain."""
    planner: Callable[[], Planner] | None = None
    """Returns the contribution of the capability to `polyver plan`; None if it plans nothing."""
    plan_options: Callable[[], Any] | None = None
    """The class of the options that the capability adds to `polyver plan`; None if it adds none."""
