"""Writes values as Go does: with `%v`, in quotes, and with one verb of `printf`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from polyver.languages.gotemplate._budget import RenderBudget
from polyver.languages.gotemplate._times import time_text
from polyver.languages.gotemplate._values import Byte, Version, Wide, encoded
from polyver.languages.values.strings import ESCAPES, number_text

__all__ = [
    "FormatSpec",
    "float_text",
    "is_printable",
    "print_all",
    "print_lines",
    "printed",
    "quoted_char",
    "quoted_text",
    "written_float",
    "written_int",
    "written_text",
]


def is_printable(char: str) -> bool:
    """Report whether Go prints a character without escaping it."""
    return char.isprintable() and not 0xD800 <= ord(char) < 0xE000


def quoted_text(text: str, *, ascii_only: bool = False) -> str:
    r"""Write a string in double quotes, with Go's escapes.

    >>> print(quoted_text('a"\n\x00ä'), quoted_text("ä", ascii_only=True))
    "a\"\n\x00ä" "\u00e4"
    """
    return f'"{"".join(_escaped(char, chr(34), ascii_only) for char in text)}"'


def quoted_char(code: int, *, ascii_only: bool = False) -> str:
    """Write the character of a code point in single quotes, with Go's escapes."""
    char = chr(code) if 0 <= code <= 0x10FFFF and not 0xD800 <= code < 0xE000 else "\ufffd"
    return f"'{_escaped(char, chr(39), ascii_only)}'"


def _escaped(char: str, mark: str, ascii_only: bool) -> str:
    if char in (mark, "\\"):
        return f"\\{char}"
    if char in ESCAPES and char != '"':
        return ESCAPES[char]
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if is_printable(char) and (code < 0x80 or not ascii_only):
        return char
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def printed(value: object, budget: RenderBudget, depth: int = 0) -> str:
    """Write a value in the form of `%v`.

    >>> from polyver.languages.gotemplate._budget import RenderLimits
    >>> printed({"b": [1.5, None], "a": True}, RenderBudget(RenderLimits()))
    'map[a:true b:[1.5 <nil>]]'
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        budget.dive(depth)
        return f"[{budget.joined(' ', (printed(each, budget, depth + 1) for each in value))}]"
    if isinstance(value, dict):
        budget.dive(depth)
        pairs = (f"{key}:{printed(value[key], budget, depth + 1)}" for key in sorted(value))
        return f"map[{budget.joined(' ', pairs)}]"
    return _plain(value)


def _plain(value: object) -> str:
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case float():
            return float_text(value)
        case datetime():
            return time_text(value)
        case Version():
            return str(value)
    return int.__str__(value) if isinstance(value, int) else str(value)


def float_text(value: float) -> str:
    """Write a float with the fewest digits that distinguish it from other floats.

    >>> float_text(1e6), float_text(100000.0), float_text(-0.0), float_text(math.inf)
    ('1e+06', '100000', '-0', '+Inf')
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0 and math.copysign(1, value) < 0:
        return "-0"
    return number_text(value)


def print_all(budget: RenderBudget, values: Sequence[object]) -> str:
    """Write values as one string, with a space between two values that are not strings."""
    return budget.joined("", _spaced(budget, values))


def _spaced(budget: RenderBudget, values: Sequence[object]) -> Iterator[str]:
    for index, value in enumerate(values):
        if index and not isinstance(value, str) and not isinstance(values[index - 1], str):
            yield " "
        yield printed(value, budget)


def print_lines(budget: RenderBudget, values: Sequence[object]) -> str:
    """Write values with spaces between them and a newline at the end."""
    return budget.joined(" ", (printed(value, budget) for value in values)) + "\n"


@dataclass(frozen=True, slots=True)
class FormatSpec:
    """What a format string states about one verb: flags, width and precision, as in `%-8.2f`."""

    sharp: bool = False
    zero: bool = False
    plus: bool = False
    minus: bool = False
    space: bool = False
    source: bool = False
    """True for `%#v`: the value is written in the syntax of Go source."""
    width: int | None = None
    precision: int | None = None

    def padded(self, text: str) -> str:
        missing = (self.width or 0) - len(text)
        if missing <= 0:
            return text
        if self.minus:
            return text + " " * missing
        return ("0" if self.zero else " ") * missing + text

    def blank(self, text: str) -> str:
        """Pad a string to the width with spaces, even if the flags request zeros."""
        missing = " " * ((self.width or 0) - len(text))
        return text + missing if self.minus else missing + text

    def cut(self, text: str) -> str:
        return text if self.precision is None else text[: self.precision]


_BASES = {"d": "d", "v": "d", "b": "b", "o": "o", "O": "o", "x": "x", "X": "X"}


def written_int(value: int, verb: str, shape: FormatSpec) -> str | None:
    """Write an integer as a verb of `printf` does; return None if the verb takes no integer."""
    number = int(value)
    match verb:
        case "c":
            return shape.padded(_char(number))
        case "q":
            return shape.padded(quoted_char(number, ascii_only=shape.plus))
        case "U":
            return shape.blank(_unicode(number, shape))
    if verb not in _BASES:
        return None
    if verb == "v" and shape.source and isinstance(value, Byte | Wide):
        return shape.padded(f"0x{number:x}")
    return _digits(number, verb, shape)


def _char(number: int) -> str:
    good = 0 <= number <= 0x10FFFF and not 0xD800 <= number < 0xE000
    return chr(number) if good else "\ufffd"


def _unicode(number: int, shape: FormatSpec) -> str:
    digits = f"{number % 2**64:X}".rjust(max(4, shape.precision or 0), "0")
    known = 0 <= number <= 0x10FFFF and is_printable(chr(number))
    return f"U+{digits}" + (f" '{chr(number)}'" if shape.sharp and known else "")


def _digits(number: int, verb: str, shape: FormatSpec) -> str:
    if shape.precision == 0 and number == 0:
        return " " * (shape.width or 0)
    digits = format(abs(number), _BASES[verb])
    sign = "-" if number < 0 else "+" if shape.plus else " " if shape.space else ""
    least = shape.precision or 0
    if shape.precision is None and shape.zero and not shape.minus and shape.width is not None:
        least = shape.width - len(sign)
    digits = digits.rjust(least, "0")
    if shape.sharp:
        digits = _prefixed(digits, verb)
    if verb == "O":
        digits = f"0o{digits}"
    return shape.blank(f"{sign}{digits}")


def _prefixed(digits: str, verb: str) -> str:
    if verb in "oO":
        return digits if digits.startswith("0") else f"0{digits}"
    return {"b": "0b", "x": "0x", "X": "0X"}.get(verb, "") + digits


def written_text(text: str, verb: str, shape: FormatSpec) -> str | None:
    """Write a string as a verb of `printf` does; return None if the verb takes no string."""
    match verb:
        case "s":
            return shape.padded(shape.cut(text))
        case "v" if not shape.source:
            return shape.padded(shape.cut(text))
        case "q" | "v":
            return shape.padded(_quoted(shape.cut(text), shape))
        case "x" | "X":
            return _hex(text, shape, upper=verb == "X")
    return None


def _quoted(text: str, shape: FormatSpec) -> str:
    if shape.sharp and re.fullmatch("[^`\x00-\x08\x0a-\x1f\x7f\ufeff\udc80-\udcff]*", text):
        return f"`{text}`"
    return quoted_text(text, ascii_only=shape.plus)


def _hex(text: str, shape: FormatSpec, *, upper: bool) -> str:
    content = encoded(text)[: shape.precision]
    prefix = ("0X" if upper else "0x") if shape.sharp else ""
    pairs = [f"{byte:02X}" if upper else f"{byte:02x}" for byte in content]
    if shape.space:
        shown = " ".join(prefix + pair for pair in pairs)
    else:
        shown = (prefix if pairs else "") + "".join(pairs)
    return shape.padded(shown)


def written_float(value: float, verb: str, shape: FormatSpec) -> str | None:
    """Write a float as a verb of `printf` does; return None if the verb takes no float."""
    verb = {"v": "g", "F": "f"}.get(verb, verb)
    if verb not in "gGfeExXb":
        return None
    text = _unsigned(abs(value), verb, shape)
    negative = math.copysign(1, value) < 0 and not math.isnan(value)
    sign = "-" if negative else "+" if shape.plus else " " if shape.space else ""
    if math.isinf(value) or math.isnan(value):
        sign = "+" if math.isinf(value) and not sign else sign
        return shape.blank(sign + text)
    if shape.sharp and verb != "b":
        text = _pointed(text, verb, shape)
    if shape.zero and not shape.minus:
        return sign + text.rjust((shape.width or 0) - len(sign), "0")
    return shape.padded(sign + text)


def _unsigned(value: float, verb: str, shape: FormatSpec) -> str:
    if math.isinf(value) or math.isnan(value):
        return "Inf" if math.isinf(value) else "NaN"
    match verb:
        case "f" | "e" | "E":
            digits = 6 if shape.precision is None else shape.precision
            return f"{value:.{digits}{verb}}"
        case "g" | "G":
            text = _general(value, shape.precision)
            return text.upper() if verb == "G" else text
        case "b" if value == 0:
            return "0p-1074"
        case "b":
            mantissa, exponent = math.frexp(value)
            return f"{int(mantissa * 2**53)}p{exponent - 53:+d}"
    text = _hexadecimal(value, shape.precision)
    return text.upper() if verb == "X" else text


def _general(value: float, precision: int | None) -> str:
    if precision is None:
        return float_text(value)
    digits = max(precision, 1)
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    shown = mantissa.replace(".", "").rstrip("0") or "0"
    power = int(exponent)
    # As in Go, the precision is at most the number of digits.
    most = len(shown) if digits > len(shown) >= power + 1 else digits
    if value != 0 and (power < -4 or power >= max(most, digits if power < digits else 0)):
        rest = f".{shown[1:]}" if shown[1:] else ""
        return f"{shown[0]}{rest}e{power:+03d}"
    text = f"{value:.{max(digits - 1 - power, 0)}f}"
    return text.rstrip("0").removesuffix(".") if "." in text else text


def _hexadecimal(value: float, precision: int | None) -> str:
    if value == 0:
        point = f".{'0' * precision}" if precision else ""
        return f"0x0{point}p+00"
    mantissa, exponent = math.frexp(value)
    bits = int(mantissa * 2**53)
    power = exponent - 1
    if precision is not None and precision < 13:
        unit = 1 << (52 - 4 * precision)
        low = bits % unit
        bits -= low
        odd = bits // unit % 2
        bits += unit if low * 2 > unit or (low * 2 == unit and odd) else 0
        if bits >= 2**53:
            bits, power = bits // 2, power + 1
    digits = f"{bits - 2**52:013x}"
    digits = digits.rstrip("0") if precision is None else digits.ljust(precision, "0")[:precision]
    return f"0x1{'.' if digits else ''}{digits}p{power:+03d}"


def _pointed(text: str, verb: str, shape: FormatSpec) -> str:
    """Apply the flag `#` to a float: always write a decimal point, and zeros at the end."""
    found = re.match(r"(0[xX])?([0-9a-fA-F.]*?)([eEpP][+-]\d+)?$", text)
    if found is None:
        return text
    prefix, number, tail = found[1] or "", found[2], found[3] or ""
    wanted = 0
    if verb in "gGx":
        wanted = 6 if shape.precision is None else shape.precision
        significant = number.replace(".", "").lstrip("0")
        wanted -= len(significant) + (number == "0") + bool(prefix)
    if "." not in number:
        number += "."
    return f"{prefix}{number}{'0' * max(wanted, 0)}{tail}"
