"""What `polyver create` writes: where in a project, which text, and all of it or nothing."""

from polyver.cli._scaffold.planning import Api, plan
from polyver.cli._scaffold.project import read_project
from polyver.cli._scaffold.writing import File, write_all

__all__ = ["Api", "File", "plan", "read_project", "write_all"]
