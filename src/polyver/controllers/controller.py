"""The interface of a controller: its watches, the keys that a change affects, and `reconcile`.

Controllers are level-based: a key names an object to reconcile, and not the event that happened to
the object. So a restarted controller reaches the same state. `reconcile` reads the actual state,
calls a pure function that decides what to do, and carries out the decision.
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
    """The result of a reconcile: the key is reconciled again later, even without a change."""

    after: float


@dataclass(frozen=True, slots=True)
class Watch(Generic[T, K]):
    """The kinds whose changes a controller observes.

    Controllers with equal watches share one informer.
    """

    kinds: Callable[[Discovery], Iterable[ResourceKind]]
    """Selects the kinds to watch from the served kinds. Called again when the served kinds change.
    """
    observe: Callable[[ResourceKind, Change[T]], Iterable[K]]
    """Records a change, and returns the keys that it affects."""
    keep: Callable[[ResourceKind, Object], T]
    """Returns the data of an object that the informer keeps in memory."""
    metadata: bool = False
    labels: str = ""
    """The label selector of the watched objects."""
    needed: bool = True
    """True if the controller must read all watched objects before its first reconcile."""
    complete: Callable[[ResourceKind], None] = lambda _kind: None
    """Called when all objects of a kind have been read."""
    forget: Callable[[ResourceKind, Iterable[T]], Iterable[K]] = lambda _kind, _known: ()
    """Called when a kind is no longer watched, for example because it is no longer served.

    It is then unknown whether its last known objects still exist. (Deleted objects have already
    been reported to `observe`.)
    """


def exactly(resource: GroupVersionResource) -> Callable[[Discovery], Iterable[ResourceKind]]:
    """Build a function that selects one kind in a stated version, if this version is served."""
    return lambda found: [kind for kind in found.kinds if GroupVersionResource.of(kind) == resource]


def every(
    *, verbs: Sequence[str] = ("delete", "list", "watch"), but: Iterable[tuple[str, str]] = ()
) -> Callable[[Discovery], Iterable[ResourceKind]]:
    """Build a function that selects each kind that supports these verbs, except kinds in `but`.

    It selects the preferred version of a kind. `but` has pairs of group and plural.
    """
    left_out = frozenset(but)
    return lambda found: [
        kind
        for kind in preferred(found.kinds, verbs=verbs)
        if (kind.group, kind.plural) not in left_out
    ]


def _unheard(key: Any) -> None:
    """Do nothing: without a loop, a controller has no queue."""


class Controller(ABC, Generic[K]):
    """Base class of controllers."""

    name: str
    synced: bool = False
    """True if all objects that the controller watches have been read; the loop sets this attribute.
    """
    workers: int | None = None
    """The number of keys that are reconciled at the same time; None for the default."""
    watch_anew: Callable[[], None] = staticmethod(lambda: None)
    """Called by the controller when its `watches` select other kinds than before. The manager sets
    this attribute.
    """
    wake: Callable[[K], None] = staticmethod(_unheard)
    """Adds a key to the queue, for events that no watch reports. The loop sets this attribute."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Counters by name, for metrics."""
        return {}

    @property
    def collectors(self) -> Sequence[Callable[[], Collector]]:
        """Factories of further Prometheus collectors; calling one loads the Prometheus library."""
        return ()

    @property
    @abstractmethod
    def watches(self) -> Sequence[Watch[Any, K]]:
        """The watches of the controller; the changes that they report give keys to reconcile."""

    @abstractmethod
    async def reconcile(self, key: K) -> Requeue | None:
        """Bring the actual state to the desired state.

        After an exception, the loop retries later.
        """

    async def close(self) -> None:
        """Release the resources of the controller when the manager stops."""

    def discovered(self, discovery: Discovery) -> Iterable[K]:
        """Record the kinds that are served now; return the keys to reconcile because of them."""
        del discovery
        return ()
