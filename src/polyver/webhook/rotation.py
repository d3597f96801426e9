"""When certificates are made, published, switched and dropped: decided from what there is, and now.

A client believes a certificate if it knows the authority that signed it. So a new authority is
published beside the old one and seen by all before anything is signed by it, and the old one is
dropped only when nothing that it signed is shown any more.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection
from dataclasses import dataclass

__all__ = [
    "SETTLED_AFTER",
    "AuthorityState",
    "Create",
    "Drop",
    "Issue",
    "LeafState",
    "Observe",
    "Publish",
    "RotationState",
    "Step",
    "plan",
]

_DAY = datetime.timedelta(days=1)
_HOUR = datetime.timedelta(hours=1)
"""How long before its making a certificate is valid."""
RENEWED_BEFORE = 30 * _DAY
"""How long before its end a leaf is made anew."""
REPLACED_BEFORE = 730 * _DAY
"""How long before its end an authority gets a successor: every leaf ends before its authority."""
DROPPED_AFTER = _DAY
"""How long an old authority is believed after the last of its leaves was shown, at most."""
SETTLED_AFTER = datetime.timedelta(minutes=5)
"""How long, at least: until all have heard of what is written for them."""


@dataclass(frozen=True, slots=True)
class AuthorityState:
    """An authority that signs, or has signed."""

    serial: str
    until: datetime.datetime
    since: datetime.datetime | None = None
    """When it begins to be valid; in the future if it was made while the clock was ahead."""


@dataclass(frozen=True, slots=True)
class LeafState:
    """The certificate that is shown."""

    signer: str
    names: frozenset[str]
    since: datetime.datetime
    until: datetime.datetime


@dataclass(frozen=True, slots=True)
class RotationState:
    """All that there is."""

    authorities: tuple[AuthorityState, ...] = ()
    """The oldest first; two while one follows the other."""
    leaf: LeafState | None = None
    published: tuple[str, ...] = ()
    """The authorities in the bundle that was written last."""
    observed: bool = False
    """Whether all who must believe that bundle have it."""
    shown: bool = False
    """Whether all who show a certificate say that it is this leaf; nobody may say so."""


@dataclass(frozen=True, slots=True)
class Create:
    """Make an authority."""


@dataclass(frozen=True, slots=True)
class Publish:
    """Write a bundle of these authorities."""

    serials: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Observe:
    """Find out whether the bundle has reached all, and do nothing before it has."""


@dataclass(frozen=True, slots=True)
class Issue:
    """Make a leaf that this authority signs, and show it."""

    signer: str


@dataclass(frozen=True, slots=True)
class Drop:
    """Forget an authority."""

    serial: str


Step = Create | Publish | Observe | Issue | Drop


def plan(state: RotationState, names: Collection[str], now: datetime.datetime) -> Step | None:
    """The next step; none if nothing is to be done now.

    >>> plan(RotationState(), ["localhost"], datetime.datetime(2026, 1, 1))
    Create()
    """
    for authority in state.authorities:
        ahead = authority.since is not None and authority.since > now
        if authority.until <= now or ahead:
            return Drop(authority.serial)
    if _needs_authority(state, now):
        return Create()
    serials = tuple(each.serial for each in state.authorities)
    if state.published != serials:
        return Publish(serials)
    leaf = state.leaf if state.leaf and state.leaf.signer in serials else None
    if leaf is None or _is_due(leaf, names, now):
        return Issue(_signer(leaf, serials, observed=state.observed))
    return _replaced(state, leaf, serials, now) if len(serials) > 1 else None


def _signer(leaf: LeafState | None, serials: tuple[str, ...], *, observed: bool) -> str:
    """The newest, if everyone knows it; a leaf that it signed before was believed, too."""
    oldest, newest = serials[0], serials[-1]
    return newest if observed or (leaf and leaf.signer == newest) else oldest


def _replaced(
    state: RotationState, leaf: LeafState, serials: tuple[str, ...], now: datetime.datetime
) -> Step | None:
    """The next step from an authority to the one that follows it."""
    oldest, newest = serials
    if leaf.signer == oldest:
        return Issue(newest) if state.observed else Observe()
    wait = SETTLED_AFTER if state.shown else DROPPED_AFTER
    return Drop(oldest) if now - leaf.since >= wait else None


def _needs_authority(state: RotationState, now: datetime.datetime) -> bool:
    match state.authorities:
        case ():
            return True
        case (only,):
            return only.until - now <= REPLACED_BEFORE
    return False


def _is_due(leaf: LeafState, names: Collection[str], now: datetime.datetime) -> bool:
    ahead = leaf.since - now > _HOUR
    return ahead or leaf.until - now <= RENEWED_BEFORE or not leaf.names >= set(names)
