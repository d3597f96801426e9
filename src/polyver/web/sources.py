"""What each capability contributes to the page."""

from polyver.web._book import Asked, Book, Details, Run, Shown, Step, Table, Unanswered, Where
from polyver.web._following import Following, Source, Watched

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
