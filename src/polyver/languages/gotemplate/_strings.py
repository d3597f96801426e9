"""Template functions for strings. As in Go, positions and lengths count bytes of UTF-8."""

from __future__ import annotations

import hashlib
import re
import zlib

from polyver.languages.gotemplate._budget import RenderBudget
from polyver.languages.gotemplate._cases import SPACES, lower, title, upper
from polyver.languages.gotemplate._functions import FunctionTable
from polyver.languages.gotemplate._printing import printed, quoted_text
from polyver.languages.gotemplate._values import Strings, TemplateFailure, Texts, decoded, encoded

__all__ = ["TEXTS", "to_text", "to_texts"]

TEXTS = FunctionTable("texts")


def to_text(budget: RenderBudget, value: object) -> str:
    """Convert any value to a string, as sprig's functions for strings do."""
    return printed(value, budget)


def to_texts(budget: RenderBudget, value: object) -> Strings:
    """Convert any value to a list of strings, without nil items."""
    if not isinstance(value, list):
        return Strings() if value is None else Strings([to_text(budget, value)])
    return Strings([to_text(budget, each) for each in value if each is not None])


TEXTS.put("hello", "", lambda: "Hello!")
TEXTS.put("trim", "string", lambda text: text.strip(SPACES))
TEXTS.put(
    "trimAll trimall", "string string", lambda chars, text: text.strip(chars) if chars else text
)
TEXTS.put("trimSuffix", "string string", lambda part, text: text.removesuffix(part))
TEXTS.put("trimPrefix", "string string", lambda part, text: text.removeprefix(part))
TEXTS.put("upper", "string", upper)
TEXTS.put("lower", "string", lower)
TEXTS.put("title", "string", title)
TEXTS.put("contains", "string string", lambda part, text: part in text)
TEXTS.put("hasPrefix", "string string", lambda part, text: text.startswith(part))
TEXTS.put("hasSuffix", "string string", lambda part, text: text.endswith(part))
TEXTS.put("plural", "string string int", lambda one, many, count: one if count == 1 else many)
TEXTS.put("sha1sum", "string", lambda text: hashlib.sha1(encoded(text)).hexdigest())  # noqa: S324 - a name, not a secret
TEXTS.put("sha256sum", "string", lambda text: hashlib.sha256(encoded(text)).hexdigest())
TEXTS.put("sha512sum", "string", lambda text: hashlib.sha512(encoded(text)).hexdigest())
TEXTS.put("adler32sum", "string", lambda text: str(zlib.adler32(encoded(text))))
TEXTS.add("toString", "any", budgeted=True)(to_text)
TEXTS.add("toStrings", "any", budgeted=True)(to_texts)


@TEXTS.add("repeat", "int string", budgeted=True)
def _repeat(budget: RenderBudget, count: int, text: str) -> str:
    if count < 0:
        raise TemplateFailure("strings: negative Repeat count")
    budget.hold(len(text) * int(count))
    return text * int(count)


@TEXTS.add("replace", "string string string", budgeted=True)
def _replace(budget: RenderBudget, old: str, new: str, text: str) -> str:
    count = text.count(old)
    budget.hold(len(text) + count * len(new))
    return text.replace(old, new)


@TEXTS.add("quote", "any...", budgeted=True)
def _quote(budget: RenderBudget, *values: object) -> str:
    given = (value for value in values if value is not None)
    return budget.joined(" ", (quoted_text(to_text(budget, value)) for value in given))


@TEXTS.add("squote", "any...", budgeted=True)
def _squote(budget: RenderBudget, *values: object) -> str:
    given = (value for value in values if value is not None)
    return budget.joined(" ", (f"'{printed(value, budget)}'" for value in given))


@TEXTS.add("cat", "any...", budgeted=True)
def _cat(budget: RenderBudget, *values: object) -> str:
    return budget.joined(" ", (printed(value, budget) for value in values if value is not None))


@TEXTS.add("indent", "int string", budgeted=True)
def _indent(budget: RenderBudget, count: int, text: str) -> str:
    if count < 0:
        raise TemplateFailure("strings: negative Repeat count")
    budget.hold(len(text) + (text.count("\n") + 1) * int(count))
    pad = " " * int(count)
    return pad + text.replace("\n", f"\n{pad}")


@TEXTS.add("nindent", "int string", budgeted=True)
def _nindent(budget: RenderBudget, count: int, text: str) -> str:
    return f"\n{_indent(budget, count, text)}"


# Substrings


@TEXTS.add("trunc", "int string")
def _trunc(count: int, text: str) -> str:
    content = encoded(text)
    if count < 0 < len(content) + count:
        return decoded(content[count:])
    return decoded(content[:count]) if count >= 0 else text


@TEXTS.add("substr", "int int string")
def _substr(start: int, end: int, text: str) -> str:
    content = encoded(text)
    if start >= 0 and (end < 0 or end > len(content)):
        end = len(content)
    if not 0 <= max(start, 0) <= end <= len(content):
        raise TemplateFailure(f"slice bounds out of range [{max(start, 0)}:{end}]")
    return decoded(content[max(start, 0) : end])


@TEXTS.add("abbrev", "int string")
def _abbrev(width: int, text: str) -> str:
    return _abbreviated(text, 0, width) if width >= 4 else text


@TEXTS.add("abbrevboth", "int int string")
def _abbrevboth(left: int, right: int, text: str) -> str:
    if right < 4 or (left > 0 and right < 7):
        return text
    return _abbreviated(text, left, right)


def _abbreviated(text: str, offset: int, width: int) -> str:
    content = encoded(text)
    if len(content) <= width:
        return text
    offset = min(offset, len(content))
    if len(content) - offset < width - 3:
        offset = len(content) - (width - 3)
    if offset <= 4:
        return decoded(content[: width - 3]) + "..."
    if width < 7:
        return ""
    if offset + width - 3 < len(content):
        return "..." + _abbreviated(decoded(content[offset:]), 0, width - 3)
    return "..." + decoded(content[len(content) - (width - 3) :])


@TEXTS.add("split", "string string", budgeted=True)
def _split(budget: RenderBudget, between: str, text: str) -> Texts:
    return _numbered(_parts(budget, between, text))


@TEXTS.add("splitn", "string int string", budgeted=True)
def _splitn(budget: RenderBudget, between: str, count: int, text: str) -> Texts:
    return _numbered(_parts(budget, between, text, count))


@TEXTS.add("splitList", "string string", budgeted=True)
def _split_list(budget: RenderBudget, between: str, text: str) -> Strings:
    return Strings(_parts(budget, between, text))


def _parts(budget: RenderBudget, between: str, text: str, most: int = -1) -> list[str]:
    if most == 0:
        return []
    budget.spend(text.count(between))
    if between:
        return text.split(between, most - 1 if most > 0 else -1)
    if most < 0 or most >= len(text):
        return list(text)
    return [*text[: most - 1], text[most - 1 :]]


def _numbered(parts: list[str]) -> Texts:
    return Texts((f"_{index}", part) for index, part in enumerate(parts))


@TEXTS.add("join", "string any", budgeted=True)
def _join(budget: RenderBudget, between: str, values: object) -> str:
    return budget.joined(between, to_texts(budget, values))


@TEXTS.add("sortAlpha", "any", budgeted=True)
def _sorted(budget: RenderBudget, values: object) -> Strings:
    if not isinstance(values, list):
        return Strings([to_text(budget, values)])
    return Strings(sorted(to_texts(budget, values), key=encoded))


# Lines


@TEXTS.add("wrap", "int string")
def _wrap(width: int, text: str) -> str:
    return _wrapped(text, width, "\n", breaks=False)


@TEXTS.add("wrapWith", "int string string", budgeted=True)
def _wrap_with(budget: RenderBudget, width: int, between: str, text: str) -> str:
    budget.hold(len(text) * (len(between) + 1))
    return _wrapped(text, width, between or "\n", breaks=True)


def _wrapped(text: str, width: int, between: str, *, breaks: bool) -> str:
    content, parts, at = encoded(text), [], 0
    width = max(int(width), 1)
    while len(content) - at > width:
        if content[at] == 0x20:
            at += 1
            continue
        space = content.rfind(b" ", at, at + width + 1)
        if space >= 0:
            end, after = space, space + 1
        elif breaks:
            end = after = at + width
        else:
            space = content.find(b" ", at + width)
            if space < 0:
                break
            end, after = space, space + 1
        parts.append(content[at:end])
        at = after
    parts.append(content[at:])
    return decoded(encoded(between).join(parts))


_WHITE = re.compile(b"[\t-\r \x85\xa0]")


@TEXTS.add("nospace", "string")
def _nospace(text: str) -> str:
    """Remove white space from a string byte by byte, as sprig does.

    Characters that are not ASCII consist of several bytes, so they may be damaged.
    """
    content = encoded(text)
    if not _WHITE.search(content):
        return text
    return _WHITE.sub(b"", content).decode("latin-1")


@TEXTS.add("initials", "string")
def _initials(text: str) -> str:
    found, gap = [], True
    for byte in encoded(text):
        white = _WHITE.match(bytes([byte])) is not None
        if not white and gap:
            found.append(chr(byte))
        gap = white
    return "".join(found)
