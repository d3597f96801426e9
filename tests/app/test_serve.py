"""`polyver serve`, as someone runs it: what is refused before anything is served."""

from __future__ import annotations

import datetime
import socket
from pathlib import Path

import pytest
from tests.webhook.converters import served

from polyver.apis.commands import conversions as _conversions
from polyver.app import main
from polyver.kube.http.tls import Authority
from polyver.webhook import ReviewHandlers


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(["serve", *arguments])
    out, err = capsys.readouterr()
    assert out == ""
    return code, err


@pytest.fixture
def given(tmp_path: Path) -> list[str]:
    """What every call needs, and nothing else."""
    (tmp_path / "conversions.yaml").touch()
    own = str(tmp_path / "own")
    return ["-f", str(tmp_path / "conversions.yaml"), "--port", "0", "--certificates", own]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--tls-cert", "a.crt"], "--tls-cert and --tls-key are required together"),
        (["--tls-key", "a.key"], "--tls-cert and --tls-key are required together"),
        (
            ["--tls-cert", "a", "--tls-key", "b", "--hostname", "x"],
            "excludes --certificates and --hostname (--tls-cert)",
        ),
        (["--hostname", "a_b"], "'a_b' is not a host name (--hostname)"),
        (["-f", "-"], "standard input cannot be watched (--conversions)"),
        (["--port", "70000"], "--port"),
        (["--largest", "0"], "--largest"),
    ],
)
def test_options_that_make_no_sense(
    capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    code, err = complaint(capsys, "-f", "x.yaml", *arguments)
    assert code == 2
    assert told in err


def test_conversions_have_to_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, err = complaint(capsys)
    assert code == 2
    assert "--conversions" in err


def test_conversions_that_cannot_be_loaded_touch_nothing(
    capsys: pytest.CaptureFixture[str], given: list[str], tmp_path: Path
) -> None:
    code, err = complaint(capsys, *given)
    assert code == 3
    assert str(tmp_path / "conversions.yaml") in err
    assert not (tmp_path / "own").exists()


def test_a_certificate_that_is_none_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_conversions, "load_served", lambda *_: ReviewHandlers(served()))
    good = Authority.create("x", now=datetime.datetime.now(datetime.UTC)).pair
    other = Authority.create("y", now=datetime.datetime.now(datetime.UTC)).pair
    a, b = tmp_path / "a", tmp_path / "b"
    pair = ["--tls-cert", str(a), "--tls-key", str(b)]
    for certificate, key, told in (
        (b"no certificate", good.key, f"{a} is not a certificate"),
        (b"", good.key, f"{a} is not a certificate"),
        (good.certificate, b"", f"{b} is not a private key"),
        (good.certificate, b"\xff", f"{b} is not a private key"),
        (good.certificate, other.key, f"{a} and {b} are not a certificate and its key"),
    ):
        a.write_bytes(certificate)
        b.write_bytes(key)
        code, err = complaint(capsys, "-f", "x", "--port", "0", *pair)
        assert (code, err.count("\n")) == (3, 1)
        assert told in err


@pytest.mark.parametrize("name", ["certificates.json", "tls.crt", "tls.key", "ca.crt"])
def test_a_folder_in_the_place_of_a_file_is_named(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_conversions, "load_served", lambda *_: ReviewHandlers(served()))
    (tmp_path / name).mkdir()
    options = ["--port", "0", "--certificates", str(tmp_path)]
    code, err = complaint(capsys, "-f", "x", *options)
    assert (code, err.count("\n")) == (3, 1)
    assert f"{tmp_path / name} cannot be used: Is a directory" in err


def test_a_port_in_use_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, err = complaint(capsys, "-f", "x.yaml", "--port", port)
    assert code == 3
    assert "the port is in use" in err


def test_kinds_without_hooks_and_conversions_are_nothing_to_serve(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    kinds = tmp_path / "kinds.py"
    kinds.write_text(
        "from polyver import apis\n"
        'toy = apis.Kind("Toy", group="ex.io")\n'
        '@toy.version("v1")\n'
        "class Toy:\n"
        "    colour: str\n"
    )
    code, err = complaint(capsys, "--kinds", str(kinds), "--port", "0")
    assert code == 3
    assert "no Conversion and no kind with hooks was found" in err
