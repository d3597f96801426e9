"""The CEL functions that expressions may call, with their types, as in Kubernetes 1.37.

Each line of the tables below declares one overload. It has the name of the function, the name of
the overload, a dot if the overload is a method, the types of the arguments, and the type of the
result. A line with `{t}` stands for several lines: one for each type after the bar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from polyver.languages.cel import _types as types
from polyver.languages.cel._types import CelType

__all__ = ["FUNCTIONS", "Overload", "read_type"]


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function: the types of its arguments and of its result."""

    id: str
    member: bool
    args: tuple[CelType, ...]
    result: CelType
    params: tuple[CelType, ...]
    """The type parameters, such as A, in the types of the arguments and of the result."""


_OPERATORS = """
!_ logical_not (bool) bool
-_ negate_double (double) double
-_ negate_int64 (int) int
@in in_list (A, list(A)) bool
@in in_map (A, map(A, B)) bool
@not_strictly_false not_strictly_false (bool) bool
_!=_ not_equals (A, A) bool
_%_ modulo_int64 (int, int) int
_%_ modulo_uint64 (uint, uint) uint
_&&_ logical_and (bool, bool) bool
_*_ multiply_double (double, double) double
_*_ multiply_int64 (int, int) int
_*_ multiply_uint64 (uint, uint) uint
_+_ add_bytes (bytes, bytes) bytes
_+_ add_double (double, double) double
_+_ add_duration_duration (duration, duration) duration
_+_ add_duration_timestamp (duration, timestamp) timestamp
_+_ add_timestamp_duration (timestamp, duration) timestamp
_+_ add_int64 (int, int) int
_+_ add_list (list(A), list(A)) list(A)
_+_ add_string (string, string) string
_+_ add_uint64 (uint, uint) uint
_-_ subtract_double (double, double) double
_-_ subtract_duration_duration (duration, duration) duration
_-_ subtract_int64 (int, int) int
_-_ subtract_timestamp_duration (timestamp, duration) timestamp
_-_ subtract_timestamp_timestamp (timestamp, timestamp) duration
_-_ subtract_uint64 (uint, uint) uint
_/_ divide_double (double, double) double
_/_ divide_int64 (int, int) int
_/_ divide_uint64 (uint, uint) uint
_==_ equals (A, A) bool
_?._ select_optional_field (dyn, string) optional_type(V)
_?_:_ conditional (bool, A, A) A
_[?_] list_optindex_optional_int (list(V), int) optional_type(V)
_[?_] optional_list_optindex_optional_int (optional_type(list(V)), int) optional_type(V)
_[?_] map_optindex_optional_value (map(K, V), K) optional_type(V)
_[?_] optional_map_optindex_optional_value (optional_type(map(K, V)), K) optional_type(V)
_[_] index_list (list(A), int) A
_[_] index_map (map(A, B), A) B
_[_] optional_list_index_int (optional_type(list(V)), int) optional_type(V)
_[_] optional_map_index_value (optional_type(map(K, V)), K) optional_type(V)
_||_ logical_or (bool, bool) bool
"""
_CONVERSIONS = """
bool bool_to_bool (bool) bool
bool string_to_bool (string) bool
bytes bytes_to_bytes (bytes) bytes
bytes string_to_bytes (string) bytes
double double_to_double (double) double
double int64_to_double (int) double
double string_to_double (string) double
double uint64_to_double (uint) double
duration duration_to_duration (duration) duration
duration string_to_duration (string) duration
dyn to_dyn (A) dyn
int int64_to_int64 (int) int
int double_to_int64 (double) int
int duration_to_int64 (duration) int
int string_to_int64 (string) int
int timestamp_to_int64 (timestamp) int
int uint64_to_int64 (uint) int
string string_to_string (string) string
string bool_to_string (bool) string
string bytes_to_string (bytes) string
string double_to_string (double) string
string duration_to_string (duration) string
string int64_to_string (int) string
string timestamp_to_string (timestamp) string
string uint64_to_string (uint) string
string ip_to_string (net.IP) string
string cidr_to_string (net.CIDR) string
timestamp timestamp_to_timestamp (timestamp) timestamp
timestamp int64_to_timestamp (int) timestamp
timestamp string_to_timestamp (string) timestamp
type type (A) type(A)
uint uint64_to_uint64 (uint) uint
uint double_to_uint64 (double) uint
uint int64_to_uint64 (int) uint
uint string_to_uint64 (string) uint
size size_bytes (bytes) int
size bytes_size .(bytes) int
size size_list (list(A)) int
size list_size .(list(A)) int
size size_map (map(A, B)) int
size map_size .(map(A, B)) int
size size_string (string) int
size string_size .(string) int
"""
_TEXTS = """
contains contains_string .(string, string) bool
endsWith ends_with_string .(string, string) bool
startsWith starts_with_string .(string, string) bool
matches matches (string, string) bool
matches matches_string .(string, string) bool
charAt string_char_at_int .(string, int) string
format string_format .(string, list(dyn)) string
indexOf string_index_of_string .(string, string) int
indexOf string_index_of_string_int .(string, string, int) int
indexOf list_a_index_of_int .(list(A), A) int
lastIndexOf string_last_index_of_string .(string, string) int
lastIndexOf string_last_index_of_string_int .(string, string, int) int
lastIndexOf list_a_last_index_of_int .(list(A), A) int
join list_join .(list(string)) string
join list_join_string .(list(string), string) string
lowerAscii string_lower_ascii .(string) string
upperAscii string_upper_ascii .(string) string
replace string_replace_string_string .(string, string, string) string
replace string_replace_string_string_int .(string, string, string, int) string
split string_split_string .(string, string) list(string)
split string_split_string_int .(string, string, int) list(string)
strings.quote strings_quote (string) string
substring string_substring_int .(string, int) string
substring string_substring_int_int .(string, int, int) string
trim string_trim .(string) string
find string_find_string .(string, string) string
findAll string_find_all_string .(string, string) list(string)
findAll string_find_all_string_int .(string, string, int) list(string)
"""
_LISTS = """
isSorted list_{t}_is_sorted_bool .(list({t})) bool \
| int uint double bool duration timestamp string bytes
sum list_{t}_sum_{t} .(list({t})) {t} | int uint double duration
max list_{t}_max_{t} .(list({t})) {t} | int uint double bool duration timestamp string bytes
min list_{t}_min_{t} .(list({t})) {t} | int uint double bool duration timestamp string bytes
distinct list_distinct .(list(T)) list(T)
first list_first .(list(V)) optional_type(V)
last list_last .(list(V)) optional_type(V)
flatten list_flatten .(list(list(T))) list(T)
flatten list_flatten_int .(list(dyn), int) list(dyn)
lists.range lists_range (int) list(int)
reverse list_reverse .(list(T)) list(T)
slice list_slice .(list(T), int, int) list(T)
sort list_{t}_sort .(list({t})) list({t}) | int uint double bool duration timestamp string bytes
@sortByAssociatedKeys list_{t}_sortByAssociatedKeys .(list(T), list({t})) list(T) \
| int uint double bool duration timestamp string bytes
sets.contains list_sets_contains_list (list(T), list(T)) bool
sets.equivalent list_sets_equivalent_list (list(T), list(T)) bool
sets.intersects list_sets_intersects_list (list(T), list(T)) bool
cel.@mapInsert @mapInsert_map_map (map(K, V), map(K, V)) map(K, V)
cel.@mapInsert @mapInsert_map_key_value (map(K, V), K, V) map(K, V)
optional.none optional_none () optional_type(V)
optional.of optional_of (V) optional_type(V)
optional.ofNonZeroValue optional_ofNonZeroValue (V) optional_type(V)
optional.unwrap optional_unwrap (list(optional_type(V))) list(V)
unwrapOpt optional_unwrapOpt .(list(optional_type(V))) list(V)
hasValue optional_hasValue .(optional_type(V)) bool
value optional_value .(optional_type(V)) V
or optional_or_optional .(optional_type(V), optional_type(V)) optional_type(V)
orValue optional_orValue_value .(optional_type(V), V) V
"""
_TIMES = """
getFullYear timestamp_to_year .(timestamp) int
getMonth timestamp_to_month .(timestamp) int
getDayOfYear timestamp_to_day_of_year .(timestamp) int
getDayOfMonth timestamp_to_day_of_month .(timestamp) int
getDate timestamp_to_day_of_month_1_based .(timestamp) int
getDayOfWeek timestamp_to_day_of_week .(timestamp) int
getHours timestamp_to_hours .(timestamp) int
getMinutes timestamp_to_minutes .(timestamp) int
getSeconds timestamp_to_seconds .(timestamp) int
getMilliseconds timestamp_to_milliseconds .(timestamp) int
getFullYear timestamp_to_year_with_tz .(timestamp, string) int
getMonth timestamp_to_month_with_tz .(timestamp, string) int
getDayOfYear timestamp_to_day_of_year_with_tz .(timestamp, string) int
getDayOfMonth timestamp_to_day_of_month_with_tz .(timestamp, string) int
getDate timestamp_to_day_of_month_1_based_with_tz .(timestamp, string) int
getDayOfWeek timestamp_to_day_of_week_with_tz .(timestamp, string) int
getHours timestamp_to_hours_with_tz .(timestamp, string) int
getMinutes timestamp_to_minutes_with_tz .(timestamp, string) int
getSeconds timestamp_to_seconds_tz .(timestamp, string) int
getMilliseconds timestamp_to_milliseconds_with_tz .(timestamp, string) int
getHours duration_to_hours .(duration) int
getMinutes duration_to_minutes .(duration) int
getSeconds duration_to_seconds .(duration) int
getMilliseconds duration_to_milliseconds .(duration) int
"""
_KUBERNETES = """
url string_to_url (string) kubernetes.URL
isURL is_url_string (string) bool
getScheme url_get_scheme .(kubernetes.URL) string
getHost url_get_host .(kubernetes.URL) string
getHostname url_get_hostname .(kubernetes.URL) string
getPort url_get_port .(kubernetes.URL) string
getEscapedPath url_get_escaped_path .(kubernetes.URL) string
getQuery url_get_query .(kubernetes.URL) map(string, list(string))
quantity string_to_quantity (string) kubernetes.Quantity
isQuantity is_quantity_string (string) bool
sign quantity_sign (kubernetes.Quantity) int
add quantity_add .(kubernetes.Quantity, kubernetes.Quantity) kubernetes.Quantity
add quantity_add_int .(kubernetes.Quantity, int) kubernetes.Quantity
sub quantity_sub .(kubernetes.Quantity, kubernetes.Quantity) kubernetes.Quantity
sub quantity_sub_int .(kubernetes.Quantity, int) kubernetes.Quantity
asApproximateFloat quantity_get_float .(kubernetes.Quantity) double
asInteger quantity_get_int .(kubernetes.Quantity) int
isInteger quantity_is_integer .(kubernetes.Quantity) bool
isGreaterThan quantity_is_greater_than .(kubernetes.Quantity, kubernetes.Quantity) bool
isGreaterThan semver_is_greater_than .(kubernetes.Semver, kubernetes.Semver) bool
isLessThan quantity_is_less_than .(kubernetes.Quantity, kubernetes.Quantity) bool
isLessThan semver_is_less_than .(kubernetes.Semver, kubernetes.Semver) bool
compareTo quantity_compare_to .(kubernetes.Quantity, kubernetes.Quantity) int
compareTo semver_compare_to .(kubernetes.Semver, kubernetes.Semver) int
semver string_to_semver (string) kubernetes.Semver
semver string_bool_to_semver (string, bool) kubernetes.Semver
isSemver is_semver_string (string) bool
isSemver is_semver_string_bool (string, bool) bool
major semver_major .(kubernetes.Semver) int
minor semver_minor .(kubernetes.Semver) int
patch semver_patch .(kubernetes.Semver) int
ip string_to_ip (string) net.IP
ip cidr_ip .(net.CIDR) net.IP
isIP is_ip (string) bool
ip.isCanonical ip_is_canonical (string) bool
family ip_family .(net.IP) int
isUnspecified ip_is_unspecified .(net.IP) bool
isLoopback ip_is_loopback .(net.IP) bool
isLinkLocalMulticast ip_is_link_local_multicast .(net.IP) bool
isLinkLocalUnicast ip_is_link_local_unicast .(net.IP) bool
isGlobalUnicast ip_is_global_unicast .(net.IP) bool
cidr string_to_cidr (string) net.CIDR
isCIDR is_cidr (string) bool
containsIP cidr_contains_ip_string .(net.CIDR, string) bool
containsIP cidr_contains_ip_ip .(net.CIDR, net.IP) bool
containsCIDR cidr_contains_cidr_string .(net.CIDR, string) bool
containsCIDR cidr_contains_cidr .(net.CIDR, net.CIDR) bool
prefixLength cidr_prefix_length .(net.CIDR) int
masked cidr_masked .(net.CIDR) net.CIDR
format.named format-named (string) optional_type(kubernetes.NamedFormat)
format.{t} format.{t} () kubernetes.NamedFormat | byte date datetime dns1035Label \
dns1035LabelPrefix dns1123Label dns1123LabelPrefix dns1123Subdomain dns1123SubdomainPrefix \
labelValue qualifiedName uri uuid
validate format-validate .(kubernetes.NamedFormat, string) optional_type(list(string))
"""
# These functions need the variable `authorizer`, which only match conditions have.
_AUTHORIZATION = """
allowed decision_allowed .(kubernetes.authorization.Decision) bool
check pathcheck_check .(kubernetes.authorization.PathCheck, string) \
kubernetes.authorization.Decision
check resourcecheck_check .(kubernetes.authorization.ResourceCheck, string) \
kubernetes.authorization.Decision
error decision_error .(kubernetes.authorization.Decision) string
errored decision_errored .(kubernetes.authorization.Decision) bool
reason decision_reason .(kubernetes.authorization.Decision) string
group authorizer_group .(kubernetes.authorization.Authorizer, string) \
kubernetes.authorization.GroupCheck
path authorizer_path .(kubernetes.authorization.Authorizer, string) \
kubernetes.authorization.PathCheck
serviceAccount authorizer_serviceaccount .(kubernetes.authorization.Authorizer, string, string) \
kubernetes.authorization.Authorizer
resource groupcheck_resource .(kubernetes.authorization.GroupCheck, string) \
kubernetes.authorization.ResourceCheck
fieldSelector authorizer_fieldselector .(kubernetes.authorization.ResourceCheck, string) \
kubernetes.authorization.ResourceCheck
labelSelector authorizer_labelselector .(kubernetes.authorization.ResourceCheck, string) \
kubernetes.authorization.ResourceCheck
name resourcecheck_name .(kubernetes.authorization.ResourceCheck, string) \
kubernetes.authorization.ResourceCheck
namespace resourcecheck_namespace .(kubernetes.authorization.ResourceCheck, string) \
kubernetes.authorization.ResourceCheck
subresource resourcecheck_subresource .(kubernetes.authorization.ResourceCheck, string) \
kubernetes.authorization.ResourceCheck
"""
_COMPARED = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")
_NAMED = {"less": "_<_", "less_equals": "_<=_", "greater": "_>_", "greater_equals": "_>=_"}
_LINE = re.compile(r"(\S+) (\S+) (\.?)\((.*)\) (\S.*)")
_IDS = {"int": "int64", "uint": "uint64"}
_LONG = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}


def _comparisons() -> Iterator[str]:
    numbers = ("int", "uint", "double")
    for name, function in _NAMED.items():
        for one in _COMPARED:
            yield f"{function} {name}_{_IDS.get(one, one)} ({one}, {one}) bool"
            for other in numbers if one in numbers else ():
                if other != one:
                    both = f"{_IDS.get(one, one)}_{_IDS.get(other, other)}"
                    yield f"{function} {name}_{both} ({one}, {other}) bool"


def _lines() -> Iterator[str]:
    tables = (_OPERATORS, _CONVERSIONS, _TEXTS, _LISTS, _TIMES, _KUBERNETES, _AUTHORIZATION)
    for line in filter(None, "".join(tables).splitlines()):
        text, _, each = line.partition(" | ")
        for name in each.split() or ("",):
            yield _filled(text, name)
    yield from _comparisons()


def _filled(text: str, name: str) -> str:
    """Replace `{t}` in a line of a table by a type, which also becomes part of the overload's name.

    The names of the overloads of `sort` and `sortBy` use longer names of the types.
    """
    if text.startswith(("sort ", "@sortBy")):
        text = text.replace("list_{t}", f"list_{_LONG.get(name, name)}", 1)
    return text.replace("{t}", name)


_KINDS = {
    each.name: each
    for each in (
        *(types.BOOL, types.BYTES, types.DOUBLE, types.DURATION, types.DYN, types.INT),
        *(types.STRING, types.TIMESTAMP, types.UINT),
    )
}


def read_type(text: str) -> CelType:
    """Parse a type from its name.

    >>> str(read_type("map(string, list(A))"))
    'map(string, list(A))'
    """
    name, opened, inside = text.partition("(")
    if not opened:
        return _plain(name)
    params = tuple(map(read_type, _split(inside[:-1])))
    return CelType("opaque" if name == "optional_type" else name, name, params)


def _plain(name: str) -> CelType:
    if name in _KINDS:
        return _KINDS[name]
    if len(name) == 1:
        return types.param(name)
    return CelType("opaque", name) if name.startswith("net.") else types.struct(name)


def _split(text: str) -> list[str]:
    """Split a string at the commas outside of parentheses."""
    parts, depth = [""], 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip()]


def _params(found: CelType) -> Iterator[CelType]:
    if found.kind == "param":
        yield found
    for each in found.params:
        yield from _params(each)


def _read() -> dict[str, tuple[Overload, ...]]:
    known: dict[str, tuple[Overload, ...]] = {}
    for line in _lines():
        found = _LINE.fullmatch(line)
        assert found is not None, line
        args, result = tuple(map(read_type, _split(found[4]))), read_type(found[5])
        params = {each for arg in (*args, result) for each in _params(arg)}
        overload = Overload(found[2], bool(found[3]), args, result, tuple(params))
        known[found[1]] = (*known.get(found[1], ()), overload)
    return known


FUNCTIONS = _read()
