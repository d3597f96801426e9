"""The page: lineages, their dependents, and which release each gets and why, in a browser.

It uses the API only through the client, reads, and never writes.
"""

from polyver.web._page import Page

__all__ = ["Page"]
