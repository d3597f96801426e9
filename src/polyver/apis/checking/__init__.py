"""What can be said of conversions without running them: rules beside schemas, and what is lost."""

from polyver.apis.checking._admitting import check_types
from polyver.apis.checking._findings import RULES, Example, Finding, found
from polyver.apis.checking._fitting import fitting
from polyver.apis.checking._guessing import guessed
from polyver.apis.checking._ledger import Fate, Ledger, ledger
from polyver.apis.checking._observed import Observed
from polyver.apis.checking._words import words_of
from polyver.apis.checking._writing import check_writing

__all__ = [
    "RULES",
    "Example",
    "Fate",
    "Finding",
    "Ledger",
    "Observed",
    "check_types",
    "check_writing",
    "fitting",
    "found",
    "guessed",
    "ledger",
    "words_of",
]
