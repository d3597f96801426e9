"""A capability as one value, which lists everything that it adds to polyver.

`app` has the list of these values; no other code names a capability. The values are small, and
everything else in them is loaded when it is first used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from polyver.capability.contributions import Contribution
    from polyver.capability.lineages import LineageReader
    from polyver.capability.subjects import Subject
    from polyver.client.cluster import ClusterAccess

__all__ = [
    "Capability",
    "OptionsOfCapability",
    "Surroundings",
    "WorkerAccess",
]


@dataclass(frozen=True, slots=True)
class WorkerAccess:
    """The access to the API that the worker process of one function call gets."""

    access: ClusterAccess
    runs_pods: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The control plane that a contribution is made for."""

    folder: Path | None = None
    """The data folder of the embedded server."""
    namespace: str = ""
    """The namespace of polyver on a cluster."""
    lend: Callable[[], AbstractContextManager[WorkerAccess]] | None = None
    """Lends credentials to one function call; without it, nothing can be called."""


class OptionsOfCapability(Protocol):
    """The command-line options of one capability: a dataclass that cyclopts fills in."""

    @property
    def given(self) -> str:
        """The names of the given options that need the capability: "--a and --b", or ""."""

    def settings(self, *, enabled: bool, show_traceback: bool) -> Any:
        """Check the options and return the settings; load users' code only if enabled."""

    def arguments(self) -> Iterator[str]:
        """Yield the options as arguments for another command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """Everything that one capability adds to polyver."""

    name: str
    contribution: Callable[[Any, Surroundings], Contribution]
    """Returns what it adds to a control plane with these settings (None for the defaults)."""
    earlier_name: str = ""
    """A name that is still accepted, with a warning."""
    requires: tuple[str, ...] = ()
    """The names of other capabilities that it needs."""
    options: Callable[[], OptionsOfCapability] | None = None
    """The class of its command-line options; None if it has none."""
    enabled_by_options: bool = False
    """True if its options enable it where --capabilities is not given."""
    commands: Mapping[str, str] = field(default_factory=dict)
    """Its commands, and the modules and variables that hold them."""
    reader: Callable[[], LineageReader] | None = None
    """Returns the reader of its lineages in manifests, for `polyver resolve`."""
    subjects: Callable[[], tuple[Subject, ...]] = tuple
    """Returns the types of objects that `polyver why` and `polyver impact` explain."""
