"""`polyver create api`, as someone types it, and the projects that come of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.app.test_cli import Ran
from tests.modules import forget_modules

GROUP = "stable.example.com"
TOOLS = Path(sys.executable).parent
KIND = "src/shop/kinds/crontab.py"
LAW = "tests/test_crontab.py"
Create = Callable[..., Ran]
Definitions = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, and we are in it."""
    folder = tmp_path / "shop"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def create(capsys: pytest.CaptureFixture[str], shop: Path) -> Create:
    def run(version: str, *more: str, kind: str = "CronTab", group: str = GROUP) -> Ran:
        named = ["--group", group, "--version", version, "--kind", kind]
        return Ran(capsys, "create", "api", *named, *more)

    return run


@pytest.fixture
def definitions(
    capsys: pytest.CaptureFixture[str], shop: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Definitions]:
    """What `polyver crds` makes of the project, as it is when it is asked."""
    monkeypatch.setattr(sys, "path", sys.path[:])

    def read() -> list[dict[str, Any]]:
        forget_modules(shop)
        ran = Ran(capsys, "crds", "-o", "json")
        assert ran.code == 0, ran.err
        found = json.loads(ran.out)
        return list(found.get("items", [found]))

    yield read
    forget_modules(shop)


def tool(*command: str) -> str:
    """Run one of the environment's programs here; it must end well."""
    variables = {**os.environ, "PATH": f"{TOOLS}{os.pathsep}{os.environ['PATH']}"}
    ran = subprocess.run(command, capture_output=True, text=True, env=variables, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def check_project(*, types: bool = False) -> str:
    """What a project is checked with says that it is right; its tests pass."""
    tool("ruff", "check", "--isolated", ".")
    tool("ruff", "format", "--isolated", "--check", ".")
    if types:  # which takes its time
        tool("mypy", "--strict")
    return run_tests()


def run_tests() -> str:
    return tool("pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist")


def stored(crd: dict[str, Any]) -> dict[str, bool]:
    return {each["name"]: each["storage"] for each in crd["spec"]["versions"]}


def files() -> dict[str, bytes]:
    """Every file here, but for what tools leave behind."""
    return {
        str(path): path.read_bytes()
        for path in sorted(Path().rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def put(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(text.encode())


def converted(capsys: pytest.CaptureFixture[str], version: str, spec: Any, to: str) -> Any:
    """The spec of an object of one version in another, as `polyver convert` has it."""
    obj = {"apiVersion": f"{GROUP}/{version}", "kind": "CronTab", "metadata": {"name": "a"}}
    put("object.json", json.dumps(obj | {"spec": spec}))
    named = ["-f", "object.json", "--kinds", KIND, "--to", f"{GROUP}/{to}", "-o", "json"]
    ran = Ran(capsys, "convert", *named)
    assert ran.code == 0, ran.err
    return json.loads(ran.out)["spec"]


# A project from nothing.


def test_an_empty_folder_becomes_a_project_that_is_right_at_once(
    create: Create, definitions: Definitions
) -> None:
    ran = create("v1")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "wrote pyproject.toml",
        "wrote src/shop/__init__.py",
        "wrote src/shop/kinds/__init__.py",
        f"wrote {KIND}",
        f"wrote {LAW}",
    ]
    assert sorted(files()) == sorted(line.split()[1] for line in ran.out.splitlines())
    assert "2 passed" in check_project()
    [crd] = definitions()
    assert crd["metadata"]["name"] == f"crontabs.{GROUP}"
    assert [(v["name"], v["storage"]) for v in crd["spec"]["versions"]] == [("v1", True)]
    assert crd["spec"]["versions"][0]["subresources"] == {"status": {}}


def test_three_versions_are_right_and_convert_there_and_back(
    create: Create, definitions: Definitions, capsys: pytest.CaptureFixture[str]
) -> None:
    create("v1")
    ran = create("v2")
    assert ran.out.splitlines() == [
        f"changed {KIND}",
        "wrote tests/test_crontab_v2.py",
        "v2 is a copy of v1; the storage version is v1",
    ]
    assert stored(*definitions()) == {"v2": False, "v1": True}
    ran = create("v3", "--storage")
    assert ran.out.splitlines()[-1] == "v3 is a copy of v2; the storage version is v3"
    assert stored(*definitions()) == {"v3": True, "v2": False, "v1": False}
    assert "8 passed" in check_project(types=True)
    text = Path(KIND).read_text()
    assert text.count("storage=True") == 1
    assert text.count("storage=False") == 2
    assert text.count(".reconcile") == 1
    assert text.index('edge("v1", "v2")') < text.index("CronTabV3") < text.index(".reconcile")
    assert converted(capsys, "v1", {"message": "hello"}, "v3") == {"message": "hello"}
    assert converted(capsys, "v3", {"message": "hello"}, "v1") == {"message": "hello"}


def test_rules_that_are_written_into_the_edge_are_used(
    create: Create, definitions: Definitions, capsys: pytest.CaptureFixture[str]
) -> None:
    create("v1")
    create("v2")
    text = Path(KIND).read_text()
    head, edge = text.split("    # v2 is still a copy of v1", 1)
    old, new = head.split('@crontab.version("v2"')
    rule = '    rules.move("spec.message", "spec.text")\n'
    put(
        KIND,
        f'{old}@crontab.version("v2"{new.replace("message:", "text:")}{rule}    # was{edge}',
    )
    create("v3")
    definitions()
    assert converted(capsys, "v1", {"message": "hello"}, "v3") == {"text": "hello"}
    assert converted(capsys, "v3", {"text": "hello"}, "v1") == {"message": "hello"}
    assert "8 passed" in check_project()


def test_another_kind_gets_a_module_of_its_own(create: Create, definitions: Definitions) -> None:
    create("v1")
    before = files()
    ran = create("v1beta1", "--plural", "boxen", "--scope", "Cluster", kind="Box")
    assert ran.out.splitlines() == [
        "changed src/shop/kinds/__init__.py",
        "wrote src/shop/kinds/box.py",
        "wrote tests/test_box.py",
    ]
    after = files()
    assert {name for name in before if before[name] != after[name]} == {
        "src/shop/kinds/__init__.py"
    }
    box, crontab = definitions()
    assert (box["metadata"]["name"], box["spec"]["scope"]) == (f"boxen.{GROUP}", "Cluster")
    assert crontab["spec"]["scope"] == "Namespaced"


def test_one_kind_in_two_groups_is_two_kinds(create: Create, definitions: Definitions) -> None:
    create("v1")
    ran = create("v1", group="other.example.com")
    assert "wrote src/shop/kinds/crontab_other_example_com.py" in ran.out
    create("v2", group="other.example.com")
    assert [len(crd["spec"]["versions"]) for crd in definitions()] == [2, 1]


def test_a_kind_may_be_called_as_something_in_python(
    create: Create, definitions: Definitions
) -> None:
    kinds = ["Any", "Apis", "Class", "Dict", "Given", "HTTPProxy2", "Kind", "Reconcile", "Test"]
    kinds.append("T" + "a" * 40)  # which is wrapped in places
    for kind in reversed(kinds):
        assert create("v1", kind=kind).code == 0
        assert create("v2alpha1", "--storage", kind=kind).code == 0
    assert create("v1", kind="Test", group="other.example.com").code == 0
    assert "52 passed" in check_project()
    found = [crd["spec"]["names"]["kind"] for crd in definitions()]
    assert sorted(found) == sorted([*kinds, "Test"])


def test_a_dry_run_says_what_would_be_and_writes_nothing(create: Create) -> None:
    assert "would write pyproject.toml" in create("v1", "--dry-run").out
    assert files() == {}
    create("v1")
    before = files()
    assert create("v2", "--dry-run").out.splitlines() == [
        f"would change {KIND}",
        "would write tests/test_crontab_v2.py",
        "v2 is a copy of v1; the storage version is v1",
    ]
    assert files() == before


def test_the_project_may_be_elsewhere(create: Create, shop: Path) -> None:
    assert "wrote my-shop/src/my_shop/kinds/crontab.py" in create("v1", "--output", "my-shop").out
    said = tomllib.loads(Path("my-shop/pyproject.toml").read_text())
    assert said["project"]["name"] == "my-shop"
    assert said["tool"]["polyver"]["kinds"] == ["my_shop.kinds"]
    elsewhere = shop.parent / "market"
    assert (
        f"wrote {elsewhere}/src/market/kinds/crontab.py"
        in create("v1", "--output", "../market").out
    )


# A project that is there already.

THEIRS = """# Our shop.
[project]
name = "Our.Shop"   # with a dot
version = "1"

[tool.ruff]
line-length = 120

[tool.pytest.ini_options]
pythonpath = ["src"]
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("end", ["", "\n", "\n\n# The end."])
def test_a_pyproject_is_only_added_to(create: Create, newline: str, end: str) -> None:
    before = (THEIRS.rstrip() + end).replace("\n", newline)
    put("pyproject.toml", before)
    assert "changed pyproject.toml" in create("v1").out
    after = Path("pyproject.toml").read_bytes().decode()
    assert after.startswith(before)
    assert tomllib.loads(after)["tool"]["polyver"] == {"kinds": ["our_shop.kinds"]}
    assert after.count("\n") == after.count(newline)
    assert "pythonpath" not in after.removeprefix(before)  # theirs is as good


def test_pytest_is_told_where_modules_are_unless_it_is_configured(create: Create) -> None:
    put("pyproject.toml", '[project]\nname = "shop"\n')
    create("v1")
    assert "2 passed" in run_tests()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '[tool.polyver] # ours\n\n[project]\nname = "shop"\n',
            '[tool.polyver] # ours\nkinds = ["shop.kinds"]\n\n[project]\nname = "shop"\n',
        ),
        ("", None),
        ("[tool]\nother = 1\n", None),
    ],
)
def test_a_section_that_is_there_is_used(create: Create, before: str, after: str | None) -> None:
    put("pyproject.toml", before)
    create("v1")
    text = Path("pyproject.toml").read_text()
    assert after is None or text == after
    assert text.startswith(before) or after
    assert tomllib.loads(text)["tool"]["polyver"]["kinds"] == ["shop.kinds"]


@pytest.mark.parametrize(
    "before",
    [
        "[tool]\npolyver = {}\n",
        "[tool]\npolyver = 5\n",
        "tool.polyver.other = 1\n",
        'tool = {polyver = {other = 1}}\n[project]\nname = "shop"\n',
        'a = """\n[tool.polyver]\n"""\n',
    ],
)
def test_a_pyproject_that_cannot_be_edited_safely_is_left_alone(
    create: Create, before: str
) -> None:
    put("pyproject.toml", before)
    ran = create("v1")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == (
        "error: pyproject.toml cannot be edited safely (pyproject.toml); write [tool.polyver] "
        'kinds = ["shop.kinds"] to it, and run this again\n'
    )
    assert files() == {"pyproject.toml": before.encode()}


def test_kinds_go_where_the_project_has_them(create: Create, definitions: Definitions) -> None:
    put("pyproject.toml", '[tool.polyver]\nkinds = ["crds/old.yaml", "market.platform.apis"]\n')
    put("market/__init__.py", "")
    put("market/platform/__init__.py", "")
    put("market/platform/apis/__init__.py", '"""Ours."""\n# Nothing yet.\n')
    put("tests/conftest.py", "")
    assert create("v1").out.splitlines() == [
        "changed market/platform/apis/__init__.py",
        "wrote market/platform/apis/crontab.py",
        "wrote tests/test_crontab.py",
    ]
    text = Path("market/platform/apis/__init__.py").read_text()
    assert text == ('"""Ours."""\n\nfrom .crontab import crontab as crontab\n# Nothing yet.\n')
    create("v2")
    Path("pyproject.toml").write_text('[tool.polyver]\nkinds = ["market.platform.apis"]\n')
    assert stored(*definitions()) == {"v2": False, "v1": True}


def test_a_flat_project_stays_flat(create: Create, definitions: Definitions) -> None:
    put("shop/__init__.py", "")
    assert "wrote shop/kinds/crontab.py" in create("v1").out
    assert len(definitions()) == 1


def test_kinds_in_one_file_get_versions_there_and_no_more_kinds(
    create: Create, definitions: Definitions
) -> None:
    put("pyproject.toml", '[tool.polyver]\nkinds = ["kinds.py"]\n')
    put(
        "kinds.py",
        "from polyver import apis\n"
        f'crontab = apis.Kind("CronTab", group="{GROUP}")\n'
        '@crontab.version("v1")\nclass CronTab:\n    spec: dict\n',
    )
    assert create("v2").out.splitlines()[0] == "changed kinds.py"
    assert stored(*definitions()) == {"v2": False, "v1": True}
    before = files()
    ran = create("v1", kind="Box")
    assert (ran.code, files()) == (2, before)
    assert ran.err.endswith(
        '(pyproject.toml); add "shop.kinds" to the kinds in [tool.polyver], and run this again\n'
    )
    put("pyproject.toml", '[tool.polyver]\nkinds = ["kinds.py", "shop.kinds"]\n')
    assert create("v1", kind="Box").code == 0
    assert len(definitions()) == 2


# Files that somebody else wrote.

THEIR_KIND = f'''"""Ours, all of it."""  # really

from polyver import apis
GROUP = "{GROUP}"
crontab = apis.Kind(  # the kind
    "CronTab", group=GROUP, short_names=["ct"],
)


@crontab.version(
    "v1",  # the old one
    columns=[
        apis.Column("When", ".spec.cronSpec"),
    ],
    deprecated='it is "old"',
)
@apis.Rule(
    "has(self.spec)",  # ü: not only ASCII
)
class CronTabV1:
    """Runs a command."""

    class Spec:
        cronSpec: str; "When."
        replicas: int  =  1   # badly formatted, and staying so

    spec: Spec

    def copied(self) -> "CronTabV1":
        return CronTabV1(spec=self.spec)

    # The end of v1.


# What comes next is none of polyver's business.
LIMIT = 5
'''


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_all_that_somebody_wrote_stays(
    create: Create, definitions: Definitions, newline: str, bom: str
) -> None:
    put("src/shop/kinds/__init__.py", "from .crontab import crontab as crontab\n")
    put(KIND, bom + THEIR_KIND.replace("\n", newline))
    ran = create("v2beta1")
    assert ran.out.splitlines()[-1] == "v2beta1 is a copy of v1; the storage version is v1"
    text = Path(KIND).read_bytes().decode()
    assert text.count("\n") == text.count(newline)
    lines = text.removeprefix(bom).replace(newline, "\n").splitlines()
    theirs = THEIR_KIND.splitlines()
    added = [line for line in lines if line not in theirs and line.strip()]
    assert added[:3] == ["    storage=True,", '    "v2beta1",', "    storage=False,"]
    assert lines[: lines.index("    storage=True,")] == theirs[: theirs.index("    columns=[")]
    first = lines.index("    # The end of v1.")
    assert lines[first + 1 : first + 3] == ["", ""]
    assert lines[-2:] == theirs[-2:]
    assert sorted(Path("tests").iterdir()) == [Path(LAW), Path("tests/test_crontab_v2beta1.py")]
    assert lines.index("class CronTabV2beta1:") < lines.index('@crontab.edge("v1", "v2beta1")')
    put("pyproject.toml", '[tool.polyver]\nkinds = ["shop.kinds"]\n')
    [crd] = definitions()
    new, old = sorted(crd["spec"]["versions"], key=lambda each: str(each["storage"]))
    assert (old["name"], old["deprecated"]) == ("v1", True)
    assert (new["name"], "deprecated" in new) == ("v2beta1", False)
    assert new["schema"] == old["schema"]
    assert new["additionalPrinterColumns"] == old["additionalPrinterColumns"]
    made: Any = sys.modules["shop.kinds.crontab"]
    one = made.CronTabV2beta1(spec=made.CronTabV2beta1.Spec(cronSpec=""))
    assert type(one.copied()) is made.CronTabV2beta1


def test_tests_are_written_for_a_kind_that_has_none(create: Create) -> None:
    text = THEIR_KIND.replace("    spec: Spec", "    size: int = 1").replace(
        "has(self.spec)", "1==1"
    )
    put("src/shop/kinds/__init__.py", "from .crontab import crontab as crontab\n")
    put(KIND, text.replace(".spec.cronSpec", ".size"))
    put("pyproject.toml", '[tool.pytest.ini_options]\npythonpath = ["src"]\n')
    assert f"wrote {LAW}" in create("v2beta1").out
    assert "5 passed" in run_tests()


KINDS = "from polyver import apis\n"
CRONTAB = f'{KINDS}crontab = apis.Kind("CronTab", group="{GROUP}")\n'


def version(name: str, more: str = "", cls: str = "") -> str:
    cls = cls or f"CronTab{name.capitalize()}"
    return f'\n@crontab.version("{name}"{more})\nclass {cls}:\n    spec: dict\n'


@pytest.mark.parametrize(
    ("text", "more", "expected"),
    [
        (CRONTAB + version("v1"), [], {"v1": True, "v2": False}),
        (CRONTAB + version("v1", ", storage=None"), [], {"v1": True, "v2": False}),
        (CRONTAB + version("v1"), ["--storage"], {"v1": False, "v2": True}),
        (CRONTAB + version("v1", cls="CronTab"), [], {"v1": True, "v2": False}),
        (CRONTAB + version("v1").replace("spec: dict", "size: int"), [], {"v1": True, "v2": False}),
        (
            f'{KINDS}crontab: apis.Kind = apis.Kind(group="{GROUP}", kind="CronTab")\n'
            '@crontab.version(name="v1")\nclass One:\n    spec: dict\n',
            [],
            {"v1": True, "v2": False},
        ),
        (
            f'from polyver.apis import Kind as Sort\ncrontab = Sort("CronTab", group="{GROUP}")\n'
            + version("v1").rstrip(),
            [],
            {"v1": True, "v2": False},
        ),
        (
            f'{KINDS}crontab = apis.Kind("CronTab", group="{GROUP}", strategy="None")\n'
            + version("v1", ", storage=True")
            + version("v3"),
            ["--storage"],
            {"v1": False, "v2": True, "v3": False},
        ),
        (
            CRONTAB
            + version("v1")
            + "    def convert_to(self, hub): hub.spec = self.spec\n"
            + "    @property\n    def one(self): return 1\n"
            + "    def convert_from(self, hub): self.spec = hub.spec\n"
            + version("v3", ", storage=True, hub=True"),
            ["--storage"],
            {"v1": False, "v2": True, "v3": False},
        ),
        (
            CRONTAB
            + version("v3", ", storage=True, hub=True")
            + version("v1")
            + "    def convert_to(self, hub): hub.spec = self.spec\n"
            + "    def convert_from(self, hub): self.spec = hub.spec\n",
            [],
            {"v1": False, "v2": False, "v3": True},
        ),
    ],
)
def test_kinds_are_written_in_many_ways(
    create: Create,
    definitions: Definitions,
    text: str,
    more: Sequence[str],
    expected: dict[str, bool],
) -> None:
    put("pyproject.toml", '[tool.polyver]\nkinds = ["kinds.py"]\n')
    put("kinds.py", text)
    assert create("v2", *more).err == ""
    assert stored(*definitions()) == expected
    said = Path("kinds.py").read_text()
    assert said.count("storage=") == len(expected)


def test_a_function_for_all_versions_must_be_extended(
    create: Create, definitions: Definitions
) -> None:
    put("pyproject.toml", '[tool.polyver]\nkinds = ["kinds.py"]\n')
    text = (
        CRONTAB + version("v1") + "\n@crontab.convert\ndef any_to_any(obj, to):\n    return obj\n"
    )
    put("kinds.py", text)
    ran = create("v2")
    assert ran.err == (
        "warning: any_to_any converts between all versions, but does not handle v2 yet\n"
    )
    assert "edge" not in Path("kinds.py").read_text()
    assert stored(*definitions()) == {"v1": True, "v2": False}


BY_HAND = (
    'do it manually: declare a class below @crontab.version("v2", storage=True), connect it with '
    '@crontab.edge(…, "v2"), and write storage=False at all other versions'
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (CRONTAB, f"no version of CronTab is declared in {KIND}; {BY_HAND}"),
        (
            f"{CRONTAB}if True:\n    @crontab.version('v1')\n    class A:\n        spec: dict\n",
            f"crontab.version does not decorate a top-level class ({KIND}:4)",
        ),
        (
            f"{CRONTAB}crontab.version('v1')(type('A', (), {{}}))\n",
            f"crontab.version does not decorate a top-level class ({KIND}:3)",
        ),
        (
            f"{CRONTAB}NAME = 'v1'\n@crontab.version(NAME)\nclass A:\n    spec: dict\n",
            f"the name of a version is not a string literal ({KIND}:4)",
        ),
        (
            CRONTAB + version("v1", ", storage=1 == 1"),
            f"storage of v1 is not the literal True or False ({KIND}:4); {BY_HAND}",
        ),
        (
            CRONTAB + version("v1", ", **{}"),
            f"v1 takes arguments that are not literals ({KIND}:4); {BY_HAND}",
        ),
        (
            CRONTAB + version("v1") + "\nCronTabV2 = 5\n",
            f"the class of v2 would be CronTabV2, which already exists ({KIND}:5); {BY_HAND}",
        ),
        (
            CRONTAB
            + version("v1")
            + "    def convert_to(self, hub): pass\n    def convert_from(self, hub): pass\n"
            + version("v3", ", storage=True"),
            "its versions convert through the hub v3, which a new storage version moves "
            f"({KIND}:2); "
            "write hub=True at v3, and run this again",
        ),
        (
            f'{CRONTAB}@crontab.version(("v1"))\nclass A: spec: dict\n',
            f"{KIND} cannot be edited safely ({KIND}:2); {BY_HAND}",
        ),
        (
            f'{KINDS}crontab = apis.Kind("CronTab", group="a" + "b.io")\n{version("v1")}',
            f"the group of CronTab is not a string literal, so it cannot be read ({KIND}:2); "
            'write a literal such as group="stable.example.com"',
        ),
        (
            f'{CRONTAB}other = apis.Kind("CronTab", group="{GROUP}")\n',
            f"CronTab of {GROUP} is declared twice ({KIND}:2 and {KIND}:3)",
        ),
        ("from polyver import (\n", f"{KIND} is not valid Python: '(' was never closed ({KIND}:1)"),
    ],
)
def test_what_cannot_be_edited_safely_is_left_alone_with_advice(
    create: Create, text: str, says: str
) -> None:
    put(KIND, text)
    before = files()
    ran = create("v2", "--storage")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith(f"error: {says}")
    assert files() == before


def test_versions_in_another_module_are_seen(create: Create) -> None:
    put(KIND, CRONTAB + version("v1"))
    more = "from .crontab import crontab\n" + version("v3")
    put("src/shop/kinds/more.py", more)
    before = files()
    ran = create("v2")
    assert ran.err.startswith(
        "error: versions of CronTab are in src/shop/kinds/more.py as well (src/shop/kinds/crontab"
    )
    assert (ran.code, files()) == (3, before)


def test_two_storage_versions_need_a_decision(create: Create, definitions: Definitions) -> None:
    put(KIND, CRONTAB + version("v1", ", storage=True") + version("v3", ", storage=True"))
    assert "CronTab has two storage versions, v1, v3" in create("v2").err
    assert create("v2", "--storage").code == 0
    put("pyproject.toml", '[tool.polyver]\nkinds = ["src/shop/kinds"]\n')
    text = Path(KIND).read_text()
    put(KIND, text + '\n@crontab.edge("v1", "v3")\ndef more(rules):\n    pass\n')
    assert stored(*definitions()) == {"v1": False, "v2": True, "v3": False}


# What is refused.


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--kind", "cronTab"], "--kind cronTab is not a valid name; use letters and digits"),
        (["--kind", "Cron-Tab"], "--kind Cron-Tab is not a valid name"),
        (["--kind", "../Evil"], "--kind ../Evil is not a valid name"),
        (["--kind", 'A"\nimport os'], '--kind A"\\nimport os is not a valid name'),
        (["--kind", "Ä"], "--kind Ä is not a valid name"),
        (["--kind", "K" + "a" * 63], "is not a valid name"),
        (["--version", "1"], "--version 1 is not an API version; write v1, v2beta1 or v3alpha1"),
        (["--version", "v0"], "--version v0 is not an API version"),
        (["--version", "v1gamma1"], "--version v1gamma1 is not an API version"),
        (["--version", "v" + "1" * 64], "is not an API version"),
        (["--version", "v١"], "is not an API version"),
        (["--group", "example"], "--group example is not a domain name with a dot; write a domain"),
        (["--group", "Example.com"], "--group Example.com is not a domain"),
        (["--group", 'a.b"'], '--group a.b" is not a domain'),
        (["--group", "a..b"], "--group a..b is not a domain"),
        (["--plural", "Crontabs"], "--plural Crontabs cannot be a name"),
        (["--scope", "Everywhere"], "Everywhere"),
        (["--output", "a file"], "--output a file is not a folder"),
        (["--output", "json"], 'the name of this project, "json", is not a valid'),
        (["--output", "123"], 'the name of this project, "123", is not a valid'),
        (["--output", "class"], 'the name of this project, "class", is not a valid'),
    ],
)
def test_names_that_cannot_be_are_told(
    capsys: pytest.CaptureFixture[str], shop: Path, arguments: list[str], says: str
) -> None:
    put("a file", "")
    given = {"--group": GROUP, "--version": "v1", "--kind": "CronTab"}
    given |= dict([arguments])
    ran = Ran(capsys, "create", "api", *(word for pair in given.items() for word in pair))
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err
    assert files() == {"a file": b""}


def test_the_same_version_again_is_refused(create: Create) -> None:
    create("v1")
    before = files()
    ran = create("v1")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"error: CronTab already has v1 ({KIND}:10)\n"
    ran = create("v1", "--storage")
    assert ran.err.endswith(
        "to store it, write storage=True there and storage=False at the other versions\n"
    )
    ran = create("v2", "--plural", "tabs")
    assert "CronTab already has its plural and scope" in ran.err
    assert files() == before


@pytest.mark.parametrize("theirs", [LAW, "tests/test_crontab_v2.py"])
def test_a_file_of_somebody_else_is_never_overwritten(create: Create, theirs: str) -> None:
    put(theirs, "mine\n")
    if "v2" in theirs:
        create("v1")
    before = files()
    ran = create("v2")
    assert (ran.code, ran.out, files()) == (2, "", before)
    assert ran.err == f"error: {theirs} already exists; move it, or choose another name\n"


def test_nothing_is_half_written(create: Create) -> None:
    create("v1")
    Path(LAW).rename("law.py")
    Path("tests").rmdir()
    put("tests", "a file where a folder should be\n")
    before = files()
    for ran in (create("v2"), create("v1", kind="Box")):
        assert ran.code == 3
        assert "cannot be written" in ran.err
        assert ran.err.endswith("nothing was changed\n")
        assert files() == before


def test_a_folder_inside_of_a_project_is_rarely_meant(
    create: Create, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create("v1")
    monkeypatch.chdir(shop / "src")
    ran = create("v2")
    assert ran.code == 2
    assert ran.err == (
        f"error: this folder is inside the project {shop}; use --output {shop}, or "
        "--output . for a new project here\n"
    )
    assert create("v2", "--output", str(shop)).code == 0


def test_links_and_modes_stay(create: Create, shop: Path) -> None:
    create("v1")
    real = Path("elsewhere.py")
    Path(KIND).rename(real)
    real.chmod(0o640)
    Path(KIND).symlink_to(shop / real)
    assert create("v2").code == 0
    assert Path(KIND).is_symlink()
    assert "CronTabV2" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o640


NAMES = ["v1", "v2", "v3beta1", "v10", "v1alpha1", "v2beta3"]


@given(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True),
    st.lists(st.booleans(), min_size=5, max_size=5),
)
@settings(max_examples=15, suppress_health_check=list(HealthCheck), deadline=None)
def test_the_storage_version_is_the_last_that_was_asked_for(
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
    names: list[str],
    stored: list[bool],
) -> None:
    from polyver.apis.commands.scaffold.sources import read_source

    folder = tmp_path_factory.mktemp("shop")
    put(str(folder / "pyproject.toml"), '[project]\nname = "shop"\n')
    expected = names[0]
    for name, storage in zip(names, stored, strict=False):
        more = ["--storage"] if storage else []
        named = ["--group", GROUP, "--version", name, "--kind", "CronTab", "--output", str(folder)]
        assert Ran(capsys, "create", "api", *named, *more).code == 0
        expected = name if storage else expected
    found: dict[str, Any] = {}
    exec((folder / KIND).read_text(), found)
    assert found["crontab"].definition().storage == expected
    assert [*found["crontab"].versions] == names
    [kind] = read_source(folder / KIND, KIND).kinds()
    assert (kind.name, kind.group) == ("crontab", GROUP)


def test_imports_that_cannot_be_added_to_safely_are_left_alone(create: Create) -> None:
    put("src/shop/kinds/__init__.py", "import os; x = (\n1)\n")
    before = files()
    ran = create("v1")
    assert (ran.code, files()) == (3, before)
    assert ran.err == (
        "error: src/shop/kinds/__init__.py cannot be edited safely; give each of its imports a "
        "line of its own, and run this again\n"
    )
