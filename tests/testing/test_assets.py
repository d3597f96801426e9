"""Finding the programs of a real control plane, without having any."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyver.testing import NoAssets, find_assets
from polyver.testing._assets import COMPLETE, PROGRAMS, platform_name


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "polyver" / "kube"


def build(folder: Path, *, complete: bool = True) -> Path:
    folder.mkdir(parents=True)
    for program in PROGRAMS:
        (folder / program).touch(mode=0o755)
    if complete:
        (folder / COMPLETE).touch()
    return folder


def test_without_programs_the_error_says_how_to_get_them(cache: Path) -> None:
    with pytest.raises(NoAssets, match=r"no kube-apiserver on this machine .* `make kube` builds"):
        find_assets()


def test_the_newest_whole_build_is_found(cache: Path) -> None:
    build(cache / f"1.9.0-{platform_name()}")
    newest = build(cache / f"1.37.1-{platform_name()}")
    build(cache / f"1.38.0-{platform_name()}", complete=False)
    build(cache / "1.39.0-plan9-mips")
    build(cache / f"mine-{platform_name()}")
    assert find_assets() == newest


def test_what_is_given_wins_and_must_be_whole(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(cache / f"1.37.1-{platform_name()}")
    mine = build(tmp_path / "mine")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(mine))
    assert find_assets() == mine
    (mine / "kube-controller-manager").unlink()
    with pytest.raises(NoAssets, match=r"lacks kube-controller-manager \(.*mine\); unset it"):
        find_assets()
