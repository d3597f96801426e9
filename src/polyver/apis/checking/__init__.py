"""Static checks of conversions: rules compared with schemas, and fields that are not expressed."""

from polyver.apis.checking._findings import RULES, ConversionFinding, Counterexample, found
from polyver.apis.checking._function_ledger import Observed
from polyver.apis.checking._inferred_schemas import guessed
from polyver.apis.checking._ledger import FieldConversion, Ledger, ledger
from polyver.apis.checking._rule_types import fitting
from polyver.apis.checking._schema_fit import check_types
from polyver.apis.checking._special_values import words_of
from polyver.apis.checking._unknown_targets import check_writing

__all__ = [
    "RULES",
    "ConversionFinding",
    "Counterexample",
    "FieldConversion",
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
