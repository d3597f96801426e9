"""All functions that a template can call, and the functions of sprig that are left out."""

from __future__ import annotations

from collections.abc import Mapping

from polyver.languages.gotemplate._builtins import BUILTINS
from polyver.languages.gotemplate._cases import CASES
from polyver.languages.gotemplate._collections import DICTS, LISTS
from polyver.languages.gotemplate._data import DATA
from polyver.languages.gotemplate._encoding import ENCODING
from polyver.languages.gotemplate._functions import FunctionTable, TemplateFunction
from polyver.languages.gotemplate._math import MATH
from polyver.languages.gotemplate._paths import PATHS
from polyver.languages.gotemplate._regexes import REGEXES
from polyver.languages.gotemplate._strings import TEXTS
from polyver.languages.gotemplate._times import DATES
from polyver.languages.gotemplate._values import Version
from polyver.languages.gotemplate._versions import parse_version, satisfies

__all__ = ["ABSENT", "FUNCTIONS", "absence_of"]

_VERSIONS = FunctionTable("versions")
_VERSIONS.put("semver", "string", parse_version)


@_VERSIONS.add("semverCompare", "string string")
def _compare(constraint: str, version: str) -> bool:
    found: Version = parse_version(version)
    return satisfies(constraint, found)


_TABLES = (
    *(BUILTINS, DATA, TEXTS, CASES, REGEXES, MATH, LISTS, DICTS, ENCODING),
    *(DATES, _VERSIONS, PATHS),
)
FUNCTIONS: Mapping[str, TemplateFunction] = {
    name: function for table in _TABLES for name, function in table.functions.items()
}

_CLOCK = "templates have no clock; pass a time as data"
_CHANCE = "templates have no random values, so that they always render the same"
_OUTSIDE = "templates cannot read the environment or the network; pass the value as data"
_KEYS = "templates cannot create keys and passwords; keep them in a Secret"
ABSENT: Mapping[str, str] = {
    **dict.fromkeys(("ago", "now"), _CLOCK),
    **dict.fromkeys(
        (
            *("randAlpha", "randAlphaNum", "randAscii", "randBytes", "randInt", "randNumeric"),
            *("shuffle", "uuidv4"),
        ),
        _CHANCE,
    ),
    **dict.fromkeys(("env", "expandenv", "getHostByName"), _OUTSIDE),
    **dict.fromkeys(
        (
            *("bcrypt", "buildCustomCert", "decryptAES", "derivePassword", "encryptAES", "genCA"),
            *("genCAWithKey", "genPrivateKey", "genSelfSignedCert", "genSelfSignedCertWithKey"),
            *("genSignedCert", "genSignedCertWithKey", "htpasswd"),
        ),
        _KEYS,
    ),
}
"""The functions of sprig that are left out on purpose, each with the reason and an alternative."""


def absence_of(name: str) -> str:
    """Return why a function of sprig is left out and what to do instead; "" for other names."""
    return ABSENT.get(name, "")
