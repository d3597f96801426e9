"""The page: shows in a browser which release each dependent of a lineage gets, and why.

A lineage is a named thing with several releases, for example a kind with its API versions. A
dependent is an object that uses a release of a lineage. The page reads the Kubernetes API through
polyver's client, and never writes.
"""

from polyver.web._page import Page

__all__ = ["Page"]
