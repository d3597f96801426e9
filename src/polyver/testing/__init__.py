"""The public test kit, with which users of polyver test their own platforms.

pytest imports this Python package in every test run, to load the plugin. So all other modules are
imported only when a test uses them.
"""

from typing import TYPE_CHECKING

from polyver.core.loading import imported_on_use

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

__getattr__ = imported_on_use(
    __name__,
    {
        "polyver.testing._assets": "NoAssets find_assets",
        "polyver.testing._cluster": "ClusterError LocalCluster",
        "polyver.testing._conversions": (
            "ConversionCase check_conversions check_law conversion_cases walk_versions"
        ),
        "polyver.testing._embedded": "EmbeddedServer",
    },
)
