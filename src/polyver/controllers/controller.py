"""What a controller states: what it watches, which keys a change touches, what to do about a key.

Controllers are level-based: a key says where to look, never what happened, so one that was
restarted comes to the same end. What is to be done is decided by a pure function; `reconcile`
observes, asks it, and acts.
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
    """What is left to do about a key: look at it again, although nothing may change until then."""

    after: float


@dataclass(frozen=True, slots=True)
class Watch(Generic[T, K]):
    """A source of changes; those that are alike are shared by all controllers."""

    kinds: Callable[[Discovery], Iterable[ResourceKind]]
    """Which of the kinds that are served now. It is asked again when these change."""
    observe: Callable[[ResourceKind, Change[T]], Iterable[K]]
    """Takes note of a change, and names the keys that it touches."""
    keep: Callable[[ResourceKind, Object], T]
    """What of an object is worth keeping."""
    metadata: bool = False
    labels: str = ""
    """Only what has these."""
    needed: bool = True
    """Whether the controller has to know these objects before it can work."""
    complete: Callable[[ResourceKind], None] = lambda _kind: None
    """Takes note that all objects of a kind are known."""
    forget: Callable[[ResourceKind, Iterable[T]], Iterable[K]] = lambda _kind, _known: ()
    """Takes note that a kind is no longer served, or cannot be asked about: its objects may be
    gone or not. What is known to be gone is told to `observe` before."""


def exactly(resource: GroupVersionResource) -> Callable[[Discovery], Iterable[ResourceKind]]:
    """One kind in a stated version, whenever it is served."""
    return lambda found: [kind for kind in found.kinds if GroupVersionResource.of(kind) == resource]


def every(
    *, verbs: Sequence[str] = ("delete", "list", "watch"), but: Iterable[tuple[str, str]] = ()
) -> Callable[[Discovery], Iterable[ResourceKind]]:
    """Every kind with these verbs in its preferred version, but for some (group, plural)."""
    left_out = frozenset(but)
    return lambda found: [
        kind
        for kind in preferred(found.kinds, verbs=verbs)
        if (kind.group, kind.plural) not in left_out
    ]


def _unheard(key: Any) -> None:
    """Without a loop nobody works on anything."""


class Controller(ABC, Generic[K]):
    """One controller; the loop around it is the same for all."""

    name: str
    synced: bool = False
    """Whether all that it watches is known as a whole; the loop keeps this up to date."""
    workers: int | None = None
    """How many keys are worked on at a time, if it is not as many as with others."""
    watch_anew: Callable[[], None] = staticmethod(lambda: None)
    """To be called when `watches` are for other kinds than before; set by whoever watches."""
    wake: Callable[[K], None] = staticmethod(_unheard)
    """Has a key looked at, for news that no watch tells; the loop sets it."""

    @property
    def counts(self) -> Mapping[str, int]:
        """How often it has done what is worth counting, by names."""
        return {}

    @property
    def collectors(self) -> Sequence[Callable[[], Collector]]:
        """What else it has to tell Prometheus; the library is loaded when it is asked."""
        return ()

    @property
    @abstractmethod
    def watches(self) -> Sequence[Watch[Any, K]]:
        """What wakes it."""

    @abstractmethod
    async def reconcile(self, key: K) -> Requeue | None:
        """Bring what is to what should be; an exception means to try again later."""

    async def close(self) -> None:
        """Let go of what it has under way, when the engine stops."""

    def discovered(self, discovery: Discovery) -> Iterable[K]:
        """Take note of the kinds that are served now, and name the keys that this touches."""
        del discovery
        return ()
