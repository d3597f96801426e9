"""The public test kit: what users of polyver test their own platforms with.

pytest loads its plugin from here in every run, so nothing else is loaded before it is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polyver.testing._assets import NoAssets, find_assets
    from polyver.testing._cluster import ClusterError, LocalCluster
    from polyver.testing._conversions import (
        ConversionCase,
        check_conversions,
        check_law,
        conversion_cases,
        walk_versions,
    )
    from polyver.testing._embedded import EmbeddedServer

__all__ = [
    "ClusterError",
    "ConversionCase",
    "EmbeddedServer",
    "LocalCluster",
    "NoAssets",
    "check_conversions",
    "check_law",
    "conversion_cases",
    "find_assets",
    "walk_versions",
]

_WHERE = {
    "NoAssets": "_assets",
    "find_assets": "_assets",
    "ClusterError": "_cluster",
    "LocalCluster": "_cluster",
    "EmbeddedServer": "_embedded",
    "ConversionCase": "_conversions",
    "check_conversions": "_conversions",
    "check_law": "_conversions",
    "conversion_cases": "_conversions",
    "walk_versions": "_conversions",
}


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
