"""Scaffolding for `polyver create`: plan the files of a project, then write all files or none."""

from polyver.apis.commands.scaffold.plan import NewApi, plan
from polyver.apis.commands.scaffold.project import read_project
from polyver.cli.file_writes import File, write_all

__all__ = ["File", "NewApi", "plan", "read_project", "write_all"]
