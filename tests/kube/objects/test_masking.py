"""Values of Secrets in messages: masked in every form in which they are usually quoted."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.kube.objects.masking import Masks, is_masked

VALUES = st.text(st.characters(codec="utf-8"), min_size=4, max_size=40)
AROUND = st.text("xyz ", max_size=5)
FORMS: dict[str, Any] = {
    "as it is": str,
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base64 without padding": lambda value: base64.b64encode(value.encode()).decode().rstrip("="),
    "URL": quote,
    "URL path": lambda value: quote(value, safe=""),
    "form": quote_plus,
    "repr": lambda value: repr([value]),
    "JSON": lambda value: json.dumps(value, ensure_ascii=False),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@given(VALUES, AROUND, AROUND)
def test_no_form_of_a_value_is_left_in_a_text(form: Any, value: str, left: str, right: str) -> None:
    masks = Masks()
    masks.add(value)
    shown = masks.mask(f"{left}{form(value)}{right}")
    assert "***" in shown
    assert len(shown) <= len(left) + len(right) + len("['***']")


@given(st.text("ab", max_size=3), st.text("ab"))
def test_short_values_are_left_alone(value: str, text: str) -> None:
    masks = Masks()
    masks.add(value)
    assert masks.mask(text) == text
    assert not masks


def test_what_a_secret_holds_is_masked_with_its_lines_and_the_strings_in_its_json() -> None:
    data = {
        "key": b"-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF\n-----END KEY-----\n",
        "config.json": b'{"auths": {"registry.example": {"password": "pa55"}}}',
        "binary": b"\xff\xfe\x00\x01\x02",
        "token": b"tok-123\n",
    }
    encoded = {name: base64.b64encode(each).decode() for name, each in data.items()}
    noted = json.dumps({"stringData": {"old": "the old one"}})
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": noted}
    masks = Masks()
    masks.add_secret({"data": encoded, "metadata": {"annotations": annotations}})
    text = f"kqhkiG9w0BAQEF pa55 {encoded['binary']} tok-123 the old one"
    assert masks.mask(text) == "*** *** *** *** ***"
    assert masks.mask_all({"a": ["tok-123", 5, None]}) == {"a": ["***", 5, None]}
    assert masks.is_in({"tok-123": 1})
    assert is_masked({"a": [masks.mask("x tok-123")]})
    other = Masks()
    for each in masks.values:
        other.add(each)
    assert other.mask(text) == masks.mask(text)
