"""The functions that come with polyver, registered as anybody's are, with their catalogue."""

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

# Imported for what they register.
_MODULES = (_commands, _executing, _http, _resources, _tasks, _waiting)
