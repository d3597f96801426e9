"""Certificates that the webhook makes for itself: over the years nobody stops believing them."""

from __future__ import annotations

import datetime
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store
from hypothesis import given, settings
from hypothesis import strategies as st

from polyver.kube.http.files import FolderFailed
from polyver.kube.http.tls import Authority
from polyver.webhook.certificates import WebhookCertificates
from polyver.webhook.rotation import (
    AuthorityState,
    Create,
    Drop,
    Issue,
    LeafState,
    Observe,
    Publish,
    RotationState,
    Step,
    plan,
)
from polyver.webhook.served_certificate import FilePairs, PairUnusable

DAY = datetime.timedelta(days=1)
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
NAMES = ["hook.default.svc", "127.0.0.1"]


class World:
    """A state, and what clients may believe at worst."""

    def __init__(self) -> None:
        self.state = RotationState()
        self.now = START
        self.made = 0
        self.believed: set[tuple[str, ...]] = set()
        self.steps: list[Step] = []

    def advance(self, *, seen: bool) -> None:
        for _ in range(20):
            step = plan(self.state, NAMES, self.now)
            if step is None or (isinstance(step, Observe) and not seen):
                return
            self.take(step)
        raise AssertionError("it does not come to an end")

    def take(self, step: Step) -> None:
        self.steps.append(step)
        state = self.state
        match step:
            case Create():
                self.made += 1
                made = AuthorityState(f"ca{self.made}", self.now + 3650 * DAY)
                self.state = replace(state, authorities=(*state.authorities, made), observed=False)
            case Publish():
                self.state = replace(state, published=step.serials, observed=False)
                self.believed.add(step.serials)
            case Observe():
                self.state = replace(state, observed=True)
                self.believed = {state.published}
            case Issue():
                until = self.now + 365 * DAY
                leaf = LeafState(step.signer, frozenset(NAMES), self.now, until)
                self.state = replace(state, leaf=leaf)
            case Drop():
                left = tuple(each for each in state.authorities if each.serial != step.serial)
                self.state = replace(state, authorities=left)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(8, 25), st.booleans()), min_size=300, max_size=400))
def test_whoever_looks_at_any_time_believes_the_certificate(
    waits: list[tuple[int, bool]],
) -> None:
    world, unseen = World(), 0
    world.advance(seen=False)
    for days, seen in waits:
        world.now += days * DAY
        # Somebody brings every bundle to its place in half a year.
        unseen = 0 if seen else unseen + days
        leaf = world.state.leaf
        assert leaf is not None
        assert leaf.until > world.now
        world.advance(seen=seen or unseen > 180)
        leaf = world.state.leaf
        assert leaf is not None
        assert leaf.until > world.now
        assert all(leaf.signer in bundle for bundle in world.believed)
        signer = {each.serial: each for each in world.state.authorities}[leaf.signer]
        assert signer.until >= leaf.until, "a certificate ends before its authority"
        assert len(world.state.authorities) <= 2


def test_how_it_begins() -> None:
    world = World()
    world.advance(seen=True)
    assert world.steps == [Create(), Publish(("ca1",)), Issue("ca1")]


@pytest.fixture
def rotating() -> World:
    """A world in which the authority is about to be followed by another."""
    world = World()
    world.advance(seen=False)
    for _ in range(98):
        world.now += 30 * DAY
        world.advance(seen=False)
    assert world.made == 2
    world.steps.clear()
    return world


def test_nothing_is_signed_by_an_authority_that_was_not_seen(rotating: World) -> None:
    rotating.now += DAY
    rotating.advance(seen=False)
    assert rotating.steps == []
    rotating.advance(seen=True)
    assert rotating.steps == [Observe(), Issue("ca2")]
    rotating.steps.clear()
    rotating.now += DAY
    rotating.advance(seen=True)
    assert rotating.steps == [Drop("ca1"), Publish(("ca2",))]


def test_a_leaf_is_renewed_by_the_old_one_until_then(rotating: World) -> None:
    rotating.now += 400 * DAY
    rotating.advance(seen=False)
    assert rotating.steps == [Issue("ca1")]


def test_who_slept_for_decades_begins_again(rotating: World) -> None:
    rotating.now += 10_000 * DAY
    rotating.advance(seen=False)
    assert rotating.steps == [
        Drop("ca1"),
        Drop("ca2"),
        Create(),
        Publish(("ca3",)),
        Issue("ca3"),
    ]


def test_a_new_name_needs_a_new_leaf(rotating: World) -> None:
    assert plan(rotating.state, [*NAMES, "new"], rotating.now) == Issue("ca1")


# The folder.


def believed(kept: WebhookCertificates, bundle: bytes, now: datetime.datetime) -> bool:
    """Whether a client that has a bundle believes what is shown."""
    store = Store(x509.load_pem_x509_certificates(bundle))
    leaf = x509.load_pem_x509_certificate(kept.certificate_file.read_bytes())
    verifier = PolicyBuilder().store(store).time(now).build_server_verifier(x509.DNSName(NAMES[0]))
    return bool(verifier.verify(leaf, []))


def test_thirty_years_in_a_folder(tmp_path: Path) -> None:
    kept, now = WebhookCertificates(tmp_path, NAMES), START
    kept.advance(now)
    bundle, leaves = kept.bundle_file.read_bytes(), set()
    for _ in range(30 * 365 // 20):
        now += 20 * DAY
        assert believed(kept, bundle, now)
        kept.advance(now)
        leaves.add(kept.certificate_file.read_bytes())
        assert believed(kept, bundle, now), "clients copy the bundle some time later"
        bundle = kept.bundle_file.read_bytes()
        assert believed(kept, bundle, now)
        assert FilePairs(kept.certificate_file, kept.key_file).reload()
    assert len(leaves) >= 30


def test_a_second_start_changes_nothing(tmp_path: Path) -> None:
    first = WebhookCertificates(tmp_path, NAMES)
    assert first.advance(START)
    contents = {file: file.read_bytes() for file in tmp_path.iterdir()}
    assert WebhookCertificates(tmp_path, NAMES).advance(START + DAY) == []
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == contents
    assert {stat.S_IMODE(file.stat().st_mode) for file in contents} == {0o600}


def test_files_that_were_lost_are_written_again(tmp_path: Path) -> None:
    kept = WebhookCertificates(tmp_path, NAMES)
    kept.advance(START)
    bundle = kept.bundle_file.read_bytes()
    for file in (kept.certificate_file, kept.key_file, kept.bundle_file):
        file.unlink()
    kept.advance(START)
    assert kept.bundle_file.read_bytes() == bundle
    assert believed(kept, bundle, START)


@pytest.mark.parametrize("days", [1, 400, 4000])
def test_a_clock_that_was_ahead_is_forgotten(tmp_path: Path, days: int) -> None:
    kept = WebhookCertificates(tmp_path, NAMES)
    kept.advance(START + days * DAY)
    assert not_valid_yet(kept, START)
    kept.advance(START)
    assert believed(kept, kept.bundle_file.read_bytes(), START)


def test_a_leaf_that_is_not_valid_yet_is_made_again(tmp_path: Path) -> None:
    kept = WebhookCertificates(tmp_path, NAMES)
    kept.advance(START)
    bundle = kept.bundle_file.read_bytes()
    kept.advance(START + 340 * DAY)
    kept.advance(START + DAY)
    assert believed(kept, bundle, START + DAY)


def not_valid_yet(kept: WebhookCertificates, now: datetime.datetime) -> bool:
    leaf = x509.load_pem_x509_certificate(kept.certificate_file.read_bytes())
    return leaf.not_valid_before_utc > now


def test_a_long_name_is_no_hindrance(tmp_path: Path) -> None:
    kept = WebhookCertificates(tmp_path, [f"{'a' * 60}.{'b' * 60}.svc", *NAMES])
    kept.advance(START)
    assert believed(kept, kept.bundle_file.read_bytes(), START)


def test_what_somebody_else_wrote_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "certificates.json").write_text(
        '{"authorities": [{"certificate": "x", "key": ""}]}'
    )
    with pytest.raises(FolderFailed, match="has unexpected content; move it"):
        WebhookCertificates(tmp_path, NAMES).advance(START)


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FolderFailed, match=r"cannot be used: .*--certificates"):
        WebhookCertificates(tmp_path / "file" / "folder", NAMES).advance(START)


# Pairs.


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    pair = Authority.create("test", now=START).server("localhost", now=START)
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    return certificate, key


def test_a_certificate_is_good_from_its_beginning_to_its_end(files: tuple[Path, Path]) -> None:
    served = FilePairs(*files)
    assert served.reload()
    assert served.shown.problem(START) == ""
    assert "not valid before 2025-12-31" in served.shown.problem(START - DAY)
    assert "expired at 2027-01-01" in served.shown.problem(START + 366 * DAY)


def test_a_pair_that_does_not_fit_is_not_taken(files: tuple[Path, Path]) -> None:
    served = FilePairs(*files)
    assert served.reload()
    context, good = served.shown.context, files[1].read_bytes()
    assert not served.reload()
    for content in (b"", b"not pem", Authority.create("x", now=START).pair.key):
        files[1].write_bytes(content)
        with pytest.raises(
            PairUnusable, match=r"not a certificate and its key|is not a private key"
        ):
            served.reload()
        assert served.shown.context is context
    files[1].unlink()
    with pytest.raises(PairUnusable, match="cannot be read: No such file"):
        served.reload()
    files[1].write_bytes(good)
    assert not served.reload()
