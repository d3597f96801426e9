"""Find changes of a schema or of a CustomResourceDefinition that break its existing users.

A finding is plain data: the path of the change, its severity, the change that was made, and the
advice.

>>> before = {"type": "object", "properties": {"size": {"type": "integer"}}}
>>> after = {"type": "object", "properties": {"size": {"type": "integer", "maximum": 9}}}
>>> [finding] = compare_schemas(before, after)
>>> finding.path, finding.severity.value, finding.fact
('size', 'breaking', 'maximum was added: 9')
"""

from polyver.apis.compatibility._definitions import compare_definitions
from polyver.apis.compatibility._findings import CompatibilityFinding, FindingSeverity
from polyver.apis.compatibility._rules import RULES, FindingRule
from polyver.apis.compatibility._schemas import compare_schemas

__all__ = [
    "RULES",
    "CompatibilityFinding",
    "FindingRule",
    "FindingSeverity",
    "compare_definitions",
    "compare_schemas",
]
