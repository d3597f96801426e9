"""Functions, registered: what they take, and what is refused when they are loaded."""

from __future__ import annotations

import asyncio
import functools
import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.functions.samples import CATALOGUE, catalogue, known, registry
from tests.modules import forget_modules

from polyver.core import PolyverError, SemVer, Stage
from polyver.functions import (
    Alias,
    Description,
    Duration,
    Function,
    InvalidArguments,
    InvalidDuration,
    InvalidFunction,
    Registry,
)
from polyver.functions.registering import functions_data, known_functions


def registered(code: Callable[..., Any], **options: Any) -> Function:
    found = Registry()
    found.register("Sample", **options)(code)
    [function] = found
    return function


def given_to(code: Callable[..., Any], **arguments: object) -> Any:
    """What a function is called with: it returns its arguments."""
    return registered(code).call(None, arguments)


def wrong(code: Callable[..., Any], arguments: Mapping[str, object]) -> list[tuple[str, str]]:
    found = registered(code).check(arguments)
    return [
        (".".join(map(str, each.path)), f"{each.fact}; {each.hint}".strip("; ")) for each in found
    ]


# What a function takes.


def sample(
    ctx: object,
    *,
    namespace: str,
    container: str | None,
    command: list[str],
    retries: int = 3,
    timeout: Duration = "1m",  # type: ignore[assignment]
) -> dict[str, object]:
    return {key: value for key, value in locals().items() if key != "ctx"}


def test_arguments_come_from_the_signature() -> None:
    fields = {each.name: each for each in registered(sample).arguments.fields}
    assert [name for name, each in fields.items() if each.required] == ["namespace", "command"]
    assert fields["timeout"].default == Duration(60)
    assert fields["retries"].default == 3


def test_what_is_left_out_is_filled_in() -> None:
    found = given_to(sample, namespace="a", command=["ls"])
    assert found == {
        "namespace": "a",
        "container": None,
        "command": ["ls"],
        "retries": 3,
        "timeout": 60.0,
    }
    assert isinstance(found["timeout"], Duration)


def test_a_default_is_not_shared_between_calls() -> None:
    def collect(ctx: object, items: list[str] = []) -> list[str]:  # noqa: B006
        items.append("x")
        return items

    function = registered(collect)
    assert function.call(None, {}) == ["x"]
    assert function.call(None, {}) == ["x"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, [("", "the argument namespace is missing; expected string")]),
        (
            {"namespaec": "a"},
            [("namespaec", "there is no argument namespaec; did you mean namesp")],
        ),
        ({"namespace": True}, [("namespace", "expected string, found true; put it in quotes")]),
        ({"namespace": ["a"]}, [("namespace", "expected string, found a list")]),
        (
            {"command": "ls"},
            [("command", 'expected list of strings, found "ls"; write the list in')],
        ),
        ({"command": ["a", {}]}, [("command.1", "expected string, found a mapping")]),
        ({"retries": "many"}, [("retries", 'expected integer, found "many"')]),
        ({"retries": 1.5}, [("retries", "expected integer, found 1.5")]),
        ({"retries": True}, [("retries", "expected integer, found true")]),
        (
            {"timeout": 60},
            [("timeout", 'expected duration, found 60; the unit is missing: write "60s')],
        ),
        ({"timeout": "1d"}, [("timeout", 'expected duration, found "1d"; write one as 90s')]),
    ],
)
def test_wrong_arguments_are_named_with_their_place(
    arguments: dict[str, object], expected: list[tuple[str, str]]
) -> None:
    found = wrong(sample, arguments)
    for path, text in expected:
        assert any(at == path and said.startswith(text) for at, said in found), found


@pytest.mark.parametrize("name", ["namespace", "command", "retries", "timeout", "container"])
def test_a_template_may_become_anything_until_it_is_rendered(name: str) -> None:
    right = {"namespace": "a", "command": ["ls"]} | {name: "{{ .Options.it }}"}
    assert wrong(sample, right) == []
    if name not in ("namespace", "container"):
        with pytest.raises(InvalidArguments, match=name):
            given_to(sample, **{"namespace": "a", "command": ["ls"]} | {name: "{{ left }}"})


@pytest.mark.parametrize(
    ("hint", "text", "value"),
    [
        (int, "5", 5),
        (int, " -7 ", -7),
        (float, "1.5", 1.5),
        (bool, "true", True),
        (bool, "0", False),
        (str, 5, "5"),
        (str, 1.5, "1.5"),
        (int, 5.0, 5),
        (Duration, "1h1.5s", 3601.5),
        (Duration, 0, 0.0),
        (list[str], "- a\n- b", ["a", "b"]),
        (list[int], '["1", 2]', [1, 2]),
        (dict[str, int], "a: 1", {"a": 1}),
        (Literal["a", 1], "1", 1),
        (int | str, "5", "5"),
        (int | list[int], "5", 5),
        (int | list[int], [1], [1]),
        (dict[str, Any], {"a": [True]}, {"a": [True]}),
        (Any, "5", "5"),
        (str | None, None, None),
    ],
)
def test_rendered_texts_become_what_is_wanted(hint: Any, text: object, value: object) -> None:
    def echo(ctx: object, it: object) -> object:
        return it

    echo.__annotations__["it"] = hint
    found = given_to(echo, it=text)
    assert (found, type(found)) == (value, type(value) if hint is not Duration else Duration)


def test_a_number_that_is_too_long_is_refused_quickly() -> None:
    def echo(ctx: object, it: int, other: float = 0) -> object:
        return it

    assert wrong(echo, {"it": "9" * 5000, "other": "9" * 5000}) != []


def test_an_argument_may_have_a_name_that_python_does_not_know() -> None:
    def call(
        ctx: object,
        trace: Annotated[str, Alias("x-trace"), Description("Who asks.")],
        from_: str = "here",
    ) -> tuple[str, str]:
        return trace, from_

    assert given_to(call, **{"x-trace": "a", "from": "b"}) == ("a", "b")
    [data] = functions_data(known_functions([registered(call)]))["functions"]
    [first, second] = data["versions"][0]["arguments"]
    assert (first["name"], first["description"]) == ("x-trace", "Who asks.")
    assert (second["name"], second["default"]) == ("from", "here")


def test_a_function_may_take_arguments_that_it_does_not_name() -> None:
    def any_numbers(ctx: object, **further: int) -> dict[str, int]:
        return further

    assert given_to(any_numbers, a="1", b=2) == {"a": 1, "b": 2}
    assert wrong(any_numbers, {"a": "x"}) == [("a", 'expected integer, found "x"')]


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Target:
    name: str
    ports: list[int] = field(default_factory=lambda: [80])
    colour: Colour = Colour.RED


class Shape(msgspec.Struct, rename="camel"):
    width_cm: int
    target: Target | None = None


class Note(TypedDict):
    text: str
    author: NotRequired[str]


def test_a_model_of_any_sort_is_made_from_a_mapping() -> None:
    def draw(ctx: object, shape: Shape, note: Note) -> object:
        return shape, note

    target = {"name": "a", "ports": ["8080"], "colour": "blue"}
    shape, note = given_to(draw, shape={"widthCm": "3", "target": target}, note={"text": "x"})
    assert shape == Shape(3, Target("a", [8080], Colour.BLUE))
    assert note == {"text": "x"}
    assert wrong(
        draw, {"shape": {"widthcm": 3, "target": {"colour": "rde"}}, "note": "{{ it }}"}
    ) == [
        ("shape.widthcm", "there is no field widthcm; did you mean widthCm?"),
        ("shape", "the field widthCm is missing; expected integer"),
        ("shape.target", "the field name is missing; expected string"),
        ("shape.target.colour", 'expected one of red, blue, found "rde"; did you mean red?'),
    ]


@pytest.mark.parametrize("model", [Target, Shape, Note])
def test_all_arguments_may_be_one_model(model: type) -> None:
    def take(ctx: object, arguments: object) -> object:
        return arguments

    found = registered(take, model=model)
    right: dict[type, dict[str, object]] = {
        Target: {"name": "a"},
        Shape: {"widthCm": 3},
        Note: {"text": "x"},
    }
    made = found.call(None, right[model])
    assert isinstance(made, dict if model is Note else model)
    assert found.check({}) != ()


def test_what_a_model_refuses_is_told() -> None:
    @dataclass
    class Even:
        number: int

        def __post_init__(self) -> None:
            if self.number % 2:
                raise ValueError("it is odd")

    def take(ctx: object, arguments: Even) -> object:
        return arguments

    function = registered(take, model=Even)
    assert function.call(None, {"number": "2"}) == Even(2)
    with pytest.raises(InvalidArguments, match="it is odd"):
        function.call(None, {"number": 3})


def test_plain_async_and_other_callables_are_called() -> None:
    async def waits(ctx: object, a: int) -> int:
        return a

    class Doubler:
        def __call__(self, ctx: object, a: int) -> int:
            return 2 * a

    assert registered(waits).is_async
    assert asyncio.run(registered(waits).call(None, {"a": "1"})) == 1
    assert not registered(Doubler()).is_async
    assert registered(Doubler()).call(None, {"a": 2}) == 4

    def add(ctx: object, a: int, b: int) -> int:
        return a + b

    assert registered(functools.partial(add, b=1)).call(None, {"a": "2"}) == 3


def test_a_partial_is_described_by_its_function() -> None:
    def add(ctx: object, a: int, b: int) -> int:
        """Adds."""
        return a + b

    async def later(ctx: object, a: int) -> int:
        return a

    assert registered(functools.partial(add, b=1)).description == "Adds."
    assert registered(functools.partial(later)).is_async


def test_a_function_without_hints_works_as_it_is() -> None:
    def old(ctx, namespace, pod=None):  # type: ignore[no-untyped-def]
        return namespace, pod

    assert given_to(old, namespace=["anything"]) == (["anything"], None)


@given(
    st.dictionaries(
        st.sampled_from(["namespace", "command", "timeout", "x"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
            ),
            max_leaves=8,
        ),
    )
)
def test_whatever_is_given_is_taken_or_refused_in_words(arguments: dict[str, Any]) -> None:
    """What passes before rendering and holds no template passes afterwards, and the reverse."""
    function = registered(sample)
    early = function.check(arguments)
    assert all(each.fact for each in early)
    late: tuple[object, ...] = ()
    try:
        function.call(None, arguments)
    except InvalidArguments as error:
        late = error.wrong
    assert late == early or "{{" in str(arguments)


@given(st.integers(-(10**12), 10**12))
def test_a_duration_is_read_as_it_is_shown(milliseconds: int) -> None:
    duration = Duration(milliseconds / 1000)
    assert abs(Duration(str(duration)) - duration) < 1e-6


def test_a_text_that_is_no_duration_is_refused() -> None:
    with pytest.raises(InvalidDuration, match='"soon" is not a duration; write one as'):
        Duration("soon")


# What cannot be registered.


def no_context() -> None: ...
def star(ctx: object, *rest: str) -> None: ...
def positional(ctx: object, a: str, /) -> None: ...
def keys(ctx: object, a: dict[int, str]) -> None: ...
def strange(ctx: object, a: set[str]) -> None: ...
def nowhere(ctx: object, a: Nowhere) -> None: ...  # type: ignore[name-defined] # noqa: F821
def default(ctx: object, a: int = "x") -> None: ...  # type: ignore[assignment]
def twice(ctx: object, a: int, b: Annotated[int, Alias("a")]) -> None: ...


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        (no_context, "the first argument of a function is its context"),
        (star, "rest cannot be passed by name"),
        (positional, "a cannot be passed by name"),
        (keys, r"the keys of dict\[int, str\] are not strings"),
        (strange, r"set\[str\] is not a type for an argument"),
        (nowhere, "Nowhere is not known where nowhere is declared"),
        (default, 'its default is invalid: expected integer, found "x"'),
        (twice, "two arguments have the name a"),
        ("text", "Sample is not a function"),
    ],
)
def test_a_function_that_blueprints_could_not_call_is_refused(code: Any, complaint: str) -> None:
    with pytest.raises(InvalidFunction, match=complaint) as refused:
        registered(code)
    assert "test_registering.py:" in refused.value.at


@pytest.mark.parametrize(
    ("name", "options", "complaint"),
    [
        ("", {}, "'' is not a valid name for a function"),
        ("a b", {}, "'a b' is not a valid name"),
        ("A@v1", {}, "'A@v1' is not a valid name"),
        (sample, {}, "the name of the function is missing"),
        ("A", {"version": "one"}, '"one" is not a semantic version'),
        ("A", {"version": 1}, "a version must be a string"),
        ("A", {"model": int}, "int is not a model"),
    ],
)
def test_what_it_is_registered_as_has_to_make_sense(
    name: Any, options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(InvalidFunction, match=complaint):
        Registry().register(name, **options)(lambda ctx, it: None)


# What is found, and what is refused when everything is put together.


def versions(name: str, text: str = CATALOGUE) -> dict[str, str]:
    return {each.name: each.stage.value for each in known(text).get(name).lineage}


def test_registration_of_multiple_versions_of_a_function() -> None:
    """The seed's first test case."""
    assert versions("KubeExec") == {
        "v0.0.0": "candidate",
        "v0.1.0": "stable",
        "v0.2.0": "candidate",
    }
    code = known().get("KubeExec").code
    calls = {str(version): function.call(None, ARGUMENTS) for version, function in code.items()}
    answers = {version: asyncio.run(call)["version"] for version, call in calls.items()}
    assert answers == {"0.0.0": "v0.0.0", "0.1.0": "v0.1.0", "0.2.0": "v0.2.0"}


ARGUMENTS = {"namespace": "a", "pod": "b", "command": ["c"]}


def test_the_catalogue_says_which_version_is_stable_and_what_is_gone() -> None:
    assert versions("Report") == {
        "v0.0.0": "deprecated",
        "v0.0.9": "removed",
        "v0.1.0": "stable",
        "v0.2.0": "candidate",
    }


def test_the_catalogue_wins_over_the_code() -> None:
    text = CATALOGUE + (
        "  KubeExec:\n    versions:\n      v0.0.0: {stage: stable}\n"
        "      v0.1.0: {stage: candidate}\n      v0.2.0: {stage: candidate}\n"
    )
    assert versions("KubeExec", text)["v0.0.0"] == "stable"
    assert versions("KubeExec", text)["v0.1.0"] == "candidate"


def test_a_function_that_no_catalogue_names_has_v000_stable() -> None:
    lineage = known().get("Plain").lineage
    assert [(each.name, each.stage) for each in lineage] == [("v0.0.0", Stage.STABLE)]
    assert not lineage.versioned


def refusal(*functions: Function, text: str = CATALOGUE) -> PolyverError:
    with pytest.raises(InvalidFunction) as refused:
        known_functions([*registry(), *functions], [catalogue(text)])
    return refused.value


def extra(name: str, version: str | None = None, **options: Any) -> Function:
    found = Registry()
    found.register(name, version=version, **options)(lambda ctx: None)
    [function] = found
    return function


@pytest.mark.parametrize("version", ["v0.1.0", "0.1", "v0.1.0+linux"])
def test_a_version_cannot_be_registered_twice(version: str) -> None:
    error = refusal(extra("KubeExec", version))
    assert error.fact.startswith("KubeExec v0.1.0")
    assert "registered twice" in error.fact
    assert "samples.py:" in error.at
    assert "test_registering.py:" in error.at


def test_the_number_of_a_removed_version_is_never_used_again() -> None:
    error = refusal(extra("Report", "v0.0.9"))
    assert error.fact == "Report v0.0.9 is registered, and the catalogue lists it as removed"
    assert "test_registering.py:" in error.at
    assert "catalogue.yaml:8" in error.at


def test_a_version_past_its_removal_loads_and_cannot_be_used() -> None:
    later = known(CATALOGUE.replace("0.3.0]", "0.3.0, 0.4.0]"))
    found = later.get("Report").lineage.get(SemVer.parse("0.0.0"))
    assert found is not None
    assert found.stage is Stage.REMOVED


def test_versions_without_v000_and_without_a_stable_one_are_refused() -> None:
    error = refusal(extra("New", "v1.0.0"), extra("New", "v1.1.0"))
    assert error.fact == "New has neither v0.0.0 nor a stable version"
    assert error.at.count("test_registering.py:") == 2
    listed = CATALOGUE + "  New: {versions: {v1.0.0: {stage: stable}}}\n"
    known_functions([*registry(), extra("New", "v1.0.0")], [catalogue(listed)])


def test_two_stable_versions_and_a_stable_prerelease_are_refused() -> None:
    both = refusal(extra("New", "v1", stable=True), extra("New", "v2", stable=True))
    assert both.fact == "New has the stable versions v1.0.0, v2.0.0"
    early = refusal(extra("New", "v1.0.0-rc.1", stable=True))
    assert early.fact == "New v1.0.0-rc.1 is stable and a prerelease"


def test_a_version_that_is_listed_as_usable_needs_code() -> None:
    error = refusal(text=CATALOGUE.replace("v0.2.0: {", "v0.3.0: {"))
    assert error.fact == "Report v0.3.0 is candidate, and no code registers it"
    assert "catalogue.yaml:7" in error.at


def test_a_version_that_is_not_listed_is_a_candidate_with_a_warning() -> None:
    found = known_functions([*registry(), extra("Report", "v0.3.0")], [catalogue()])
    [warning] = found.warnings
    assert "Report v0.3.0" in warning
    assert "it counts as a candidate" in warning
    release = found.get("Report").lineage.get(SemVer.parse("0.3.0"))
    assert release is not None
    assert release.stage is Stage.CANDIDATE


def test_a_function_in_two_catalogues_is_refused() -> None:
    with pytest.raises(InvalidFunction, match="Report is in two catalogues") as refused:
        known_functions(registry(), [catalogue(), catalogue(source="other.yaml")])
    assert refused.value.at == "catalogue.yaml:3 and other.yaml:3"


def test_each_catalogue_has_its_own_clock() -> None:
    other = CATALOGUE.replace("Report", "KubeExec").replace("0.3.0]", "0.3.0, 0.4.0]")
    found = known_functions(registry(), [catalogue(), catalogue(other, "other.yaml")])
    first = SemVer.parse("0.0.0")
    stages = [found.get(name).lineage.get(first) for name in ("Report", "KubeExec")]
    assert [each.stage.value for each in stages if each] == ["deprecated", "removed"]
    later = found.at(SemVer.parse("0.4.0")).get("Report").lineage.get(first)
    assert later is not None
    assert later.stage is Stage.REMOVED


# What a module offers.


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ModuleType]]:
    monkeypatch.syspath_prepend(tmp_path)

    def load(name: str, **files: str) -> ModuleType:
        for path, text in files.items():
            file = tmp_path / f"{path.replace('packed__', 'packed/')}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return importlib.import_module(name)

    yield load
    forget_modules(tmp_path)


FILE = "from polyver import functions\n@functions.register({name!r})\ndef run(ctx): ...\n"


def test_the_decorator_keeps_functions_in_their_module(module: Callable[..., ModuleType]) -> None:
    one = module(
        "one_of_two", one_of_two=FILE.format(name="One"), two_of_two=FILE.format(name="Two")
    )
    assert [each.name for each in Registry.of(one)] == ["One"]


def test_both_are_seen_when_one_definition_hides_the_other(
    module: Callable[..., ModuleType],
) -> None:
    doubled = module("doubled", doubled=FILE.format(name="One") + FILE.format(name="One"))
    with pytest.raises(InvalidFunction, match="is registered twice") as refused:
        known_functions(Registry.of(doubled))
    assert refused.value.at.endswith("doubled.py:5")


def test_a_module_offers_what_it_imports_by_name(module: Callable[..., ModuleType]) -> None:
    here = module(
        "names_it", names_it="from holds_it import run\n", holds_it=FILE.format(name="Far")
    )
    assert [each.name for each in Registry.of(here)] == ["Far"]


def test_a_package_offers_what_the_modules_below_it_register(
    module: Callable[..., ModuleType],
) -> None:
    package = module(
        "packed",
        packed____init__="from packed import _one, _two\n",
        packed___one=FILE.format(name="One"),
        packed___two=FILE.format(name="Two"),
    )
    assert [each.name for each in Registry.of(package)] == ["One", "Two"]


def test_hints_mean_what_they_mean_where_they_are_written(
    module: Callable[..., ModuleType],
) -> None:
    """Kind is one thing in the module of the model, and another where the function is."""
    there = (
        "from dataclasses import dataclass\nKind = int\n@dataclass\nclass Model:\n    a: 'Kind'\n"
    )
    here = (
        "from other_names import Model\nfrom polyver import functions\nKind = str\n"
        "@functions.register('A')\ndef run(ctx, model: 'Model', b: 'Kind'): return model, b\n"
    )
    [function] = Registry.of(module("own_names", own_names=here, other_names=there))
    model, text = function.call(None, {"model": {"a": "5"}, "b": 5})
    assert (model.a, text) == (5, "5")
