"""Fails when two public classes share a name, or a private module is imported from outside.

A class name is used once in the code base, or the class is private to one module: its name begins
with an underscore. A module whose name begins with an underscore is imported by its own package
alone.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"


def main() -> int:
    """Print each problem, and return the exit code."""
    trees = {path: ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}
    problems = [*shared_classes(classes(trees)), *private_imports(trees)]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def classes(trees: Mapping[Path, ast.Module]) -> dict[str, list[str]]:
    """Return the modules that define each public class, by its name."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(module_name(path))
    return dict(found)


def shared_classes(found: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Report class names that several modules define."""
    for name, modules in sorted(found.items()):
        if len(modules) > 1:
            yield f"class {name} is defined in {', '.join(modules)}; rename all but one"


def private_imports(trees: Mapping[Path, ast.Module]) -> Iterator[str]:
    """Report imports of a private module by a module that is not in its package."""
    known = {module_name(path) for path in trees}
    for path, tree in trees.items():
        importer = module_name(path)
        for imported, line in imports(tree, known):
            owner = private_owner(imported)
            if owner is not None and not f"{importer}.".startswith(f"{owner}."):
                where = path.relative_to(SOURCE.parent)
                yield f"{where}:{line} imports {imported}, which is private to {owner}"


def imports(tree: ast.Module, known: set[str]) -> Iterator[tuple[str, int]]:
    """Yield the modules of polyver that a module imports, with the lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                whole = f"{node.module}.{each.name}"
                yield (whole if whole in known else node.module), node.lineno
        elif isinstance(node, ast.Import):
            yield from ((each.name, node.lineno) for each in node.names)


def private_owner(module: str) -> str | None:
    """Return the package that may import a module, if the module is private.

    >>> private_owner("polyver.kube.objects._structs")
    'polyver.kube.objects'
    """
    parts = module.split(".")
    for number, part in enumerate(parts):
        if part.startswith("_") and not part.startswith("__"):
            return ".".join(parts[:number]) if parts[0] == "polyver" else None
    return None


def module_name(path: Path) -> str:
    """Return the dotted name of a file in the source folder."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


if __name__ == "__main__":
    sys.exit(main())
