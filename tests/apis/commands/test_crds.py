"""`polyver crds`, as someone types it."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.app.test_cli import Ran
from tests.modules import forget_modules

from polyver.kube.http.tls import Authority

KINDS = """
from polyver import apis

toy = apis.Kind("Toy", group="ex.io")
box = apis.Kind("Box", group="ex.io", strategy="None")

@toy.version("v1")
class Toy:
    colour: str
    "Any colour."

@box.version("v1", storage=True)
class BoxV1:
    size: int

@box.version("v2")
class BoxV2(BoxV1):
    pass
"""
TWO = """
from polyver import apis

two = apis.Kind("Two", group="ex.io")

@two.version("v1", storage=True)
class TwoV1:
    size: int

@two.version("v2")
class TwoV2:
    size: int

@two.edge("v1", "v2")
def same(e):
    pass
"""
TOY = "toys.ex.io.yaml"


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Ran]]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    Path("kinds.py").write_text(KINDS)
    Path("two.py").write_text(TWO)
    yield lambda *arguments: Ran(capsys, "crds", *arguments)
    forget_modules(tmp_path)


def test_kinds_of_a_file_or_a_module_are_printed_in_their_order(run: Callable[..., Ran]) -> None:
    ran = run("kinds.py")
    assert (ran.code, ran.err) == (0, "")
    names = [line.strip() for line in ran.out.splitlines() if line.startswith("  name: ")]
    assert names == ["name: boxes.ex.io", "name: toys.ex.io"]
    assert ran.out.count("\n---\n") == 1
    assert "description: Any colour." in ran.out
    assert run("kinds").out == ran.out


def test_json_is_one_list(run: Callable[..., Ran]) -> None:
    found = json.loads(run("kinds.py", "-o", "json").out)
    assert (found["kind"], len(found["items"])) == ("List", 2)
    assert json.loads(run("two.py", "-o", "json").out)["kind"] == "CustomResourceDefinition"


def test_a_folder_gets_a_file_for_each_kind_and_a_file_all_of_them(run: Callable[..., Ran]) -> None:
    ran = run("kinds.py", "--output", "crds")
    assert ran.out == "wrote crds/boxes.ex.io.yaml\nwrote crds/toys.ex.io.yaml\n"
    assert run("kinds.py", "--output", "crds").out == ""
    assert run("kinds.py", "--output", "all.yaml").out == "wrote all.yaml\n"
    assert Path("all.yaml").read_text() == run("kinds.py").out
    assert Path("crds", TOY).read_text() in run("kinds.py").out


def test_manifests_are_kinds_as_well(run: Callable[..., Ran]) -> None:
    run("kinds.py", "--output", "crds")
    assert run("crds").out == run("kinds.py").out
    assert run(f"crds/{TOY}").out == Path("crds", TOY).read_text()


def test_check_shows_what_differs_and_ends_with_one(run: Callable[..., Ran]) -> None:
    ran = run("kinds.py", "--output", "crds", "--check")
    assert ran.code == 1
    assert "--- /dev/null\n+++ crds/boxes.ex.io.yaml" in ran.out
    assert not Path("crds").exists()
    run("kinds.py", "--output", "crds")
    assert run("kinds.py", "--output", "crds", "--check").code == 0
    toy = Path("crds", TOY)
    toy.write_text(toy.read_text().replace("Any colour.", "Some colour."))
    ran = run("kinds.py", "--output", "crds", "--check")
    assert (ran.code, ran.err) == (
        1,
        f"error: outdated: crds/{TOY}; run the command without --check\n",
    )
    assert "-                description: Some colour.\n" in ran.out.replace(
        "-            ", "-                "
    )
    assert "Any colour." in ran.out


def test_a_webhook_converts_kinds_with_several_versions(run: Callable[..., Ran]) -> None:
    ran = run("two.py", "--webhook-service", "shop/hooks:8443", "--inject-ca-from", "shop/cert")
    assert ran.err == ""
    assert "cert-manager.io/inject-ca-from: shop/cert" in ran.out
    for line in ("namespace: shop", "name: hooks", "path: /convert", "port: 8443"):
        assert f"          {line}\n" in ran.out
    assert (
        "url: https://hooks.ex.io/c" in run("two.py", "--webhook-url", "https://hooks.ex.io/c").out
    )
    assert "Webhook" not in run("kinds.py", "--webhook-service", "shop/hooks").out


HOOKED = """
from polyver import apis

box = apis.Kind("Hooked", group="ex.io")

@box.version("v1")
class Hooked:
    size: int

@box.validate("v1")
def look(box):
    return []
"""


def test_admission_is_registered_for_what_has_hooks_or_is_converted(
    run: Callable[..., Ran],
) -> None:
    Path("hooked.py").write_text(HOOKED)
    ran = run("two.py", "hooked.py", "--admission", "--webhook-service", "shop/hooks", "-o", "json")
    found = {each["kind"]: each for each in json.loads(ran.out)["items"]}
    names = {
        kind: [each["name"] for each in manifest["webhooks"]]
        for kind, manifest in found.items()
        if "webhooks" in manifest
    }
    assert names == {
        "MutatingWebhookConfiguration": ["carry.twos.ex.io"],
        "ValidatingWebhookConfiguration": ["checks.hookeds.ex.io", "checks.twos.ex.io"],
    }
    run("two.py", "--admission", "--webhook-service", "shop/hooks", "--output", "out")
    assert sorted(each.name for each in Path("out").iterdir()) == [
        "admission.yaml",
        "twos.ex.io.yaml",
    ]


def test_admission_is_where_conversion_is(run: Callable[..., Ran]) -> None:
    url = "https://hooks.ex.io:8443/convert"
    ran = run("two.py", "--admission", "--webhook-url", url)
    for path in ("/convert", "/admit/mutate", "/admit/validate"):
        assert f"url: https://hooks.ex.io:8443{path}\n" in ran.out


def test_without_hooks_and_versions_there_is_nothing_to_admit(run: Callable[..., Ran]) -> None:
    ran = run("kinds.py", "--admission", "--webhook-service", "shop/hooks")
    assert "so no webhook is needed" in ran.err
    assert "WebhookConfiguration" not in ran.out


def test_authorities_are_written_wherever_the_webhook_is(run: Callable[..., Ran]) -> None:
    authority = Authority.create("test", now=datetime.now(UTC)).pem
    Path("ca.crt").write_bytes(authority)
    ran = run("two.py", "--admission", "--webhook-service", "shop/hooks", "--webhook-ca", "ca.crt")
    assert ran.out.count(f"caBundle: {base64.b64encode(authority).decode()}") == 3


@pytest.mark.parametrize(("content", "says"), [(None, "cannot be read"), ("no", "no certificate")])
def test_authorities_that_are_none_are_told(
    run: Callable[..., Ran], content: str | None, says: str
) -> None:
    if content:
        Path("ca.crt").write_text(content)
    ran = run("two.py", "--webhook-service", "shop/hooks", "--webhook-ca", "ca.crt")
    assert ran.code == 3
    assert says in ran.err
    assert "(--webhook-ca)" in ran.err


def test_without_one_somebody_is_warned(run: Callable[..., Ran]) -> None:
    ran = run("two.py")
    assert ran.code == 0
    assert ran.err.startswith("warning: no webhook converts Two between v2, v1, so")
    assert "strategy: None" in ran.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--webhook-service", "hooks"], "--webhook-service hooks is not NAMESPACE/NAME[:PORT]"),
        (["--webhook-service", "a/b:0"], "--webhook-service a/b:0 is not NAMESPACE/NAME[:PORT]"),
        (["--webhook-url", "http://a"], "--webhook-url http://a does not begin with https://"),
        (["--webhook-service", "a/b", "--webhook-url", "https://a"], "exclude each other"),
        (["--inject-ca-from", "a/b"], "--inject-ca-from needs --webhook-service or --webhook-url"),
        (["--webhook-service", "a/b", "--inject-ca-from", "b"], "is not NAMESPACE/NAME"),
        (["--webhook-ca", "ca.crt"], "--webhook-ca needs --webhook-service or --webhook-url"),
        (["--admission"], "--admission needs --webhook-service or --webhook-url"),
        (["--admission", "--webhook-url", "https://a/b"], "/b is not the address of the webhook"),
        (["--check"], "--check needs --output; name the files with --output"),
        (
            ["--output", "yaml"],
            "--output yaml names a file, not a format; for a format, write -o yaml",
        ),
    ],
)
def test_options_that_cannot_be_are_told(
    run: Callable[..., Ran], arguments: list[str], says: str
) -> None:
    Path("ca.crt").write_bytes(Authority.create("test", now=datetime.now(UTC)).pem)
    ran = run("kinds.py", *arguments)
    assert ran.code == 2
    assert says in ran.err


def test_pyproject_says_where_kinds_are(
    run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run("kinds.py").out
    assert run().code == 2
    Path("pyproject.toml").write_text('[tool.polyver]\nkinds = ["kinds.py"]\n')
    Path("deep/er").mkdir(parents=True)
    monkeypatch.chdir("deep/er")
    assert run().out == expected
    monkeypatch.chdir("../..")
    Path("pyproject.toml").write_text("[tool.polyver]\nkinds = 5\n")
    assert "tool.polyver.kinds is not a list of names (pyproject.toml)" in run().err
    Path("pyproject.toml").write_text("[tool.polyver\n")
    assert "pyproject.toml cannot be read" in run().err


def test_a_package_is_imported_by_its_name(run: Callable[..., Ran]) -> None:
    package = Path("shop/apis")
    package.mkdir(parents=True)
    Path("shop/__init__.py").touch()
    (package / "__init__.py").write_text("from .toys import toy\n")
    (package / "common.py").write_text('GROUP = "shop.ex.io"\n')
    (package / "toys.py").write_text(
        "from polyver import apis\nfrom .common import GROUP\n"
        'toy = apis.Kind("Toy", group=GROUP)\n'
        '@toy.version("v1")\nclass Toy:\n    colour: str\n'
    )
    by_name = run("shop.apis").out
    assert "name: toys.shop.ex.io" in by_name
    assert run("shop").out == by_name
    assert run("shop/apis/toys.py").out == by_name


def test_of_a_folder_only_what_may_hold_kinds_is_run(run: Callable[..., Ran]) -> None:
    Path("setup.py").write_text("raise SystemExit(1)\n")
    Path("values.yaml").write_text("{{ this is no YAML\n")
    Path(".hidden").mkdir()
    Path(".hidden/polyver.py").write_text("raise SystemExit(1)\n")
    ran = run(".", "--webhook-service", "shop/hooks")
    assert (ran.code, ran.out.count("kind: CustomResourceDefinition\n")) == (0, 3)


def test_what_code_prints_is_no_part_of_a_manifest(run: Callable[..., Ran]) -> None:
    expected = run("two.py").out
    Path("loud.py").write_text(f"print('hello')\n{TWO}")
    ran = run("loud.py")
    assert ran.out == expected
    assert "hello\n" in ran.err


@pytest.mark.parametrize("name", ["json.py", "my-kinds.py", "my.kinds.py", "__main__.py"])
def test_a_file_may_be_called_anything(run: Callable[..., Ran], name: str) -> None:
    Path(name).write_text(TWO)
    assert "name: twos.ex.io" in run(name).out


def test_files_of_one_name_are_told_apart(run: Callable[..., Ran]) -> None:
    for folder in ("a", "a/b"):
        Path(folder).mkdir()
        Path(folder, "kinds.py").write_text(TWO.replace("Two", f"In{folder[-1]}"))
    ran = run("a", "kinds.py", "--webhook-service", "shop/hooks")
    names = [line.split()[1] for line in ran.out.splitlines() if line.startswith("  name: ")]
    assert names == ["boxes.ex.io", "inas.ex.io", "inbs.ex.io", "toys.ex.io"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def f():\n    return 1 / 0\nf()\n", "ZeroDivisionError: division by zero (broken.py:2)"),
        ("a = (\n", "broken cannot be imported: '(' was never closed (broken.py:1)"),
        ("import nothing_such\n", "No module named 'nothing_such' (broken.py:1)"),
        ("raise SystemExit(3)\n", "broken cannot be imported: SystemExit: 3 (broken.py:1)"),
        ("", "broken.py contains no kind"),
        (
            TWO.replace("size: int", "size: set[int]", 1),
            "set[int] is not a type for a field (broken.py:6, TwoV1.size); write Annotated",
        ),
        (
            TWO.replace("storage=True", ""),
            "Two has no storage version among v1 (TwoV1), v2 (TwoV2)",
        ),
        (
            TWO.partition("@two.edge")[0],
            "Two has several versions, v2, v1, but no conversion between them (",
        ),
    ],
)
def test_what_goes_wrong_in_their_code_is_one_line(
    run: Callable[..., Ran], text: str, says: str
) -> None:
    Path("broken.py").write_text(text)
    ran = run("broken.py")
    assert ran.code == 3
    assert says in ran.err
    assert ran.err.count("\n") == 1
    assert "Traceback" not in ran.err


def test_a_traceback_is_shown_to_who_asks(run: Callable[..., Ran]) -> None:
    Path("broken.py").write_text("1 / 0\n")
    err = run("broken.py", "--traceback").err
    assert "Traceback (most recent call last)" in err
    assert "broken cannot be imported: ZeroDivisionError" in err.splitlines()[-1]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nowhere", "there is no module nowhere"),
        ("kinds.nowhere", "there is no module kinds.nowhere"),
        ("nowhere.py", "nowhere.py cannot be read: there is no such file"),
        ("nowhere.yaml", "nowhere.yaml cannot be read: No such file or directory"),
        ("empty", "empty contains no kind"),
    ],
)
def test_a_place_without_kinds_is_told(run: Callable[..., Ran], name: str, says: str) -> None:
    Path("empty").mkdir()
    ran = run(name)
    assert (ran.code, says in ran.err) == (3, True), ran.err


def test_one_name_is_one_kind(run: Callable[..., Ran]) -> None:
    run("kinds.py", "--output", "crds")
    assert run("kinds.py", "kinds", "crds").code == 0
    toy = Path("crds", TOY)
    toy.write_text(toy.read_text().replace("Any colour.", "Some colour."))
    ran = run("kinds.py", "crds")
    assert ran.err == f"error: toys.ex.io is declared twice (kinds.py:4 and crds/{TOY}:1)\n"
