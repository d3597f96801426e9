"""The public test kit: what users of polyver test their own platforms with."""

from polyver.testing._assets import NoAssets, find_assets
from polyver.testing._cluster import ClusterError, LocalCluster

__all__ = ["ClusterError", "LocalCluster", "NoAssets", "find_assets"]
