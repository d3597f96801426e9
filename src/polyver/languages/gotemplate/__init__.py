"""Go templates with the functions of sprig.

Blueprints and component definitions are written in them. A template sees only plain data, cannot
reach anything outside, and is bounded in steps and output size.
"""

from polyver.languages.gotemplate._budget import RenderLimits
from polyver.languages.gotemplate._errors import InvalidTemplate, RenderFailed, TemplateError
from polyver.languages.gotemplate._inspection import (
    ANYTHING,
    TEXT,
    DataShape,
    FieldAccess,
    inspect_template,
)
from polyver.languages.gotemplate._library import ABSENT, FUNCTIONS
from polyver.languages.gotemplate._template import (
    InvalidData,
    Template,
    compile_template,
    render_value,
)

__all__ = [
    "ABSENT",
    "ANYTHING",
    "FUNCTIONS",
    "TEXT",
    "DataShape",
    "FieldAccess",
    "InvalidData",
    "InvalidTemplate",
    "RenderFailed",
    "RenderLimits",
    "Template",
    "TemplateError",
    "compile_template",
    "inspect_template",
    "render_value",
]
