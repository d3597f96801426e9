"""`polyver serve`, as someone runs it: what is refused before anything is served."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from tests.webhook.converters import served

from polyver.cli import _conversions, main


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
        (["--tls-cert", "a.crt"], "--tls-cert and --tls-key go together"),
        (["--tls-key", "a.key"], "--tls-cert and --tls-key go together"),
        (["--tls-cert", "a", "--tls-key", "b", "--hostname", "x"], "so none is made (--tls-cert)"),
        (["--hostname", "a_b"], "'a_b' is no name of a host (--hostname)"),
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
    monkeypatch.setattr(_conversions, "load_converters", lambda *_: served())
    (tmp_path / "a").write_text("no certificate")
    pair = ["--tls-cert", str(tmp_path / "a"), "--tls-key", str(tmp_path / "a")]
    code, err = complaint(capsys, "-f", "x", "--port", "0", *pair)
    assert code == 3
    assert f"{tmp_path / 'a'} are not a certificate and its key" in err


def test_a_port_in_use_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, err = complaint(capsys, "-f", "x.yaml", "--port", port)
    assert code == 3
    assert "the port is in use" in err
