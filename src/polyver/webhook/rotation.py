"""Rotation of certificates: decide the next step from the current state and time.

A client trusts a certificate if the client knows the CA that signed it. So a new CA is first
published in addition to the old CA. When all clients have both CAs, the new CA signs a certificate.
When no replica serves a certificate of the old CA any more, the old CA is dropped.
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
"""The validity of a certificate begins this long before its creation, because clocks differ."""
RENEWED_BEFORE = 30 * _DAY
"""A certificate is renewed at this time before its expiry."""
REPLACED_BEFORE = 730 * _DAY
"""A CA gets a successor at this time before its expiry.

All certificates that it has signed expire before the CA.
"""
DROPPED_AFTER = _DAY
"""The maximum time for which an old CA stays trusted after the new CA has signed a certificate."""
SETTLED_AFTER = datetime.timedelta(minutes=5)
"""The minimum time for which an old CA stays trusted after the new CA has signed a certificate."""


@dataclass(frozen=True, slots=True)
class AuthorityState:
    """A CA that signs, or has signed."""

    serial: str
    until: datetime.datetime
    since: datetime.datetime | None = None
    """The time from which the CA is valid; in the future if the clock was wrong at its creation."""


@dataclass(frozen=True, slots=True)
class LeafState:
    """The certificate that is served."""

    signer: str
    names: frozenset[str]
    since: datetime.datetime
    until: datetime.datetime


@dataclass(frozen=True, slots=True)
class RotationState:
    """The state from which the next step is planned."""

    authorities: tuple[AuthorityState, ...] = ()
    """The CAs, the oldest first. There are two CAs while the new CA replaces the old CA."""
    leaf: LeafState | None = None
    published: tuple[str, ...] = ()
    """The CAs in the bundle that was published last."""
    observed: bool = False
    """True if all clients have the published bundle."""
    shown: bool = False
    """True if at least one replica reports its certificate, and all that report serve this leaf."""


@dataclass(frozen=True, slots=True)
class Create:
    """Create a CA."""


@dataclass(frozen=True, slots=True)
class Publish:
    """Publish a bundle of these CAs."""

    serials: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Observe:
    """Check whether the bundle has reached all clients. The rotation waits for this."""


@dataclass(frozen=True, slots=True)
class Issue:
    """Issue a certificate (leaf) that this CA signs, and serve the certificate."""

    signer: str


@dataclass(frozen=True, slots=True)
class Drop:
    """Remove a CA."""

    serial: str


Step = Create | Publish | Observe | Issue | Drop


def plan(state: RotationState, names: Collection[str], now: datetime.datetime) -> Step | None:
    """Return the next step of the rotation; None if no step is due.

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
    """Return the CA that may sign.

    This is the newest CA if all clients know it or if it signed the current leaf, and the oldest CA
    otherwise.
    """
    oldest, newest = serials[0], serials[-1]
    return newest if observed or (leaf and leaf.signer == newest) else oldest


def _replaced(
    state: RotationState, leaf: LeafState, serials: tuple[str, ...], now: datetime.datetime
) -> Step | None:
    """Return the next step in replacing the older one of two CAs."""
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
