"""What can be said of conversions without running them: rules beside schemas, and what is lost."""

from polyver.capabilities.apis.checking._admitting import check_types
from polyver.capabilities.apis.checking._findings import RULES, Example, Finding, found
from polyver.capabilities.apis.checking._fitting import fitting
from polyver.capabilities.apis.checking._guessing import guessed
from polyver.capabilities.apis.checking._ledger import Fate, Ledger, ledger
from polyver.capabilities.apis.checking._observed import Observed
from polyver.capabilities.apis.checking._words import words_of
from polyver.capabilities.apis.checking._writing import check_writing

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
