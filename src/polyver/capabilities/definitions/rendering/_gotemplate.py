"""The engine that is built in: templates in Go's language, with a schema for their parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from polyver.capabilities.definitions.publishing import parameters_of
from polyver.capabilities.definitions.rendering._engines import Document, Documents, Given
from polyver.capabilities.definitions.rendering._parameters import Parameters
from polyver.core import PolyverError
from polyver.objects import InvalidManifest, encode_json, load_manifests
from polyver.objects.gotemplate import Template, TemplateError, compile_template
from polyver.objects.manifests import dotted

__all__ = ["GoTemplates"]

Object = Mapping[str, Any]
_KEPT: Final = 1024
"""How many compiled templates are kept; they are taken for one another if they are equal."""


class GoTemplates:
    """Renders `schematic.gotemplate`."""

    def render(self, schematic: Object, given: Given) -> Documents:
        try:
            parameters, template = _compiled(encode_json(schematic), given.template)
            data = {"parameter": parameters.fit(given), "context": given.context}
            text = template.render(data)
        except TemplateError as error:
            at = f"{given.at}, template of {error.at}"
            raise PolyverError(error.fact, at=at, hint=error.hint) from None
        made = [*_documents(text, given)]
        if not made:
            fact = f"{given.template} renders no document"
            raise PolyverError(fact, at=given.at)
        return Documents(made[0], made[1:])


@lru_cache(maxsize=_KEPT)
def _compiled(schematic: bytes, name: str) -> tuple[Parameters, Template]:
    block = msgspec.json.decode(schematic)
    schema = parameters_of({"schematic": {"gotemplate": block}})
    assert schema is not None
    return Parameters(schema), compile_template(block["template"], name=name)


def _documents(text: str, given: Given) -> Iterator[Document]:
    try:
        found = load_manifests(text, f"output of {given.template}")
    except InvalidManifest as error:
        raise PolyverError(error.fact, at=f"{given.at}, {error.at}", hint=error.hint) from None
    for number, document in enumerate(found, 1):
        if not isinstance(document.value, dict):
            fact = f"document {number} is no object"
            raise PolyverError(fact, at=f"{given.at}, {document.place()}")
        for path in _NEEDED:
            if not _text_at(document.value, path):
                fact = f"document {number} has no {dotted(path)}"
                raise PolyverError(fact, at=f"{given.at}, {document.place(*path)}")
        yield Document(document.value, f"document {number}")


_NEEDED: Final = (("apiVersion",), ("kind",), ("metadata", "name"))


def _text_at(value: object, path: tuple[str, ...]) -> str:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""
