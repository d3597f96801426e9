"""The built-in engine: Go templates, with a schema for their parameters."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from polyver.core import PolyverError
from polyver.core.plain import ReadOnlyObject
from polyver.definitions.publishing import parameters_of
from polyver.definitions.rendering._engines import TemplateDocument, TemplateInput, TemplateOutput
from polyver.definitions.rendering._parameters import InvalidParameters, Parameters
from polyver.kube.objects import InvalidManifest, encode_json, load_manifests
from polyver.languages.gotemplate import InvalidData, Template, TemplateError, compile_template
from polyver.languages.values.manifests import dotted

__all__ = ["GoTemplates"]

_KEPT: Final = 1024
"""Size of the cache of compiled templates; equal ones share an entry."""


class GoTemplates:
    """Renders `schematic.gotemplate` into any number of documents; the first is the main one."""

    def render(self, schematic: ReadOnlyObject, given: TemplateInput) -> TemplateOutput:
        parameters, template = _read(schematic, given)
        data = {"parameter": parameters.fit(given), "context": given.context}
        try:
            text = template.render(data)
        except InvalidData as error:
            raise PolyverError(error.fact, at=f"{given.at}, {error.at}", hint=error.hint) from None
        except TemplateError as error:
            raise _misplaced(error, given, parameters.known) from None
        made = [*_documents(text, given)]
        return TemplateOutput(made[0], made[1:]) if made else TemplateOutput()


def _read(schematic: ReadOnlyObject, given: TemplateInput) -> tuple[Parameters, Template]:
    """Return the compiled schema and template; equal ones are compiled once."""
    kinds = (("template", str, "string"), ("parameters", Mapping | None, "mapping"))
    for name, kind, word in kinds:
        if not isinstance(schematic.get(name), kind):
            fact = f"schematic.gotemplate.{name} of {given.template} is not a {word}"
            raise PolyverError(fact, at=given.at)
    try:
        return _compiled(encode_json(schematic), given.template)
    except TemplateError as error:
        raise _misplaced(error, given) from None
    except InvalidParameters as error:
        at = f"{given.at}, {error.at} of {given.template}"
        raise PolyverError(error.fact, at=at, hint=error.hint) from None


def _misplaced(
    error: TemplateError, given: TemplateInput, known: Collection[str] = ()
) -> PolyverError:
    absent = _ABSENT.match(error.fact)
    hint = error.hint
    if absent and absent[1] in known:
        asking = f'test it with `hasKey .parameter "{absent[1]}"`'
        hint = f"{absent[1]} is not set: {asking}, or give it a default"
    return PolyverError(error.fact, at=f"{given.at}, template of {error.at}", hint=hint)


_ABSENT: Final = re.compile(r'^\.parameter has no entry for key "(.*)"$')


@lru_cache(maxsize=_KEPT)
def _compiled(schematic: bytes, name: str) -> tuple[Parameters, Template]:
    block = msgspec.json.decode(schematic)
    schema = parameters_of({"schematic": {"gotemplate": block}})
    assert schema is not None
    return Parameters(schema), compile_template(block["template"], name=name)


def _documents(text: str, given: TemplateInput) -> Iterator[TemplateDocument]:
    try:
        found = load_manifests(text, f"output of {given.template}")
    except InvalidManifest as error:
        raise PolyverError(error.fact, at=f"{given.at}, {error.at}", hint=error.hint) from None
    for number, document in enumerate(found, 1):
        if not isinstance(document.value, dict):
            fact = f"document {number} is not an object"
            raise PolyverError(fact, at=f"{given.at}, {document.place()}")
        for path in _NEEDED:
            if not _text_at(document.value, path):
                fact = f"document {number} has no {dotted(path)}"
                raise PolyverError(fact, at=f"{given.at}, {document.place(*path)}")
        yield TemplateDocument(document.value, f"document {number}")


_NEEDED: Final = (("apiVersion",), ("kind",), ("metadata", "name"))


def _text_at(value: object, path: tuple[str, ...]) -> str:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""
