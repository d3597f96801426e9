"""Static checks of conversions, and the loss ledger.

The checks find rules that do not fit the schemas, such as a rule for a field that does not exist.
The loss ledger lists the result of a conversion for each field.
"""

from polyver.apis.checking._acknowledgements import acknowledged, check_acknowledged
from polyver.apis.checking._findings import (
    RULES,
    ConversionFinding,
    Counterexample,
    found,
    ranked,
)
from polyver.apis.checking._ledger import FieldConversion, Ledger, Observed, ledger
from polyver.apis.checking._list_edits import edits_lose, list_edit_finding
from polyver.apis.checking._rule_places import rule_place
from polyver.apis.checking._rule_types import check_types, fitting
from polyver.apis.checking._test_data import guessed, words_of
from polyver.apis.checking._unknown_targets import check_writing

__all__ = [
    "RULES",
    "ConversionFinding",
    "Counterexample",
    "FieldConversion",
    "Ledger",
    "Observed",
    "acknowledged",
    "check_acknowledged",
    "check_types",
    "check_writing",
    "edits_lose",
    "fitting",
    "found",
    "guessed",
    "ledger",
    "list_edit_finding",
    "ranked",
    "rule_place",
    "words_of",
]
