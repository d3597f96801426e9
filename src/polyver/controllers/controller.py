"""The interface of a controller: its watches, the keys that a change affects, and `reconcile`.

Controllers are level-based: a key names an object to reconcile, and not the event that happened to
the object. So a restarted controller reaches the same state as one that has seen all events.
`reconcile` reads the actual state, calls a pure function that decides what to do, and carries out
the decision.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from polyver.client import Change, Discovery, GroupVersionResource, preferred
from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

__all__ = ["Controller", "Requeue", "Watch", "every", "exactly"]

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Requeue:
    """A result of `reconcile`: reconcile the key again after this number of seconds."""

    after: float


@dataclass(frozen=True, slots=True)
class Watch(Generic[T, K]):
    """The kinds whose objects a controller watches, and what it does with their changes.

    Controllers with equal watches share one informer.
    """

    kinds: Callable[[Discovery], Iterable[ResourceKind]]
    """Selects the kinds to watch from the kinds that the server serves.

    It is called again when the kinds of the server change.
    """
    observe: Callable[[ResourceKind, Change[T]], Iterable[K]]
    """Records a change of an object, and returns the keys to reconcile because of it."""
    keep: Callable[[ResourceKind, Object], T]
    """Returns the data of an object that the informer keeps in memory."""
    metadata: bool = False
    labels: str = ""
    """The label selector of the watched objects; empty for all objects."""
    needed: bool = True
    """True if the controller must not reconcile before all watched objects have been read."""
    complete: Callable[[ResourceKind], None] = lambda _kind: None
    """Called when all objects of a kind have been read for the first time."""
    forget: Callable[[ResourceKind, Iterable[T]], Iterable[K]] = lambda _kind, _known: ()
    """Called when a kind is no longer watched, for example because it is no longer served.

    The arguments are the kind and its last known objects. Deleted objects have already been
    reported to `observe`; it is unknown whether the others still exist. Returns the keys to
    reconcile.
    """


def exactly(resource: GroupVersionResource) -> Callable[[Discovery], Iterable[ResourceKind]]:
    """Build a function that selects a resource in exactly its version, if it is served."""
    return lambda found: [kind for kind in found.kinds if GroupVersionResource.of(kind) == resource]


def every(
    *, verbs: Sequence[str] = ("delete", "list", "watch"), but: Iterable[tuple[str, str]] = ()
) -> Callable[[Discovery], Iterable[ResourceKind]]:
    """Build a function that selects each kind that supports these verbs, except kinds in `but`.

    It selects each kind in its preferred version. `but` has pairs of group and plural.
    """
    left_out = frozenset(but)
    return lambda found: [
        kind
        for kind in preferred(found.kinds, verbs=verbs)
        if (kind.group, kind.plural) not in left_out
    ]


def _unheard(key: Any) -> None:
    """Do nothing: a controller that no loop runs has no queue."""


class Controller(ABC, Generic[K]):
    """Base class of controllers."""

    name: str
    synced: bool = False
    """True if all objects that the controller watches have been read.

    The loop sets this attribute.
    """
    workers: int | None = None
    """The number of keys that are reconciled at the same time; None for the default."""
    watch_anew: Callable[[], None] = staticmethod(lambda: None)
    """The controller must call this function when its `watches` select other kinds than before.

    The manager sets this attribute.
    """
    wake: Callable[[K], None] = staticmethod(_unheard)
    """Adds a key to the queue; for events that no watch reports. The loop sets this attribute."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Counters by name, which the metrics of the process show."""
        return {}

    @property
    def collectors(self) -> Sequence[Callable[[], Collector]]:
        """Functions that create Prometheus collectors, for metrics in addition to `counts`.

        The Prometheus library is loaded only when one of them is called.
        """
        return ()

    @property
    @abstractmethod
    def watches(self) -> Sequence[Watch[Any, K]]:
        """The watches of the controller. The changes that they report lead to keys to reconcile."""

    @abstractmethod
    async def reconcile(self, key: K) -> Requeue | None:
        """Bring the actual state of one key to the desired state.

        If it raises an exception, the loop calls it again later.
        """

    async def close(self) -> None:
        """Free the resources of the controller. The manager calls this method when it stops."""

    def discovered(self, discovery: Discovery) -> Iterable[K]:
        """Record the kinds that the server serves now; return the keys that this change affects."""
        del discovery
        return ()
