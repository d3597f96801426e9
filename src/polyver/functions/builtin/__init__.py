"""The built-in functions of polyver.

They are registered in the same way as the functions of a project. Their catalogue is the file
catalogue.yaml in this folder.
"""

from polyver.functions.builtin import (
    _commands,
    _http,
    _resources,
    _tasks,
)
from polyver.functions.builtin import (
    _kube_exec as _executing,
)
from polyver.functions.builtin import (
    _wait as _waiting,
)

__all__: list[str] = []

# Imported because they register functions.
_MODULES = (_commands, _executing, _http, _resources, _tasks, _waiting)
