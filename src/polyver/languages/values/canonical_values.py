"""Values that kube-apiserver stores in a canonical form: quantities, times, base64.

For example, the quantity `1000m` is stored as `1`.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import ROUND_UP, Context, Decimal, InvalidOperation
from fractions import Fraction

__all__ = [
    "InvalidValue",
    "base64_problem",
    "is_binary_unit",
    "micro_time",
    "quantity",
    "quantity_amount",
    "quantity_text",
    "quantity_unit",
    "time",
]


class InvalidValue(ValueError):
    """The value is invalid; the message is kube-apiserver's."""


_QUANTITY = re.compile(r"([+-]?)(0*)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_NANO = Decimal("1e-9")
_EXACT = Context(prec=400, rounding=ROUND_UP)
_MOST = Decimal((1 << 63) - 1)
_WRONG = "quantities must match the regular expression "
_WRONG += "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def quantity(text: str, *, least: Decimal = _NANO) -> str:
    """Convert a quantity to its canonical form, rounded up to a multiple of `least`.

    >>> [quantity(text) for text in ("1000m", "1.5Gi", "0.1", "1024Mi", "1e3")]
    ['1', '1536Mi', '100m', '1Gi', '1e3']
    """
    text = text.strip()
    found = _QUANTITY.fullmatch(text)
    if found is None or not text:
        raise InvalidValue(_WRONG)
    sign, _, digits, fraction, suffix = found.groups(default="")
    if not (digits or fraction or found[2] or suffix):
        return "0"
    form, exponent = _interpret(suffix)
    scale = exponent - len(fraction)
    if scale >= least.adjusted() and _is_canonical((digits or "0") + fraction, scale, form):
        return text
    amount = _amount(digits or "0", fraction, form, exponent, least)
    if form == "binary":
        amount = min(amount, _MOST)
    return ("-" if sign == "-" and amount else "") + _canonical(amount, form)


def _interpret(suffix: str) -> tuple[str, int]:
    """Return the form and the exponent of a suffix: `("binary", 20)` for `Mi`.

    The form is `decimal`, `binary` or `exponent`; the exponent is a power of ten or of two.
    """
    if suffix in _DECIMAL:
        return "decimal", _DECIMAL[suffix]
    if suffix in _BINARY:
        return "binary", _BINARY[suffix]
    if re.fullmatch(r"[eE][+-]?[0-9]{1,3}", suffix):
        return "exponent", int(suffix[1:])
    raise InvalidValue("unable to parse quantity's suffix")


def _is_canonical(digits: str, scale: int, form: str) -> bool:
    """Report whether kube-apiserver stores a quantity exactly as the client wrote it.

    As in kube-apiserver, only the digits at the end, the scale and the number of digits decide
    this.
    """
    if form == "binary":
        return len(digits) + scale * 3 // 10 <= 14 and scale % 10 == 0 and int(digits) & 7 != 0
    ends = len(digits) > 18 or digits.endswith("000") or digits[0] == "0"
    return scale % 3 == 0 and not ends


def _amount(digits: str, fraction: str, form: str, exponent: int, least: Decimal) -> Decimal:
    number = Decimal(f"{digits}.{fraction or 0}")
    factor = Decimal(2) ** exponent if form == "binary" else Decimal(1).scaleb(exponent)
    try:
        return _EXACT.multiply(number, factor).quantize(least, context=_EXACT)
    except InvalidOperation:
        raise InvalidValue("unable to parse numeric part of quantity") from None


def _canonical(amount: Decimal, form: str) -> str:
    if not amount:
        return "0"
    if form == "binary" and amount >= 1024 and amount == amount.to_integral_value():
        number, power = int(amount), 0
        while number % 1024 == 0 and power < 60:
            number, power = number // 1024, power + 10
        return f"{number}{_SUFFIXES['binary'][power]}"
    return _in_thousands(amount, form)


def _in_thousands(amount: Decimal, form: str) -> str:
    exponent = -9
    number = int(amount.scaleb(9, context=_EXACT))
    while number % 1000 == 0 and exponent < 18:
        number, exponent = number // 1000, exponent + 3
    if form == "exponent":
        return f"{number}e{exponent}" if exponent else str(number)
    return f"{number}{_SUFFIXES['decimal'][exponent]}"


_SUFFIXES: Mapping[str, Mapping[int, str]] = {
    "decimal": {exponent: suffix for suffix, exponent in _DECIMAL.items()},
    "binary": {0: ""} | {power: suffix for suffix, power in _BINARY.items()},
}


def quantity_amount(text: str) -> Fraction | None:
    """Return the number for which a quantity stands; None if the string is not a quantity.

    As in Kubernetes, an amount is a multiple of 1n: other numbers are rounded up.

    >>> str(quantity_amount("1.5Ki")), str(quantity_amount("500m")), quantity_amount("1 Ki")
    ('1536', '1/2', None)
    """
    found = _QUANTITY.fullmatch(text)
    if found is None or len(text) > _LONGEST:
        return None
    sign, zeros, digits, fraction, suffix = found.groups(default="")
    if not (zeros or digits or fraction):
        return None
    try:
        form, exponent = _interpret(suffix)
        amount = Fraction(_amount(digits or "0", fraction, form, exponent, _NANO))
    except InvalidValue:
        return None
    return -amount if sign == "-" else amount


_LONGEST = 1000


def quantity_text(amount: Fraction, *, binary: bool) -> str:
    """Write a number as a quantity in its canonical form; fractions of 1n are rounded up.

    With `binary`, the suffixes are Ki, Mi, Gi, and so on.

    >>> quantity_text(Fraction(3 * 2**19), binary=True), quantity_text(Fraction(1, 2), binary=True)
    ('1536Ki', '500m')
    """
    nanos = Decimal(-(-abs(amount) * 10**9 // 1))
    text = _canonical(nanos.scaleb(-9, context=_EXACT), "binary" if binary else "decimal")
    return f"-{text}" if amount < 0 and text != "0" else text


def quantity_unit(suffix: str) -> Fraction | None:
    """Return the number for which a suffix stands, such as 1024 for Ki; None if there is none."""
    if suffix in _BINARY:
        return Fraction(2 ** _BINARY[suffix])
    return Fraction(10) ** _DECIMAL[suffix] if suffix in _DECIMAL else None


def is_binary_unit(suffix: str) -> bool:
    """Report whether a suffix stands for a power of two, as Ki does."""
    return suffix in _BINARY


_SECONDS = "2006-01-02T15:04:05Z07:00"
_MICROSECONDS = "2006-01-02T15:04:05.000000Z07:00"
_ELEMENTS: Mapping[str, str] = {
    "2006": "[0-9]{4}",
    "01": "[0-9]{2}",
    "02": "[0-9]{2}",
    "15": "[0-9]{1,2}",
    "04": "[0-9]{2}",
    "05": r"[0-9]{2}(?:[.,][0-9]+)?",
    "05.": r"[0-9]{2}",
    ".000000": r"\.[0-9]{6}",
    "Z07:00": r"Z|[+-][0-9]{2}:[0-9]{2}",
}
_LAYOUT = re.compile(r"2006|01|02|15|04|05|\.000000|Z07:00|[-T:]")


def time(text: str) -> str | None:
    """Convert a time to UTC with full seconds; return None for Go's zero time.

    >>> time("2026-01-02T03:04:05.6+01:00")
    '2026-01-02T02:04:05Z'
    """
    found = _parsed(text, _SECONDS)
    return f"{found:%Y-%m-%dT%H:%M:%SZ}".rjust(20, "0") if found else None


def micro_time(text: str) -> str | None:
    """Convert a time to UTC with six decimals; return None for Go's zero time."""
    found = _parsed(text, _MICROSECONDS)
    return f"{found:%Y-%m-%dT%H:%M:%S.%fZ}".rjust(27, "0") if found else None


def _parsed(text: str, layout: str) -> datetime | None:
    parts = _split(text, layout)
    year, month, day, hour, minute = (int(parts[key]) for key in ("2006", "01", "02", "15", "04"))
    second, _, fraction = re.sub("[.,]", ".", parts["05"]).partition(".")
    fraction = fraction or parts.get(".000000", "")[1:]
    if not 1 <= month <= 12:
        raise _unparsed(text, ": month out of range")
    clock = (("hour", hour, 24), ("minute", minute, 60), ("second", int(second), 60))
    for name, value, end in clock:
        if value >= end:
            raise _unparsed(text, f": {name} out of range")
    if not 1 <= day <= monthrange(max(year, 1), month)[1]:
        raise _unparsed(text, ": day out of range")
    micro = int(fraction[:6].ljust(6, "0")) if fraction else 0
    zone = parts["Z07:00"]
    offset = timedelta(0)
    if zone != "Z":
        offset = _offset(text, int(zone[1:3]), int(zone[4:6]))
    try:
        local = datetime(year, month, day, hour, minute, int(second), micro, tzinfo=UTC)
        moment = local + offset if zone.startswith("-") else local - offset
    except (ValueError, OverflowError):
        raise _unparsed(text, ": year out of range") from None
    return None if moment == _ZERO_TIME else moment


def _offset(text: str, hours: int, minutes: int) -> timedelta:
    if hours > 24:
        raise _unparsed(text, ": time zone offset hour out of range")
    if minutes > 60:
        raise _unparsed(text, ": time zone offset minute out of range")
    return timedelta(hours=hours, minutes=minutes)


_ZERO_TIME = datetime(1, 1, 1, tzinfo=UTC)


def _in_quotes(text: str) -> str:
    """Quote a string byte by byte, as errors of Go's package `time` do."""
    shown = (
        f"\\x{byte:02x}"
        if byte < 0x20 or byte >= 0x80
        else f"\\{chr(byte)}"
        if byte in b'"\\'
        else chr(byte)
        for byte in text.encode()
    )
    return f'"{"".join(shown)}"'


def _unparsed(text: str, problem: str) -> InvalidValue:
    return InvalidValue(f"parsing time {_in_quotes(text)}{problem}")


def _split(text: str, layout: str) -> dict[str, str]:
    rest, parts = text, {}
    for element in _LAYOUT.findall(layout):
        key = "05." if element == "05" and layout == _MICROSECONDS else element
        found = re.match(_ELEMENTS.get(key, re.escape(element)), rest)
        if found is None:
            problem = f'cannot parse {_in_quotes(rest)} as "{element}"'
            raise _unparsed(text, f' as "{layout}": {problem}')
        parts[element], rest = found[0], rest[found.end() :]
    if rest:
        raise _unparsed(text, f": extra text: {_in_quotes(rest)}")
    return parts


_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def base64_problem(text: str) -> str:
    """Return Go's error for invalid base64; an empty string for valid base64.

    >>> base64_problem("AA=A")
    'illegal base64 data at input byte 2'
    """
    at = _base64_end(text)
    return "" if at is None else f"illegal base64 data at input byte {at}"


def _base64_end(text: str) -> int | None:
    """Return the position of the first byte that is not valid base64; None if all are valid.

    Line breaks are allowed everywhere.
    """
    held = 0  # characters of the current group of four
    for at, character in enumerate(text):
        if character in _ALPHABET:
            held = (held + 1) % 4
        elif character == "=" and held >= 2:
            return _padding_end(text, at + 1, held)
        elif character not in "\r\n":
            return at
    return len(text) - held if held else None


def _padding_end(text: str, at: int, held: int) -> int | None:
    if held == 2:
        at = _after_lines(text, at)
        if text[at : at + 1] != "=":
            return at - 1 if at < len(text) else at
        at += 1
    at = _after_lines(text, at)
    return at if at < len(text) else None


def _after_lines(text: str, at: int) -> int:
    while text[at : at + 1] in ("\r", "\n"):
        at += 1
    return at
