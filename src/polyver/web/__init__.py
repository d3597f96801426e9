"""The page: lineages, who asks them for what, what they get and why, in a browser.

It knows the API through the client's port alone, reads, and never writes.
"""

from polyver.web._page import Page

__all__ = ["Page"]
