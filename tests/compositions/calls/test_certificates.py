"""Certificates of functions: nobody who was started in time is ever not believed."""

from __future__ import annotations

import datetime
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError
from hypothesis import given, settings
from hypothesis import strategies as st

from polyver.compositions.calls import (
    Authorities,
    CertificateFolder,
    IssuedCertificate,
    renewal,
    server_names,
)
from polyver.compositions.calls.authorities import (
    OVERLAP,
    CreateFunctionAuthority,
    DropFunctionAuthority,
    FunctionAuthority,
    plan,
    signing,
)
from polyver.compositions.calls.certificates import InvalidName
from polyver.kube.http.files import FolderFailed

DAY = datetime.timedelta(days=1)
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
YEARS = 12


def believed(shown: bytes, bundle: bytes, name: str, now: datetime.datetime) -> bool:
    """Whether a client with a bundle believes a server."""
    store = Store(x509.load_pem_x509_certificates(bundle))
    verifier = PolicyBuilder().store(store).time(now).build_server_verifier(x509.DNSName(name))
    try:
        verifier.verify(x509.load_pem_x509_certificate(shown), [])
    except VerificationError:
        return False
    return True


def accepted(shown: bytes, bundle: bytes, now: datetime.datetime) -> bool:
    """Whether a server with a bundle believes a client, whose certificate names no host."""
    leaf = x509.load_pem_x509_certificate(shown)
    for authority in x509.load_pem_x509_certificates(bundle):
        try:
            leaf.verify_directly_issued_by(authority)
        except ValueError:
            continue
        return authority.not_valid_before_utc <= now < authority.not_valid_after_utc
    return False


def test_a_function_gets_the_files_that_its_sdk_reads(tmp_path: Path) -> None:
    got = CertificateFolder(tmp_path / "pki").issue("fn-1", now=START, namespace="apps")
    assert sorted(each.name for each in got.folder.iterdir()) == ["ca.crt", "tls.crt", "tls.key"]
    assert {stat.S_IMODE(each.stat().st_mode) for each in got.folder.iterdir()} == {0o600}
    assert stat.S_IMODE(got.folder.stat().st_mode) == 0o700
    shown, bundle = (got.folder / name for name in ("tls.crt", "ca.crt"))
    for name in ("localhost", "fn-1", "fn-1.apps", "fn-1.apps.svc", "fn-1.apps.svc.cluster.local"):
        assert believed(shown.read_bytes(), bundle.read_bytes(), name, START)
    assert not believed(shown.read_bytes(), bundle.read_bytes(), "fn-2", START)


def test_authorities_survive_a_restart(tmp_path: Path) -> None:
    before = CertificateFolder(tmp_path).issue("fn-1", now=START)
    trust = CertificateFolder(tmp_path).trust("fn-1", now=START + DAY)
    assert believed(before.issued.pair.certificate, trust.bundle, "fn-1", START + DAY)
    assert accepted(trust.pair.certificate, before.issued.bundle, START + DAY)
    assert stat.S_IMODE((tmp_path / "authorities.json").stat().st_mode) == 0o600


def test_what_is_shown_to_functions_stays_the_same_between_renewals(tmp_path: Path) -> None:
    folder = CertificateFolder(tmp_path)
    first = folder.trust("fn-1", now=START)
    assert folder.trust("fn-1", now=START + 200 * DAY) is first
    assert folder.trust("fn-2", now=START).pair == first.pair
    assert folder.trust("fn-1", now=START + 250 * DAY).pair != first.pair


def test_a_certificate_is_replaced_after_two_thirds_of_its_life(tmp_path: Path) -> None:
    folder = CertificateFolder(tmp_path)
    got = folder.issue("fn-1", now=START)
    assert folder.renewal(got, now=START + 240 * DAY) == ""
    assert "two thirds" in folder.renewal(got, now=START + 244 * DAY)


def test_other_names_are_a_reason_to_replace_a_certificate() -> None:
    authorities = Authorities().advanced(START)
    issued = authorities.server(server_names("fn-1"), START)
    assert renewal(issued, authorities, server_names("fn-1"), START) == ""
    wanted = server_names("fn-1", namespace="apps")
    assert renewal(issued, authorities, wanted, START) == "it does not contain all names"
    broken = IssuedCertificate(issued.pair, b"no bundle")
    assert renewal(broken, authorities, wanted, START) == "it cannot be read"


def test_each_start_has_a_folder_of_its_own_and_old_ones_go(tmp_path: Path) -> None:
    folder = CertificateFolder(tmp_path)
    folders = [folder.issue("fn-1", now=START).folder for _ in range(5)]
    assert len(set(folders)) == 5
    (folders[-1].parent / ".unfinished").mkdir()
    newest = folder.issue("fn-1", now=START).folder
    assert set(newest.parent.iterdir()) == {newest, folders[-1]}
    folder.forget("fn-1")
    assert not newest.parent.exists()


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", ".a", "A", "a b", "a\n", "x" * 254])
def test_a_hostile_name_reaches_no_path(tmp_path: Path, name: str) -> None:
    folder = CertificateFolder(tmp_path / "pki")
    with pytest.raises(InvalidName):
        folder.issue(name, now=START)
    folder.forget(name)
    assert not list(tmp_path.rglob("tls.key"))


def test_a_spoiled_document_is_named(tmp_path: Path) -> None:
    (tmp_path / "authorities.json").write_text('{"authorities": [{}]}')
    with pytest.raises(FolderFailed, match=r"authorities\.json has unexpected content"):
        CertificateFolder(tmp_path).trust("fn-1", now=START)


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "pki").write_text("a file")
    with pytest.raises(FolderFailed, match="pki cannot be used"):
        CertificateFolder(tmp_path / "pki").issue("fn-1", now=START)


def test_documents_are_read_as_they_were_written() -> None:
    authorities = Authorities().advanced(START).advanced(START + (YEARS - 4) * 365 * DAY)
    again = Authorities.decode(authorities.encode())
    assert len(again.known) == 2
    assert again.encode() == authorities.encode()
    assert again.bundle == authorities.bundle


def test_over_the_years_functions_and_callers_believe_each_other(tmp_path: Path) -> None:
    """Looked at every twelve hours; a function is started anew when there is a reason to."""
    folder = CertificateFolder(tmp_path)
    got = folder.issue("fn-1", now=START)
    bundles = {got.issued.bundle}
    starts = 0
    # The years in which an authority has no successor are much the same.
    days = [*range(0, 8 * 365 - 10, 40), *range(8 * 365 - 10, 8 * 365 + 10), *range(3000, 4000, 40)]
    for half_day in (half for day in days for half in (2 * day, 2 * day + 1)):
        now = START + half_day * DAY / 2
        trust = folder.trust("fn-1", now=now)
        assert believed(got.issued.pair.certificate, trust.bundle, "fn-1", now)
        assert accepted(trust.pair.certificate, got.issued.bundle, now)
        if folder.renewal(got, now=now):
            got = folder.issue("fn-1", now=now)
            starts += 1
        bundles.add(got.issued.bundle)
    assert len(bundles) >= 3
    assert starts < 30


signers = st.lists(
    st.tuples(st.integers(0, 5000), st.integers(1, 3650)), min_size=1, max_size=4
).map(
    lambda drawn: [
        FunctionAuthority(str(n), START + since * DAY, START + (since + lasting) * DAY)
        for n, (since, lasting) in enumerate(sorted(drawn))
    ]
)


@given(signers, st.integers(-10, 9000))
@settings(max_examples=200)
def test_plans_come_to_an_end_with_somebody_who_signs(
    known: list[FunctionAuthority], day: int
) -> None:
    now = START + day * DAY
    for _ in range(10):
        match plan(known, now):
            case CreateFunctionAuthority():
                known = [*known, FunctionAuthority("new", now, now + 3650 * DAY)]
            case DropFunctionAuthority(serial):
                known = [each for each in known if each.serial != serial]
            case None:
                break
    else:
        raise AssertionError("it does not come to an end")
    chosen = signing(known, now)
    assert chosen.until > now
    assert now - chosen.since >= OVERLAP or chosen is known[0]
