"""Go templates with the functions of the library sprig.

Blueprints and ComponentDefinitions contain such templates. A template reads only the plain data
that is passed to `render`. It cannot reach files, the network or the clock. The number of steps of
a rendering and the size of its text are limited.
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
