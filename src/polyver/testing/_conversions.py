"""Test conversions: by a table of cases, on generated objects, or by a walk through all versions.

Each function takes a kind or a converter. A walk can also use an API server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from typing import TYPE_CHECKING, Any

from polyver.apis import Kind
from polyver.apis.commands.check_output import finding_lines
from polyver.apis.compatibility import FindingSeverity
from polyver.apis.conversion import Converter
from polyver.apis.conversion.paths import pick
from polyver.apis.conversion.values import MISSING
from polyver.apis.trials import CheckedKind, check
from polyver.core import KubeVersion, PolyverError
from polyver.core.plain import Object
from polyver.kube.objects import dump_yaml
from polyver.kube.objects.converted_metadata import fresh
from polyver.languages.values.strings import same
from polyver.testing._requests import ApiEndpoint, ask

if TYPE_CHECKING:
    import pytest

    from polyver.testing.plugin import Kube

__all__ = ["ConversionCase", "check_conversions", "check_law", "conversion_cases", "walk_versions"]


@dataclass(frozen=True, slots=True)
class ConversionCase:
    """A row of a table test: an object, the version to convert it to, and the expected result.

    `output` is the expected object, or `error` a part of the expected error message. With neither,
    the test passes if the conversion succeeds. Preserved fields are compared only if `output` has
    preserved fields.
    """

    name: str
    version: str
    input: Object
    output: Object | None = None
    error: str | None = None
    """A part of the message of the expected error; None if no error is expected."""

    def check(self, kind: Kind | Converter) -> None:
        """Convert the object; if the result is not as expected, fail with the differences."""
        problem = self._problem(_converter(kind))
        if problem:
            raise AssertionError(f"{self.name}: {problem}")

    def _problem(self, converter: Converter) -> str:
        try:
            made = converter.convert(fresh(self.input), self.version)
        except Exception as error:  # users' code may raise anything
            if self.error is not None and self.error in str(error):
                return ""
            expected = f", and not with {self.error!r}" if self.error is not None else ""
            return f"it fails with {type(error).__name__}: {error}{expected}"
        if self.error is not None:
            return f"it is converted, and should fail with {self.error!r}"
        if self.output is None:
            return ""
        says_carry = pick(self.output, converter.keeping.path) is not MISSING
        return _difference(self.output, made if says_carry else converter.visible(made))


def _difference(expected: Object, made: Object) -> str:
    if same(expected, made):
        return ""
    shown = unified_diff(_yaml(expected), _yaml(made), "expected", "found", lineterm="")
    return "\n".join(["it is converted to something else", *shown])


def _yaml(obj: Object) -> list[str]:
    return dump_yaml({name: obj[name] for name in sorted(obj)}).splitlines()


def check_conversions(kind: Kind | Converter, cases: Iterable[ConversionCase]) -> None:
    """Check all rows of a table; fail with a report of all rows that fail."""
    converter = _converter(kind)
    problems = [f"{case.name}: {found}" for case in cases if (found := case._problem(converter))]
    if problems:
        raise AssertionError("\n".join(problems))


def conversion_cases(cases: Sequence[ConversionCase]) -> pytest.MarkDecorator:
    """Parametrize a pytest test with the rows of a table; the test gets each row as `case`."""
    import pytest

    return pytest.mark.parametrize("case", cases, ids=[case.name for case in cases])


def check_law(kind: Kind | Converter, *, examples: int = 200, seed: int = 0) -> None:
    """Check conversions on generated objects, as `polyver check` does; needs hypothesis.

    If there is a breaking finding, fail. The message has each breaking finding, with the smallest
    object that shows it.
    """
    found = check(kind, examples=examples, seed=seed).findings
    breaking = [each for each in found if each.severity is FindingSeverity.BREAKING]
    if breaking:
        texts = ("\n".join(finding_lines(each)) for each in breaking)
        raise AssertionError("\n\n".join([*texts, f"seed={seed}"]))


def _converter(kind: Kind | Converter) -> Converter:
    if isinstance(kind, Converter):
        return kind
    return CheckedKind.of(kind).converter


# The walk


def walk_versions(
    where: Kind | Converter | Kube | ApiEndpoint,
    seed: Object,
    test: Callable[[Object], object],
    *,
    min_version: str | None = None,
    max_version: str | None = None,
) -> Object:
    """Convert an object up through the versions, by ascending priority, and down again.

    `test` is called with the object `seed`, and then with the converted object in each version from
    `min_version` to `max_version`. On a server, the object is created, and then read and written in
    each version. The function returns the last state of the object.
    """
    walk: _InProcess | _OnServer
    if isinstance(where, Kind | Converter):
        walk = _InProcess(_converter(where), seed)
    else:
        walk = _OnServer(where, seed)
    ascending = _between(walk.versions, min_version, max_version)
    _call(test, walk.start(), "as the seed")
    obj = seed
    for version in ascending:
        obj = walk.go(version)
        _call(test, obj, f"in {version}, on the way up")
    for version in ascending[-2::-1]:
        obj = walk.go(version)
        _call(test, obj, f"in {version}, on the way down")
    return obj


def _between(versions: Sequence[str], least: str | None, most: str | None) -> list[str]:
    """Return the versions from `least` to `most`, in ascending order of their priority."""
    low = KubeVersion.parse(least) if least is not None else None
    high = KubeVersion.parse(most) if most is not None else None
    order = sorted(versions, key=KubeVersion.parse)
    found = [
        each
        for each in order
        if (low is None or low <= KubeVersion.parse(each))
        and (high is None or KubeVersion.parse(each) <= high)
    ]
    if not found:
        fact = f"no version is between {least or order[0]} and {most or order[-1]}"
        raise PolyverError(fact, hint=f"known: {', '.join(order)}")
    return found


def _call(test: Callable[[Object], object], obj: Object, stop: str) -> None:
    try:
        test(fresh(obj))
    except BaseException as error:
        error.add_note(f"with the object {stop}")
        raise


class _InProcess:
    def __init__(self, converter: Converter, seed: Object) -> None:
        self._converter = converter
        self._obj = seed
        self.versions = converter.versions

    def start(self) -> Object:
        return self._obj

    def go(self, version: str) -> Object:
        self._obj = self._converter.convert(self._obj, version)
        return self._obj


class _OnServer:
    def __init__(self, where: Any, seed: Object) -> None:
        self._server: ApiEndpoint = getattr(where, "server", where)
        self._seed = fresh(seed)
        self._group, _, self._version = str(seed.get("apiVersion")).rpartition("/")
        namespace = getattr(where, "namespace", "default")
        self._namespace = self._seed.setdefault("metadata", {}).get("namespace") or namespace
        root = f"/apis/{self._group}"
        served = ask(self._server, "GET", root)["versions"] if self._group else [{"version": "v1"}]
        lists = {each["version"]: self._resource(each["version"]) for each in served}
        self._resources = {version: found for version, found in lists.items() if found}
        self.versions = tuple(self._resources)
        if self._version not in self._resources:
            fact = f"{seed.get('kind')} of {seed.get('apiVersion')} is not served"
            raise PolyverError(fact)

    def _resource(self, version: str) -> Object | None:
        """Return what discovery reports about the kind in a version; None if it is not served."""
        listed = ask(self._server, "GET", self._root(version))["resources"]
        kind = self._seed.get("kind")
        return next((e for e in listed if e["kind"] == kind and "/" not in e["name"]), None)

    def _root(self, version: str) -> str:
        return f"/apis/{self._group}/{version}" if self._group else f"/api/{version}"

    def _path(self, version: str) -> str:
        resource = self._resources[version]
        assert resource is not None
        inside = f"/namespaces/{self._namespace}" if resource["namespaced"] else ""
        return f"{self._root(version)}{inside}/{resource['name']}"

    def start(self) -> Object:
        made: Object = ask(self._server, "POST", self._path(self._version), self._seed)
        self._name = made["metadata"]["name"]
        return made

    def go(self, version: str) -> Object:
        path = f"{self._path(version)}/{self._name}"
        found: Object = ask(self._server, "PUT", path, ask(self._server, "GET", path))
        return found
