"""Rotation of certificates: decide the next step from the current state and time.

A client trusts a certificate if the client knows the CA that signed it. So polyver first publishes
a new CA in addition to the old CA. When all clients know both CAs, the new CA signs a certificate.
When no replica serves a certificate of the old CA any more, polyver drops the old CA.
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
"""A certificate whose validity begins more than this time in the future is renewed: the clock was
wrong when it was created.
"""
RENEWED_BEFORE = 30 * _DAY
"""A certificate is renewed when this time is left until it expires."""
REPLACED_BEFORE = 730 * _DAY
"""A new CA is created when this time is left until the CA expires.

So all certificates that the old CA has signed expire before the old CA.
"""
DROPPED_AFTER = _DAY
"""After this time, the old CA is dropped even if a replica may still serve its certificate.

The time begins when the new CA signs a certificate.
"""
SETTLED_AFTER = datetime.timedelta(minutes=5)
"""The old CA is not dropped before this time has passed.

The time begins when the new CA signs a certificate.
"""


@dataclass(frozen=True, slots=True)
class AuthorityState:
    """A CA, which signs certificates now or has signed them earlier."""

    serial: str
    until: datetime.datetime
    since: datetime.datetime | None = None
    """The time from which the CA is valid.

    It is in the future if the clock was wrong when the CA was created.
    """


@dataclass(frozen=True, slots=True)
class LeafState:
    """The certificate that replicas must serve."""

    signer: str
    names: frozenset[str]
    since: datetime.datetime
    until: datetime.datetime


@dataclass(frozen=True, slots=True)
class RotationState:
    """The state of the CAs and the certificate, from which `plan` decides the next step."""

    authorities: tuple[AuthorityState, ...] = ()
    """The CAs, the oldest first. There are two only while a new CA replaces the old CA."""
    leaf: LeafState | None = None
    published: tuple[str, ...] = ()
    """The serial numbers of the CAs in the bundle that was published last."""
    observed: bool = False
    """True if all clients are known to have the published bundle."""
    shown: bool = False
    """True if at least one replica has reported its certificate, and all replicas that have
    reported one serve the certificate `leaf`.
    """


@dataclass(frozen=True, slots=True)
class Create:
    """The step that creates a CA."""


@dataclass(frozen=True, slots=True)
class Publish:
    """The step that publishes a bundle of these CAs."""

    serials: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Observe:
    """The step that waits until all clients have the published bundle."""


@dataclass(frozen=True, slots=True)
class Issue:
    """The step in which a CA signs a new certificate, which is then served."""

    signer: str


@dataclass(frozen=True, slots=True)
class Drop:
    """The step that removes a CA, so that clients no longer trust it."""

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
    """Return the serial number of the CA that must sign the next certificate.

    This is the newest CA if all clients know it, or if it has signed the current certificate;
    otherwise the oldest CA.
    """
    oldest, newest = serials[0], serials[-1]
    return newest if observed or (leaf and leaf.signer == newest) else oldest


def _replaced(
    state: RotationState, leaf: LeafState, serials: tuple[str, ...], now: datetime.datetime
) -> Step | None:
    """Return the next step for replacing the oldest CA by the newest one; None if it must wait."""
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
