"""The public test kit: what users of polyver test their own platforms with.

pytest loads its plugin from here in every run, so nothing else is loaded before it is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polyver.testing._assets import NoAssets, find_assets
    from polyver.testing._cluster import ClusterError, LocalCluster
    from polyver.testing._embedded import EmbeddedServer

__all__ = ["ClusterError", "EmbeddedServer", "LocalCluster", "NoAssets", "find_assets"]

_WHERE = {
    "NoAssets": "_assets",
    "find_assets": "_assets",
    "ClusterError": "_cluster",
    "LocalCluster": "_cluster",
    "EmbeddedServer": "_embedded",
}


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
