"""What each capability contributes to the page."""

from polyver.web._informers import Following, Source, Watched
from polyver.web.view_model import Asked, Book, Details, Run, Shown, Step, Table, Unanswered, Where

__all__ = [
    "Asked",
    "Book",
    "Details",
    "Following",
    "Run",
    "Shown",
    "Source",
    "Step",
    "Table",
    "Unanswered",
    "Watched",
    "Where",
]
