"""Go templates with the functions of sprig: texts with actions between `{{` and `}}`.

Blueprints and component definitions are written in them. They see plain data alone, reach nothing
outside, and take no more than they are given.
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
