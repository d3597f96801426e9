"""Opens the SQLite file of a store: locks the folder, checks the file, creates the tables.

polyver writes nothing to a file that is damaged, to a file of another program, or to a file that a
newer version of polyver wrote. So the content of such a file can still be recovered.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import closing
from pathlib import Path
from typing import IO

import apsw

from polyver.kube.store.interface import StoreDamaged, StoreFailed, StoreLocked, StoreMissing

__all__ = ["lock_folder", "open_database", "prepare_file"]

FORMAT = 1
"""The version of the tables below. The file contains it as its `user_version`."""
_MODE = 0o600
_MOST_PROBLEMS = 5
_REPAIR = (
    "nothing was changed; restore the folder from a backup, or copy the file and run "
    "`sqlite3 COPY .recover` to extract what can be read"
)

_SCHEMA = """
create table log (
    revision integer primary key,
    key text not null,
    value blob not null,
    created integer not null,
    deleted integer not null
);
create unique index log_by_key on log (key, revision);
create table current (key text primary key, revision integer not null) without rowid;
create table facts (name text primary key, value integer not null) without rowid;
insert into facts values ('newest', 0), ('compacted', 0), ('cleaned', 0);
"""
_TABLES = {"log", "current", "facts"}
_LOST = """
select one.key from current as one left join log on log.revision = one.revision
where log.revision is null limit 5
"""
_AHEAD = """
select max(revision) from log
having max(revision) > (select value from facts where name = 'newest')
"""


def lock_folder(folder: Path) -> IO[bytes]:
    """Lock a folder for this process; return the open lock file.

    If it is locked, raise `StoreLocked`. The lock ends when the lock file is closed or the process
    ends.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = (folder / "lock").open("ab")
    except OSError as error:
        at = error.filename or folder
        raise StoreFailed(f"{at} cannot be opened: {error.strerror}") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise StoreLocked(
            f"{folder} is in use by another process",
            hint="stop the other process, or choose another folder",
        ) from None
    return file


def prepare_file(path: Path, *, new: bool, verify: bool) -> None:
    """Check that a file is an intact store, and let only its owner read the file.

    With `new`, an empty store is created if the file is missing. With `verify`, the indexes are
    compared with the tables, which takes several times as long as the other checks.
    """
    missing = StoreMissing(f"{path} is missing or empty")
    if not path.exists() and not new:
        raise missing
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, _MODE))
        for each in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
            if each.exists():
                each.chmod(_MODE)
    except OSError as error:
        raise StoreFailed(f"{path} cannot be opened: {error.strerror or error}") from None
    with closing(open_database(path)) as database:
        try:
            version = _version(database, path)
            if not version and not new:
                raise missing
            if not version:
                _create(database)
            _check(database, path, verify=verify)
            database.execute("insert or ignore into facts values ('cleaned', 0)")
        except apsw.Error as error:
            raise _unusable(path, error) from None


def open_database(path: Path) -> apsw.Connection:
    """Open the SQLite file of a store; return the connection to the database."""
    try:
        database = apsw.Connection(str(path))
        database.set_busy_timeout(10_000)
        database.execute("pragma journal_mode = wal")
        # With a write-ahead log (WAL), any weaker setting may lose writes after a power failure.
        database.execute("pragma synchronous = full")
    except apsw.Error as error:
        raise _unusable(path, error) from None
    return database


def _unusable(path: Path, error: apsw.Error) -> StoreFailed:
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return StoreDamaged(f"{path} is damaged: {error}", hint=_REPAIR)
    return StoreFailed(f"{path} cannot be opened: {error}")


def _version(database: apsw.Connection, path: Path) -> int:
    """Read the format version of a store; return 0 for an empty file."""
    [[version]] = database.execute("pragma user_version")
    tables = {name for (name,) in database.execute("select name from sqlite_schema")}
    if version == 0 and tables:
        hint = "choose another folder with --data"
        raise StoreFailed(f"{path} is not a polyver store", hint=hint)
    if version not in (0, FORMAT):
        raise StoreFailed(
            f"{path} has format {version}, and this polyver supports {FORMAT}",
            hint="start the version of polyver that wrote the file, or a newer version",
        )
    if version and not tables >= _TABLES:
        lost = ", ".join(sorted(_TABLES - tables))
        raise StoreDamaged(f"{path} is damaged: it has no table {lost}", hint=_REPAIR)
    return int(version)


def _create(database: apsw.Connection) -> None:
    with database:
        database.execute(_SCHEMA)
        database.execute(f"pragma user_version = {FORMAT}")


def _check(database: apsw.Connection, path: Path, *, verify: bool) -> None:
    check = "integrity_check" if verify else "quick_check"
    found = [str(row[0]) for row in database.execute(f"pragma {check}({_MOST_PROBLEMS})")]
    problems = [] if found == ["ok"] else found
    if not problems:
        lost = [key for (key,) in database.execute(_LOST)]
        problems += [f"the content of {key} is missing" for key in lost]
        ahead = [revision for (revision,) in database.execute(_AHEAD)]
        problems += [f"revision {each} was never acknowledged" for each in ahead]
    if problems:
        text = "; ".join(
            " ".join(each.removeprefix("*** in database main ***").split()) for each in problems
        )
        raise StoreDamaged(f"{path} is damaged: {text}", hint=_REPAIR)
