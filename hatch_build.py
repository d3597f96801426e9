"""Builds the compiled module where there is a C compiler, into wheels or in place.

Without a compiler polyver is pure Python, and so is its wheel.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

NATIVE = Path("src", "polyver", "native")


class NativeHook(BuildHookInterface[BuilderConfig]):
    """What hatchling calls before and after a wheel is written."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        native = _loaded(Path(self.root, NATIVE, "build.py"))
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        try:
            if version == "editable":
                native.build(force=True)
                return
            native.build(folder)
        except native.NotBuilt as error:
            self.app.display_warning(f"polyver.native was not built: {error.output}{error}")
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{_platform()}"
        build_data["force_include"][str(folder / native.MODULE)] = f"polyver/native/{native.MODULE}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._folder.cleanup()


def _loaded(path: Path) -> ModuleType:
    """A module of polyver, which is not installed yet."""
    spec = importlib.util.spec_from_file_location("polyver_native_build", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def _platform() -> str:
    """This machine; that it runs on others, as manylinux says, is nothing that we could promise."""
    names = (tag.platform for tag in sys_tags())
    return next(name for name in names if "manylinux" not in name and "musllinux" not in name)
