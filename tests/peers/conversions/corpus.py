"""The corpus: public kinds whose versions our rules convert, and the Go code of their projects.

Each file of `examples/corpus` has a Conversion and a CustomResourceDefinition; the file of the same
name in `examples/corpus/objects` has sample objects. `kinds.yaml` says where the Go code is, and
lists the differences that we know of. `record.py` records what the Go code returns for the objects.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from polyver.apis.checking import ConversionFinding
from polyver.apis.commands.kinds import load_kinds
from polyver.apis.conversion import Converter, build_converter, read_conversions
from polyver.apis.declaring import Kind
from polyver.apis.definition import Definition
from polyver.apis.manifests import definitions_of
from polyver.apis.trials import CheckedKind, check
from polyver.kube.objects import Document, load_manifests

HERE: Final = Path(__file__).parent
CORPUS: Final = HERE.parents[2] / "examples" / "corpus"
RECORDED: Final = HERE.parent / "recorded_conversions.json"

Object = dict[str, Any]


@dataclass(frozen=True)
class KnownDifference:
    """A field that Go and we convert to different values, and the reason."""

    path: str
    reason: str
    to: str = ""
    """The version of the object; empty for all versions."""
    object: str = ""
    """The name of the object; empty for all objects."""


@dataclass(frozen=True)
class CorpusKind:
    """One kind of the corpus."""

    name: str
    project: str
    differences: tuple[KnownDifference, ...] = ()
    program: str = ""
    """The Go program, in a folder beside this file, that calls the Go code; empty if none does."""
    module: str = ""
    folders: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    """Annotations in which the Go code keeps what it cannot convert."""
    edits: tuple[Mapping[str, Any], ...] = ()
    shuffled: str = ""
    """The field by which lists are compared that the Go code makes of maps, in a random order."""

    @property
    def path(self) -> Path:
        """The file: YAML with a Conversion, or Python with a kind."""
        python = CORPUS / f"{self.name}.py"
        return python if python.exists() else CORPUS / f"{self.name}.yaml"

    @property
    def is_python(self) -> bool:
        return self.path.suffix == ".py"

    @property
    def documents(self) -> Sequence[Document]:
        return load_manifests(self.path.read_text(), self.path.name)

    @property
    def declared(self) -> Kind:
        [kind] = load_kinds([str(self.path)])
        return kind

    @property
    def definition(self) -> Definition:
        if self.is_python:
            return self.declared.definition()
        [definition] = definitions_of(self.documents)
        return definition

    @property
    def conversion(self) -> Object:
        """The Conversion in the file."""
        found: Any = self.documents[0].value
        return dict(found)

    def converter(self) -> Converter:
        if self.is_python:
            converter = self.declared.converter
            assert converter is not None
            return converter
        [declared] = read_conversions(self.documents)
        return build_converter(declared, self.definition)

    def checked(self, *, examples: int) -> Sequence[ConversionFinding]:
        """Return the findings of `polyver check`."""
        versions = self.definition.versions
        schemas = {each.name: each.schema for each in versions if each.schema is not None}
        subject = CheckedKind(self.converter(), schemas, self.name)
        return check(subject, examples=examples, seed=1).findings

    @property
    def objects(self) -> list[Object]:
        text = (CORPUS / "objects" / f"{self.name}.yaml").read_text()
        found: list[Any] = [each.value for each in load_manifests(text, self.name)]
        return found

    @property
    def kind(self) -> str:
        return self.definition.kind

    @property
    def versions(self) -> list[str]:
        if self.is_python:
            return [each.name for each in self.definition.versions]
        found: list[str] = self.conversion["spec"]["versions"]
        return found


@cache
def corpus() -> tuple[CorpusKind, ...]:
    """Return all kinds of the corpus, in the order of their names."""
    [document] = load_manifests((HERE / "kinds.yaml").read_text(), "kinds.yaml")
    kinds: Any = document.value
    return tuple(_read(name, found) for name, found in sorted(kinds.items()))


def _read(name: str, found: Mapping[str, Any]) -> CorpusKind:
    differences = tuple(KnownDifference(**each) for each in found.get("differences", ()))
    known: dict[str, Any] = {
        key: tuple(found.get(key, ())) for key in ("folders", "annotations", "edits")
    }
    known |= {key: found.get(key, "") for key in ("project", "program", "module", "shuffled")}
    return CorpusKind(name, differences=differences, **known)


@dataclass(frozen=True)
class Walk:
    """An object, converted to a version, perhaps edited there, and converted back."""

    kind: str
    object: str
    to: str
    edit: int | None = None
    """The number of the edit in `CorpusKind.edits`; None for no edit."""


@dataclass
class Walked:
    """The objects of a walk: the object as converted, and as converted back."""

    view: Object
    back: Object = field(default_factory=dict)


def walks(kind: CorpusKind) -> Iterator[tuple[Walk, Object]]:
    """Yield all walks of a kind, each with its object."""
    for obj in kind.objects:
        name, source = obj["metadata"]["name"], version_of(obj)
        for to in kind.versions:
            if to != source:
                yield Walk(kind.name, name, to), obj
                for number, edit in enumerate(kind.edits):
                    if (edit["object"], edit["to"]) == (name, to):
                        yield Walk(kind.name, name, to, number), obj


def version_of(obj: Object) -> str:
    return str(obj["apiVersion"]).rpartition("/")[2]


def edited(view: Object, edit: Mapping[str, Any]) -> Object:
    """Return a copy of an object in which the fields of an edit have other values."""
    copy: Object = json.loads(json.dumps(view))
    for path, value in edit["set"].items():
        *steps, last = path.split("/")
        holder: Any = copy
        for step in steps:
            holder = holder[int(step)] if isinstance(holder, list) else holder.setdefault(step, {})
        holder[int(last) if isinstance(holder, list) else last] = value
    return copy


MISSING: Final = object()


@dataclass(frozen=True)
class Difference:
    """A field with different values in two objects; MISSING stands for no value."""

    path: str
    go: Any
    ours: Any


def differences(go: Any, ours: Any, path: str = "") -> Iterator[Difference]:
    """Yield the fields of an object of Go that differ from ours.

    Go writes the zero value of a field that it does not have: absent in our object, it is no
    difference. An object or list without content is no difference to an absent one either.
    """
    if isinstance(go, dict) and isinstance(ours, dict):
        for name in sorted({*go, *ours}):
            inside = f"{path}.{name}" if path else name
            yield from differences(go.get(name, MISSING), ours.get(name, MISSING), inside)
    elif reordered(go, ours):
        yield Difference(path, go, ours)
    elif isinstance(go, list) and isinstance(ours, list) and len(go) == len(ours):
        for one, other in zip(go, ours, strict=True):
            yield from differences(one, other, f"{path}[]")
    elif (ours is MISSING and is_zero(go)) or (go is MISSING and is_empty(ours)):
        return
    elif go != ours or isinstance(go, bool) is not isinstance(ours, bool):
        yield Difference(path, go, ours)


def reordered(go: Any, ours: Any) -> bool:
    """Report whether two lists have the same items in different orders."""
    if not isinstance(go, list) or not isinstance(ours, list):
        return False
    one, other = ([json.dumps(_set(item), sort_keys=True) for item in each] for each in (go, ours))
    return one != other and sorted(one) == sorted(other)


def _set(value: Any) -> Any:
    """Return a value without the fields that are not set."""
    if isinstance(value, dict):
        return {name: _set(each) for name, each in value.items() if not is_zero(each)}
    return [_set(each) for each in value] if isinstance(value, list) else value


def is_zero(value: Any) -> bool:
    """Report whether a value is what Go writes for a field that was never set."""
    if isinstance(value, dict):
        return all(map(is_zero, value.values()))
    return value in (None, "", 0, [], False)


def is_empty(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(is_empty, value.values()))
    return value is None or value == []


def visible(obj: Object, hidden: Sequence[str]) -> Object:
    """Return an object without the annotations in which conversions keep what is lost."""
    metadata = dict(obj.get("metadata") or {})
    annotations = metadata.get("annotations") or {}
    metadata["annotations"] = {k: v for k, v in annotations.items() if k not in hidden}
    metadata.pop("creationTimestamp", None)
    return {**obj, "metadata": metadata}


def sorted_lists(value: Any, key: str) -> Any:
    """Return an object in which each list of objects with a field is in the order of this field."""
    if isinstance(value, dict):
        return {name: sorted_lists(each, key) for name, each in value.items()}
    if not isinstance(value, list):
        return value
    items = [sorted_lists(each, key) for each in value]
    keyed = key and all(isinstance(each, dict) and key in each for each in items)
    return sorted(items, key=lambda each: str(each[key])) if keyed else items
