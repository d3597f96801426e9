"""The engine for KubeVela's CUE templates, which runs the `cue` program."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path as FilePath
from typing import Any, Final

import msgspec

from polyver.core import PolyverError
from polyver.core.plain import ReadOnlyObject
from polyver.definitions.cue._patches import (
    CuePatcher,
    Path,
    Tags,
    UnificationQuery,
    patched_whole,
    tags_above,
    tags_of,
)
from polyver.definitions.cue._problems import ASKED, Names, problems_of
from polyver.definitions.cue._program import CueFailed, CueOutputCache, Printed, find_cue, run_cue
from polyver.definitions.rendering import TemplateDocument, TemplateInput, TemplateOutput
from polyver.kube.objects import encode_json

__all__ = ["SECONDS", "CueEngine"]

SECONDS: Final = 10.0
_PARTS: Final = {
    "Output": "output",
    "Outputs": "outputs",
    "Patch": "patch",
    "PatchOutputs": "patchOutputs",
    "Errs": "errs",
    "Processing": "processing",
}
"""Fields to query in a template, by the names that polyver gives them in the query.

The names differ from the field names, because a CUE field cannot refer to another field with its
own name.
"""
_LABEL: Final = re.compile(r'^(?:([A-Za-z$][\w$]*)[?!]?|"([^"]*)")[ \t]*:', re.MULTILINE)
_LOOP: Final = re.compile(r"\b(for\s+\w+(?:\s*,\s*\w+)?\s+in\s+(parameter(?:\.\w+)+))(?=\s)")
_OPTIONAL: Final = "cannot reference optional field"
_COMPREHENSION: Final = re.compile(r"^(?:if|for)\b", re.MULTILINE)


class CueEngine:
    """Renders `schematic.cue`."""

    def __init__(self, program: FilePath | None = None, *, seconds: float = SECONDS) -> None:
        """Create an engine.

        If `program` is None, the engine searches the program `cue` each time a template needs it.
        """
        self._program = program
        self._seconds = seconds
        self._kept = CueOutputCache()

    def render(self, schematic: ReadOnlyObject, given: TemplateInput) -> TemplateOutput:
        template = schematic.get("template")
        if not isinstance(template, str):
            fact = f"schematic.cue.template of {given.template} is not a string"
            raise PolyverError(fact, at=given.at)
        try:
            return _Rendering(self, template, given, self._seconds).documents()
        except CueFailed as error:
            fact = f"{given.template} cannot be rendered: {error.fact}"
            raise EngineFailed(fact, at=given.at, hint=error.hint) from None

    def run(self, *arguments: str, text: str, seconds: float) -> Printed:
        """Run the program, or return the cached result of a run with the same input."""
        program = self._program or find_cue()
        known = self._kept.get(str(program), *arguments, text)
        if known is not None:
            return known
        printed = run_cue(program, *arguments, text=text, seconds=seconds)
        self._kept.put(printed, str(program), *arguments, text)
        return printed


class EngineFailed(PolyverError):
    """The program `cue` failed, so a template was not rendered. A retry may succeed."""

    reason = "EngineFailed"


class _Rendering:
    """Renders one template with its input. This needs several runs of the program `cue`."""

    def __init__(self, cue: CueEngine, template: str, given: TemplateInput, seconds: float) -> None:
        self._cue = cue
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._template = template
        self._given = given
        self._text = _text(template, given)

    def documents(self) -> TemplateOutput:
        try:
            parts = self._parts()
        except PolyverError as error:
            text = _text(_LOOP.sub(r"if \2 != _|_ \1", self._template), self._given)
            if _OPTIONAL not in str(error) or text == self._text:
                raise
            # In KubeVela, a loop over a missing optional field has no iterations, and is no error.
            self._text = text
            parts = self._parts()
        if _has_more(self._template):
            self._run("vet", "-E", "-c=false")
        self._refuse(parts)
        output, outputs = parts.get("Output"), parts.get("Outputs") or {}
        return TemplateOutput(
            TemplateDocument(self._object(output, "output"), "output") if output else None,
            [*self._outputs(outputs)],
            self._patched(parts),
        )

    def _parts(self) -> dict[str, Any]:
        # A field that the template does not have is queried as `_` (any value). This value unifies
        # with a string.
        fields = [f'if ({name} & "") == _|_ {{{key}: {name}}}' for key, name in _PARTS.items()]
        names: dict[str, Path] = {key: (name,) for key, name in _PARTS.items()}
        return self._asked(
            ["Parameter: parameter", *fields], {"Parameter": ("parameter",), **names}
        )

    def _asked(self, fields: Iterable[str], names: Names) -> dict[str, Any]:
        """Add fields to the template, evaluate the template, and return the values of these fields.

        `names` has the path in the template for each field, for error messages.
        """
        lines = "\n".join(fields)
        out = self._run(
            *("export", "-E", "--out", "json", "-e", ASKED),
            more=f"{ASKED}: {{\n{lines}\n}}\n",
            names=names,
        )
        found: dict[str, Any] = msgspec.json.decode(out)
        return found

    def _run(self, *arguments: str, more: str = "", names: Names | None = None) -> bytes:
        left = self._end - time.monotonic()
        if left <= 0:
            raise CueFailed(f"cue did not finish within {self._seconds:g} s")
        text = f"{self._text}{more}"
        printed = self._cue.run(*arguments, "cue:", "-", text=text, seconds=left)
        if printed.code:
            lines = self._template.count("\n") + 1
            raise problems_of(printed.err, self._given, names=names or {}, lines=lines)
        return printed.out

    def _refuse(self, parts: ReadOnlyObject) -> None:
        """Raise an error if the template reports errors in `errs`, or has the field `processing`.

        polyver does not execute `processing`.
        """
        said = parts.get("Errs")
        if isinstance(said, list) and said:
            raise PolyverError("; ".join(map(str, said)), at=self._given.at)
        if "Processing" in parts:
            fact = f"{self._given.template} has `processing`, which is not executed"
            raise PolyverError(fact, at=self._given.at)

    def _outputs(self, outputs: Any) -> Iterator[TemplateDocument]:
        for name, output in self._object(outputs, "outputs").items():
            place = f"outputs.{name}"
            yield TemplateDocument(self._object(output, place), place, name)

    def _object(self, value: Any, place: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            fact = f"{place} of {self._given.template} is not an object"
            raise PolyverError(fact, at=self._given.at)
        return value

    def _patched(self, parts: ReadOnlyObject) -> dict[str, dict[str, Any]]:
        """Apply the patches of a trait to the objects of its component. Return the patched objects.

        The key of an object is its key under `outputs`, or empty for the main object.
        """
        context, found = self._given.context, {}
        if parts.get("Patch"):
            base = context.get("output")
            if base is None:
                fact = (
                    f"{self._given.template} patches the output of a component that has no output"
                )
                raise PolyverError(fact, at=self._given.at)
            found[""] = self._merged(base, parts["Patch"], ("patch",))
        others: ReadOnlyObject = context.get("outputs") or {}
        for name, patch in (parts.get("PatchOutputs") or {}).items():
            if name in others:
                found[name] = self._merged(others[name], patch, ("patchOutputs", name))
        return found

    def _merged(self, base: Any, patch: Any, at: tuple[str, ...]) -> dict[str, Any]:
        said = tags_above(self._template, "patch") if at == ("patch",) else {}
        try:
            whole = patched_whole(base, patch, said.get("patchStrategy", ""))
            return whole if whole is not None else self._unified(base, patch, at)
        except PolyverError as error:
            if error.at:
                raise
            where = f"{self._given.at}, {'.'.join(at)} of {self._given.template}"
            raise PolyverError(error.fact, at=where, hint=error.hint) from None

    def _unified(self, base: Any, patch: Any, at: Path) -> dict[str, Any]:
        merging = CuePatcher(self._tags(at))
        found: dict[str, Any] = merging.merge(base, patch)
        while merging.questions:
            answers = {**merging.answers, **self._answers(merging.questions, at)}
            merging = CuePatcher(merging.tags, answers)
            found = merging.merge(base, patch)
        return found

    def _tags(self, at: Path) -> Tags:
        if "+patch" not in self._template:
            return {}
        return tags_of(self._run("export", "-E", "--out", "cue", "-e", _selected(at)).decode())

    def _answers(self, questions: list[UnificationQuery], at: Path) -> dict[Path, object]:
        fields = [
            f"Q{number}: {each.expression(_selected((*at, *each.asked)))}"
            for number, each in enumerate(questions)
        ]
        names = {f"Q{number}": (*at, *each.path) for number, each in enumerate(questions)}
        found = self._asked(fields, names)
        return {each.path: found[f"Q{number}"] for number, each in enumerate(questions)}


def _text(template: str, given: TemplateInput) -> str:
    """Return a template with the parameters, the context and the fields to query added to it."""
    try:
        parameters, context = (
            encode_json(each).decode() for each in (given.parameters, given.context)
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise PolyverError(f"it cannot be written as JSON: {error}", at=given.properties) from None
    parts = "".join(f"{name}: _\n" for name in _PARTS.values())
    return f"{template}\nparameter: {parameters}\ncontext: {context}\n{parts}"


def _has_more(template: str) -> bool:
    """Report whether a template has top-level fields that polyver does not query.

    Such fields may still have errors, so they have to be checked separately.
    """
    known = {*_PARTS.values(), "parameter", "context"}
    labels = {one or other for one, other in _LABEL.findall(template)}
    return bool(labels - known) or bool(_COMPREHENSION.search(template))


def _selected(path: Path) -> str:
    """Convert a path to a CUE expression.

    >>> _selected(("patch", "spec", "ports", 0))
    'patch["spec"]["ports"][0]'
    """
    first, *rest = path
    return f"{first}{''.join(f'[{encode_json(each).decode()}]' for each in rest)}"
