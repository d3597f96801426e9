"""Checks of the string formats in schemas, such as `date-time`, with kube-apiserver's rules.

As in kube-apiserver, a string whose format is not in this module is not checked.
"""

from __future__ import annotations

import calendar
import ipaddress
import re
import unicodedata
from collections.abc import Callable

__all__ = ["text_format"]

_HEX = "[0-9a-fA-F]"
_NAME = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_ATEXT = r'[^\x00-\x20()<>\[\]:;@\\,."\x7f]++'
_ADDRESS = (
    rf'(?:{_ATEXT}(?:\.{_ATEXT})*|"(?:[^"\\\x00-\x1f]|\\.)*")'
    rf"@[ \t]*(?:{_ATEXT}(?:\.{_ATEXT})*|\[(?P<LITERAL>[^\[\]\\]*)\])"
)
_PHRASE = rf'(?:(?:{_ATEXT}|\.|"(?:[^"\\\x00-\x1f]|\\.)*")[ \t]*+)*+'
_PLAIN, _ANGLED = _ADDRESS.replace("LITERAL", "one"), _ADDRESS.replace("LITERAL", "other")
_EMAIL = re.compile(rf"[ \t]*(?:{_PLAIN}|{_PHRASE}<[ \t]*{_ANGLED}[ \t]*>)[ \t]*")
_COMMENT = re.compile(r"\((?:[^()\\]|\\.)*\)")
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_DURATION = re.compile(
    r"[-+]?(?:0|(?:(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:ns|us|µs|μs|ms|s|m|h))++)"
)
_LOOSE_DURATION = re.compile(r"([0-9]+)\s*([A-Za-zµ]+)")
_UNITS = (
    ("ns", "nano"),
    ("us", "µs", "micro"),
    ("ms", "milli"),
    ("s", "sec"),
    ("m", "min"),
    ("h", "hr", "hour"),
    ("d", "day"),
    ("w", "wk", "week"),
)
_CARD = re.compile(
    r"4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)
_BYTE = r"(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])"
_SPACE = r"[\t\n\f\r ]*"


def _shaped(pattern: str) -> Callable[[str], bool]:
    found = re.compile(pattern)
    return lambda text: found.fullmatch(text) is not None


def _uuid(third: str = f"{_HEX}{{4}}", fourth: str = f"{_HEX}{{4}}") -> Callable[[str], bool]:
    return _shaped(f"{_HEX}{{8}}-?{_HEX}{{4}}-?{third}-?{fourth}-?{_HEX}{{12}}")


def _is_date(text: str) -> bool:
    found = _DATE.fullmatch(text)
    if found is None:
        return False
    year, month, day = map(int, found.groups())
    # The `calendar` module has no year 0. The year 2000 has the same days.
    return 1 <= month <= 12 and 1 <= day <= calendar.monthrange(year or 2000, month)[1]


def _is_date_time(text: str) -> bool:
    date, found, rest = text.lower().partition("t")
    time = _TIME.fullmatch(rest.partition("t")[0])
    if not found or not _is_date(date) or time is None:
        return False
    return time[1] <= "23" and time[2] <= "59" and time[3] <= "59"


def _is_duration(text: str) -> bool:
    if _DURATION.fullmatch(text):
        return True
    return any(_is_unit(unit.lower()) for _, unit in _LOOSE_DURATION.findall(text))


def _is_unit(unit: str) -> bool:
    return any(unit in names or unit.startswith(names[-1]) for names in _UNITS)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse an IP address; return None if it is invalid.

    As in kube-apiserver, leading zeros in IPv4 addresses are allowed.
    """
    *front, last = text.split(":")
    if "." in last:
        last = ".".join(part.lstrip("0") or part[-1:] for part in last.split("."))
    try:
        found = ipaddress.ip_address(":".join([*front, last]))
    except ValueError:
        return None
    return None if "%" in text else found


def _is_ipv4(text: str) -> bool:
    return "." in text and _address(text) is not None


def _is_ipv6(text: str) -> bool:
    return ":" in text and _address(text) is not None


def _is_cidr(text: str) -> bool:
    address, slash, bits = text.partition("/")
    found = _address(address)
    if found is None or not slash or not re.fullmatch("[0-9]{1,3}", bits):
        return False
    return int(bits) <= found.max_prefixlen


def _is_mac(text: str) -> bool:
    for size in (6, 8, 20):
        pairs, fours = f"{_HEX}{{2}}", f"{_HEX}{{4}}"
        colons, dashes = (f"{pairs}({each}{pairs}){{{size - 1}}}" for each in ":-")
        dots = rf"{fours}(\.{fours}){{{size // 2 - 1}}}"
        if re.fullmatch(f"{colons}|{dashes}|{dots}|({pairs}){{{size}}}", text):
            return True
    return False


def _is_hostname(text: str) -> bool:
    if len(text.encode()) > 255:
        return False
    *parts, last = text.split(".")
    if not parts:
        return _is_host_label(last, dash_anywhere=False)
    if not 2 <= len(last) <= 63 or not all(map(_is_letter, last)):
        return False
    return all(_is_host_label(part, dash_anywhere=True) for part in parts)


def _is_host_label(label: str, *, dash_anywhere: bool) -> bool:
    if not 1 <= len(label.encode()) <= 63:
        return False
    if dash_anywhere:
        within = all(map(_is_host_char, label.replace("-", "")))
        return within and not label.startswith("-") and not label.endswith("-")
    # A name without dots may have one dash after its first character, even at the end.
    plain = label[:1] + label[2:] if label[1:2] == "-" else label
    return all(map(_is_host_char, plain))


def _is_letter(char: str) -> bool:
    return unicodedata.category(char).startswith("L")


def _is_host_char(char: str) -> bool:
    return char in "0123456789" or unicodedata.category(char)[0] in "LS"


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch("[0-9]{9}[0-9X]", digits):
        return False
    values = [10 if each == "X" else int(each) for each in digits]
    return sum(index * value for index, value in enumerate(values, 1)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch("[0-9]{13}", digits):
        return False
    return sum(int(each) * (3 if index % 2 else 1) for index, each in enumerate(digits)) % 10 == 0


def _is_credit_card(text: str) -> bool:
    digits = re.sub("[^0-9]+", "", text)
    if not _CARD.fullmatch(digits):
        return False
    doubled = (int(each) * (1 + index % 2) for index, each in enumerate(reversed(digits)))
    return sum(each - 9 if each > 9 else each for each in doubled) % 10 == 0


def _is_email(text: str) -> bool:
    found = _EMAIL.fullmatch(_COMMENT.sub(" ", text))
    if found is None:
        return False
    literal = found["one"] or found["other"]
    return literal is None or _is_address(literal)


def _is_address(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BAD_PERCENT = re.compile(f"%(?!{_HEX}{{2}})")
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_HOST = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=\]<>\"\x80-\U0010ffff]|%[89a-fA-F][0-9a-fA-F])*")


def _is_uri(text: str) -> bool:
    """Report whether a string is an absolute URI or a path from the root."""
    if not text or re.search(r"[\x00-\x1f\x7f]", text) or text.startswith(":"):
        return False
    if text == "*":
        return True
    scheme = _SCHEME.match(text)
    rest = (text[scheme.end() :] if scheme else text).partition("?")[0]
    if not rest.startswith("/"):
        return scheme is not None
    if scheme is None or not rest.startswith("//"):
        return not _BAD_PERCENT.search(rest)
    authority, _, path = rest[2:].partition("/")
    known = scheme[0].lower() in ("http:", "https:")
    return _is_authority(authority, strict=known) and not _BAD_PERCENT.search(path)


def _is_authority(text: str, *, strict: bool) -> bool:
    user, _, host = text.rpartition("@")
    if not _USER.fullmatch(user) or _BAD_PERCENT.search(user):
        return False
    if host.startswith("["):
        inside, closed, port = host[1:].rpartition("]")
        address = inside.partition("%25")[0]
        return bool(closed) and _is_port(port) and _is_ipv6(address)
    # In a URI with another scheme than http and https, the host name may contain colons.
    name, _, port = host.partition(":") if strict or ":" not in host else host.rpartition(":")
    right = _HOST.fullmatch(name if strict else name.replace(":", ""))
    return re.fullmatch("[0-9]*", port) is not None and right is not None


def _is_port(text: str) -> bool:
    return re.fullmatch("(:[0-9]*)?", text) is not None


def _is_name(pattern: str, most: int) -> Callable[[str], bool]:
    shaped = _shaped(pattern)
    return lambda text: len(text) <= most and shaped(text)


_FORMATS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _shaped(f"{_HEX}{{24}}"),
    "uri": _is_uri,
    "email": _is_email,
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "cidr": _is_cidr,
    "mac": _is_mac,
    "uuid": _uuid(),
    "uuid3": _uuid(f"3{_HEX}{{3}}"),
    "uuid4": _uuid(f"4{_HEX}{{3}}", f"[89abAB]{_HEX}{{3}}"),
    "uuid5": _uuid(f"5{_HEX}{{3}}", f"[89abAB]{_HEX}{{3}}"),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_credit_card,
    "ssn": _shaped("[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}"),
    "hexcolor": _shaped(f"#?({_HEX}{{3}}|{_HEX}{{6}})"),
    "rgbcolor": _shaped(
        rf"rgb\({_SPACE}{_BYTE}{_SPACE},{_SPACE}{_BYTE}{_SPACE},{_SPACE}{_BYTE}{_SPACE}\)"
    ),
    "byte": _shaped(
        "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
    ),
    "password": lambda _: True,
    "date": _is_date,
    "duration": _is_duration,
    "datetime": _is_date_time,
    "k8sshortname": _is_name(_NAME, 63),
    "k8slongname": _is_name(rf"{_NAME}(?:\.{_NAME})*", 253),
}


def text_format(name: str) -> Callable[[str], bool] | None:
    """Return the function that checks a format; None for an unknown format.

    Dashes in the name of the format are ignored.

    >>> date = text_format("date")
    >>> date is not None and date("2020-02-30")
    False
    >>> text_format("no-such-format") is None
    True
    """
    return _FORMATS.get(name.replace("-", ""))
