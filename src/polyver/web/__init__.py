"""The page: shows in a browser which release each dependent of a lineage gets, and why.

A lineage is a named thing with releases (versions); a dependent is an object that uses one of them.
The page reads the Kubernetes API through the client, and never writes.
"""

from polyver.web._page import Page

__all__ = ["Page"]
