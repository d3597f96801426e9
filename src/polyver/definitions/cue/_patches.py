"""Patches that traits apply to objects of their component, with KubeVela's patch strategies.

If the object lacks a field of the patch, the field is added. If both have the field with the same
value, it stays unchanged. If the values differ, the value in the patch may be only a default, or a
list that allows more items. The program `cue` then has to unify the expression in the patch with
the value in the object.

KubeVela reads the strategies of a patch from comments (tags) above its fields. `cue export --out
cue` prints these comments together with the evaluated data, which has fields, lists and values, but
no expressions. So the parser of tags in this module does not parse expressions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from polyver.core import PolyverError
from polyver.kube.objects import apply_json_patch, apply_merge_patch, encode_json
from polyver.languages.values.manifests import dotted

__all__ = [
    "CuePatcher",
    "Path",
    "Tags",
    "UnificationQuery",
    "patched_whole",
    "tags_above",
    "tags_of",
]

Path = tuple[str | int, ...]
Tags = Mapping[Path, Mapping[str, str]]
"""Tags of the fields of a patch, by the paths of the fields."""
_KEY: Final = "patchKey"
_STRATEGY: Final = "patchStrategy"
_NOTHING: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class UnificationQuery:
    """A query that unifies the patch's value at a path with the object's value at that path."""

    path: Path
    """Path in the patch."""
    literal: str
    """The object's value, as a CUE expression."""
    beyond: int | None = None
    """The length of the object's list, if `path` is an item that only the object's list has.

    Otherwise None.
    """
    fits: bool = False
    """True to query only whether the two values can be unified, and not the unified value."""

    def expression(self, selected: str) -> str:
        """Convert the query to a CUE expression.

        `selected` is the CUE expression for the patch's value at `asked`.
        """
        if self.beyond is not None:
            selected = f"({selected} & {_anything(self.beyond)})[{self.path[-1]}]"
        both = f"{selected} & {self.literal}"
        return f"({both}) != _|_" if self.fits else both

    @property
    def asked(self) -> Path:
        """The path that the query reads in the patch: `path`, or the path of its list.

        It is the path of the list if `beyond` is set.
        """
        return self.path[:-1] if self.beyond is not None else self.path


def _anything(items: int) -> str:
    """Return a CUE expression for an open list with at least this many items."""
    return f"[{'_, ' * items}...]"


def patched_whole(base: dict[str, Any], patch: Any, strategy: str) -> dict[str, Any] | None:
    """Apply a JSON patch or a JSON merge patch to the object `base`, and return the result.

    Return None if `strategy` is another strategy.
    """
    match strategy:
        case "jsonMergePatch":
            merged = apply_merge_patch(base, patch)
        case "jsonPatch":
            merged = apply_json_patch(base, (patch or {}).get("operations") or [])
        case _:
            return None
    if not isinstance(merged, dict):
        raise PolyverError("the result of the patch is not an object")
    return merged


@dataclass(slots=True)
class CuePatcher:
    """Merges one patch into an object.

    If `questions` is not empty after the merge, the merge was not complete. The caller then runs
    `cue` to answer these queries, and merges again with the answers.
    """

    tags: Tags
    answers: Mapping[Path, object] = field(default_factory=dict)
    """Answers of `cue` to earlier queries, by their paths in the patch."""
    questions: list[UnificationQuery] = field(default_factory=list)

    def merge(self, base: Any, patch: Any) -> Any:
        return self._value(base, patch, (), "")

    def _value(self, base: Any, patch: Any, path: Path, key: str) -> Any:
        if isinstance(base, dict) and isinstance(patch, dict):
            return self._fields(base, patch, path, key)
        if isinstance(base, list) and isinstance(patch, list):
            return self._items(base, patch, path)
        if type(base) is type(patch) and base == patch:
            return base
        return self._asked(base, path)

    def _asked(self, base: Any, path: Path, beyond: int | None = None) -> Any:
        if path in self.answers:
            return self.answers[path]
        self.questions.append(UnificationQuery(path, encode_json(base).decode(), beyond))
        return base

    def _fields(
        self, base: dict[str, Any], patch: dict[str, Any], path: Path, key: str
    ) -> dict[str, Any]:
        merged = dict(base)
        for name, value in patch.items():
            here = (*path, name)
            said = self.tags.get(here, _NOTHING)
            inner = said.get(_KEY, key)
            strategy = said.get(_STRATEGY, "")
            if name not in base:
                merged[name] = value
            elif isinstance(value, list) and isinstance(base[name], list):
                merged[name] = self._list(base[name], value, here, inner, strategy)
            elif strategy == "retainKeys":
                merged[name] = value
            else:
                merged[name] = self._value(base[name], value, here, inner)
        return merged

    def _list(self, base: list[Any], patch: list[Any], path: Path, key: str, strategy: str) -> Any:
        if strategy == "replace":
            return patch
        keys = [each.split(".") for each in key.split(",") if each]
        if keys and not patch and not (base and self._is_open(len(base), path)):
            return base
        if any(_keyed(each, keys) for each in patch):
            return self._keyed(base, patch, path, _Keys(keys, key, retain=strategy == "retainKeys"))
        return self._items(base, patch, path, key)

    def _is_open(self, items: int, path: Path) -> bool | None:
        """Report whether a list in the patch is open, which means that it allows more items.

        Return None if `cue` has not answered this query yet.
        """
        if path in self.answers:
            return bool(self.answers[path])
        self.questions.append(UnificationQuery(path, _anything(items), fits=True))
        return None

    def _items(self, base: list[Any], patch: list[Any], path: Path, key: str = "") -> Any:
        """Merge two lists item by item, and append the items that only one of the lists has."""
        merged = [
            self._value(mine, theirs, (*path, number), key)
            for number, (mine, theirs) in enumerate(zip(base, patch, strict=False))
        ]
        beyond = self._beyond(base, len(patch), path) if len(patch) < len(base) else []
        return [*merged, *beyond, *patch[len(base) :]]

    def _beyond(self, base: list[Any], known: int, path: Path) -> list[Any]:
        """Return the items of the object's list after the first `known` items.

        The list in the patch does not have these items. Raise an error if that list is closed.
        """
        is_open = self._is_open(len(base), path)
        if is_open is False:
            fact = f"patch.{dotted(path)} has {known} of the {len(base)} items of the object"
            hint = (
                "end it with `...`, or add `// +patchKey=` or `// +patchStrategy=replace` above it"
            )
            raise PolyverError(fact, hint=hint)
        rest = enumerate(base[known:], known)
        if is_open is None:
            return [mine for _, mine in rest]
        return [self._asked(mine, (*path, number), beyond=len(base)) for number, mine in rest]

    def _keyed(self, base: list[Any], patch: list[Any], path: Path, keys: _Keys) -> list[Any]:
        """Merge two lists by key.

        Items of both lists with equal keys are merged. All other items of both lists are kept.
        """
        places: dict[tuple[str, object], int] = {}
        for number, item in enumerate(patch):
            names = _keyed(item, keys.paths)
            if not names:
                fact = f"an item of patch.{dotted(path)} has no {keys.text}"
                raise PolyverError(fact, hint="items are merged by this field")
            places |= dict.fromkeys(names, number)
        merged, used = [], set()
        for item in base:
            found = next((places[n] for n in _keyed(item, keys.paths) if n in places), None)
            if found is None or found in used:
                merged.append(item)
                continue
            used.add(found)
            theirs = patch[found]
            inner = (*path, found)
            merged.append(theirs if keys.retain else self._value(item, theirs, inner, keys.text))
        rest = dict.fromkeys(places.values())
        return [*merged, *(patch[number] for number in rest if number not in used)]


@dataclass(frozen=True, slots=True)
class _Keys:
    """The fields by which the items of a list are merged."""

    paths: list[list[str]]
    text: str
    retain: bool


def _keyed(item: Any, keys: list[list[str]]) -> list[tuple[str, object]]:
    """Return the key fields that an item has, as pairs of dotted path and value."""
    found: list[tuple[str, object]] = []
    for steps in keys:
        value = item
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, str | int | float):
            found.append((".".join(steps), value))
    return found


# Strategies in comments.

_WORDS: Final = re.compile(
    r"""
      //[^\n]*
    | (?P<raw>\#*)(?P<quote>\"{3}|'{3}|"|')
        (?:\\(?P=raw).|(?!(?P=quote)(?P=raw)).)*
      (?P=quote)(?P=raw)
    | [{}\[\]:,]
    | [^\s{}\[\]:,"'\#/]+
    """,
    re.VERBOSE | re.DOTALL,
)
_TAG: Final = re.compile(r"^//\s*\+([\w-]+)\s*=\s*(\S+)\s*$")
_ABOVE: Final = r"((?:^[ \t]*//[^\n]*\n)+){name}[ \t]*:"


def tags_above(template: str, name: str) -> dict[str, str]:
    r"""Return the tags in the comments above each occurrence of a top-level field of a template.

    >>> tags_above("// +patchStrategy=jsonPatch\npatch: operations: []", "patch")
    {'patchStrategy': 'jsonPatch'}
    """
    found: dict[str, str] = {}
    for above in re.findall(_ABOVE.format(name=re.escape(name)), template, re.MULTILINE):
        for line in above.splitlines():
            found |= _tag(line.strip())
    return found


def tags_of(exported: str) -> Tags:
    """Return the tags of the fields in exported data.

    >>> tags_of('a: {\\n\\t// +patchKey=name\\n\\tb: [{c: 1}]\\n}')
    {('a', 'b'): {'patchKey': 'name'}}
    """
    return _Reader(exported).read()


def _tag(comment: str) -> dict[str, str]:
    found = _TAG.match(comment)
    return {found[1]: found[2]} if found else {}


class _Reader:
    """Reads exported CUE data, and collects the tags above each field."""

    def __init__(self, text: str) -> None:
        self._words = [found[0] for found in _WORDS.finditer(text)]
        self._at = 0
        self._found: dict[Path, dict[str, str]] = {}

    def read(self) -> Tags:
        self._fields(())
        return self._found

    def _word(self, ahead: int = 0) -> str:
        """Return the next word without consuming it. Return "" after the last word."""
        at = self._at + ahead
        return self._words[at] if at < len(self._words) else ""

    def _fields(self, path: Path) -> None:
        said: dict[str, str] = {}
        while (word := self._word()) not in ("}", ""):
            if word.startswith("//"):
                said |= _tag(word)
            elif self._word(1) == ":":
                self._field(path, said)
                said = {}
                continue
            self._at += 1

    def _field(self, path: Path, said: dict[str, str]) -> None:
        here = (*path, _label(self._word()))
        if said:
            self._found.setdefault(here, {}).update(said)
        self._at += 2
        self._value(here)

    def _value(self, path: Path) -> None:
        opened = self._word()
        if self._word(1) == ":":  # a single field, as in `a: b: 1`
            self._field(path, {})
            return
        self._at += 1
        if opened == "{":
            self._fields(path)
            self._at += 1
        elif opened == "[":
            self._items(path)
            self._at += 1

    def _items(self, path: Path) -> None:
        number = 0
        while (word := self._word()) not in ("]", ""):
            if word == "," or word.startswith("//"):
                self._at += 1
                continue
            self._value((*path, number))
            number += 1


def _label(word: str) -> str:
    label: str = json.loads(word) if word.startswith('"') else word
    return label
