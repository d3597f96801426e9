"""msgspec never works out a type in two threads at once, which would crash the process."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "polyver"
MADE_AT_RUN_TIME = {
    "apis/conversion/_runtime.py:_keyed_values",
    "apis/declaring/_objects.py:make_part",
    "kube/objects/schema/_quick.py:_struct",
}
"""Functions that make types, each with a test below or a Decoder that it makes itself."""
ALLOWED = {
    "apis/conversion/_runtime.py:_keyed_values",
    "kube/objects/codec.py:prepare",
}

IMPORTS = """
import gc, importlib, pkgutil, sys
import msgspec, polyver

def below(kind):
    for each in type.__subclasses__(kind):
        yield each
        yield from below(each)

def unknown():
    return {
        each for each in below(msgspec.Struct)
        if each.__module__.startswith("polyver.")
        and not any(type(part).__name__ == "StructInfo" for part in gc.get_referents(each))
    }

def decoder(*types, made=msgspec.json.Decoder, **options):
    before, caller = unknown(), sys._getframe(1)
    if caller.f_code.co_name == "prepare":
        caller = caller.f_back
    found = made(*types, **options)
    own = {caller.f_globals["__name__"]} if caller.f_code.co_name != "make_part" else ()
    for each in before - unknown():
        if own and each.__module__ not in own:
            print(f"elsewhere:{each.__module__}.{each.__qualname__}")
    return found

msgspec.json.Decoder = decoder
for module in pkgutil.walk_packages(polyver.__path__, "polyver."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
for each in unknown():
    print(f"{each.__module__}.{each.__qualname__}")
"""
"""Prints the types that are not prepared, and those that another module than their own prepared:
two threads may import two such modules at the same moment."""

THREADS = """
import sys, threading
from polyver import apis
from polyver.kube.objects.schema._quick import Quick
from polyver.webhook import review

sys.setswitchinterval(1e-6)

def at_once(work):
    ready, failed = threading.Barrier(8), []

    def run():
        ready.wait()
        try:
            work()
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failed, failed

def typed_kind():
    kind = apis.Kind("Toy", group="ex.io")

    @kind.version("v1")
    class ToyV1:
        class Spec:
            size: int
            colours: list[str] | None = None
        spec: Spec

    @kind.version("v2", storage=True)
    class ToyV2:
        class Spec:
            size: int
            colours: list[str] | None = None
        spec: Spec

    @kind.converts("v1", "v2")
    def up(toy: ToyV1) -> ToyV2:
        return ToyV2(spec=ToyV2.Spec(size=toy.spec.size))

    @kind.converts("v2", "v1")
    def down(toy: ToyV2) -> ToyV1:
        return ToyV1(spec=ToyV1.Spec(size=toy.spec.size))

    toy = {"apiVersion": "ex.io/v1", "kind": "Toy", "metadata": {"name": "a"}, "spec": {"size": 1}}
    converter = kind.converter
    at_once(lambda: converter.convert(toy, "v2"))

def schema():
    places = {f"field{n}": {"type": "object", "properties": {"a": {"type": "string"}}}
              for n in range(20)}
    quick = Quick({"type": "object", "properties": places})
    at_once(lambda: quick.fits({"field1": {"a": "b"}}))

at_once(lambda: review(
    b'{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"1",'
    b'"desiredAPIVersion":"ex.io/v2","objects":[{"apiVersion":"ex.io/v1","kind":"Toy",'
    b'"metadata":{"name":"a"}}]}}', {}))
for _ in range(int(sys.argv[1])):
    {made}()
print("done")
"""


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False
    )


def test_every_type_is_prepared_when_its_module_is_imported() -> None:
    found = run(IMPORTS)
    assert found.returncode == 0, found.stderr
    unprepared = {_known_as(*name.rpartition(".")[::2]) for name in found.stdout.split()}
    assert unprepared >= {"EncodedResponse", "Reviewed"}, "values, which nothing is read into"
    assert unprepared & READ == set(), "call polyver.kube.objects.codec.prepare below the type"
    assert "elsewhere:" not in found.stdout, "a type is prepared by the module that has it"


@pytest.mark.parametrize("made", ["typed_kind", "schema"])
def test_many_threads_may_be_the_first_to_use_a_type(made: str) -> None:
    found = run(THREADS.replace("{made}", made), "25")
    assert (found.returncode, found.stdout) == (0, "done\n"), found.stderr


def test_nothing_works_out_a_type_in_a_function() -> None:
    found = {place for place, node in _calls() if _works_out(node)}
    assert found == ALLOWED, "make the Decoder a constant of its module"


def test_types_that_are_made_at_run_time_are_known() -> None:
    found = {place for place, node in _calls() if _called(node) in ("defstruct", "_Declared")}
    assert found == MADE_AT_RUN_TIME, "prepare the type where it is made, and add a test here"


def _calls() -> Iterator[tuple[str, ast.Call]]:
    """All calls inside functions, each with its file and its innermost function."""
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        yield from _calls_in(ast.parse(path.read_text()), name, "")


def _calls_in(node: ast.AST, file: str, function: str) -> Iterator[tuple[str, ast.Call]]:
    for each in ast.iter_child_nodes(node):
        inside = each.name if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) else function
        if isinstance(each, ast.Lambda):
            inside = "lambda"
        if isinstance(each, ast.Call) and inside:
            yield f"{file}:{inside}", each
        yield from _calls_in(each, file, inside)


def _names(node: ast.expr) -> Iterator[str]:
    """The types that an expression names: `_A`, `list[_A]`, `dict[str, _A]`, not `_A[...]`."""
    match node:
        case ast.Name(name):
            yield name
        case ast.Subscript(slice=inside):
            yield from _names(inside)
        case ast.Tuple(parts):
            for each in parts:
                yield from _names(each)


def _called(call: ast.Call) -> str:
    target = call.func
    if isinstance(target, ast.Attribute):
        return target.attr
    return target.id if isinstance(target, ast.Name) else ""


def _works_out(call: ast.Call) -> bool:
    keywords = {each.arg for each in call.keywords}
    if _called(call) == "decode":
        return "type" in keywords
    return _called(call) == "Decoder" and bool(call.args or "type" in keywords)


def _known_as(module: str, name: str) -> str:
    """How a type is known where it may be used: a private one in its module alone."""
    return f"{module}.{name}" if name.startswith("_") else name


def _module(place: str) -> str:
    return f"polyver.{place.partition('.py')[0].replace('/', '.')}"


READ = {
    _known_as(_module(place), name)
    for place, call in _calls()
    if _called(call) in ("read", "convert", "Decoder")
    for argument in call.args
    for name in _names(argument)
}
"""What is given to calls that may read something into a type."""
