"""The command line, as someone types it: what it prints, where, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import strategies as our

from polyver.app import main
from polyver.kube.objects import load_manifests

POLYVER = str(Path(sys.executable).parent / "polyver")
EXAMPLES = str(Path(__file__).parents[2] / "examples" / "versions")

DEFS = """
apiVersion: core.oam.dev/v2beta1
kind: ComponentDefinition
metadata: {name: my-component, namespace: vela-system}
spec:
  versions:
  - {version: "1.2.2", schematic: {a: 1}}
  - {version: "1.2.3", schematic: {a: 2}}
  - {version: "1.3.0-rc.1", schematic: {a: 3}}
  - {version: "2.0.0", schematic: {a: 4}}
"""


class Ran:
    """What one command did."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
        self.code = main(arguments)
        self.out, self.err = capsys.readouterr()


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ran]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "defs.yaml").write_text(DEFS)
    return lambda *arguments: Ran(capsys, *arguments)


def piped(
    *arguments: str, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[str]:
    ran = subprocess.run(
        [POLYVER, *arguments],
        input=stdin,
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
    )
    return subprocess.CompletedProcess(
        ran.args, ran.returncode, ran.stdout.decode(), ran.stderr.decode()
    )


def test_the_seeds_versions_are_sorted_in_kube_order(run: Callable[..., Ran]) -> None:
    given_order = "foo10 v1 v12alpha1 v2 v11beta2 foo1 v10 v3beta1 v10beta3 v11alpha2".split()
    ran = run("versions", "sort", "--order", "kube", *given_order)
    assert ran.out.split() == (
        "v10 v2 v1 v11beta2 v10beta3 v3beta1 v12alpha1 v11alpha2 foo1 foo10".split()
    )
    assert (ran.code, ran.err) == (0, "")


def test_versions_come_from_standard_input_too() -> None:
    ran = piped("versions", "sort", "--order", "semver", stdin=b"1.0.0\n\n v1.2.0 \r\n1.2.0-rc.1\n")
    assert ran.stdout.splitlines() == ["v1.2.0", "1.2.0-rc.1", "1.0.0"]
    assert ran.returncode == 0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(our.semvers.map(str), min_size=1))
def test_sorting_loses_and_invents_nothing(
    capsys: pytest.CaptureFixture[str], texts: list[str]
) -> None:
    once = Ran(capsys, "versions", "sort", "--order", "semver", *texts)
    assert sorted(once.out.split()) == sorted(texts)
    again = Ran(capsys, "versions", "sort", "--order", "semver", *once.out.split())
    assert again.out == once.out


@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "message"),
    [
        (["--order", "semver", "1.0.0", "1.x"], b"", 2, '"1.x" is not a semantic version'),
        (["--order", "semver", "1.0.0", "1.x"], b"", 2, "(argument 2)"),
        (["--order", "semver"], b"1.0.0\n1.x\n", 3, "(standard input, line 2)"),
        (["--order", "kube"], b"v1\n\xff\n", 3, "standard input:2 is not UTF-8 text"),
        (["--order", "kub", "v1"], b"", 2, 'Choose from: "kube", "semver"'),
        (["v1"], b"", 2, "--order"),
        (["--order", "kube", "example.com/v1"], b"", 2, "expected a word such as v1"),
    ],
)
def test_what_cannot_be_sorted_is_named(
    arguments: list[str], stdin: bytes, code: int, message: str
) -> None:
    ran = piped("versions", "sort", *arguments, stdin=stdin)
    assert message in ran.stderr
    assert ran.returncode == code
    assert ran.stdout == ""
    assert ran.stderr.count("\n") == 1


def test_resolve_says_why_it_is_this_release_and_not_another(run: Callable[..., Ran]) -> None:
    ran = run("resolve", "my-component@1.2", "-f", "defs.yaml", "--explain")
    assert ran.code == 0
    assert ran.out == (
        "NAME           RELEASE   STAGE       REASON\n"
        "my-component   1.2.3     published   newest in series 1.2\n"
        "\n"
        "NOT CHOSEN   WHY\n"
        "2.0.0        not in series 1.2\n"
        "1.3.0-rc.1   not in series 1.2\n"
        "1.2.2        1.2.3 is newer\n"
    )


def test_resolve_of_what_does_not_exist_names_what_does(run: Callable[..., Ran]) -> None:
    ran = run("resolve", "my-component@1.2.9", "-f", "defs.yaml")
    assert ran.code == 1
    assert ran.out == ""
    assert ran.err.startswith("error: my-component has no 1.2.9;")
    assert ran.err.endswith("nearest: 1.2.2, 1.2.3\n")


def test_resolve_explains_a_failure_too(run: Callable[..., Ran]) -> None:
    ran = run("resolve", "my-component@3", "-f", "defs.yaml", "--explain")
    assert ran.code == 1
    assert "1.2.2        not in series 3" in ran.out


def test_json_and_yaml_say_the_same(run: Callable[..., Ran]) -> None:
    arguments = ("resolve", "my-component@1", "-f", "defs.yaml", "--explain", "-o")
    as_json = json.loads(run(*arguments, "json").out)
    [as_yaml] = load_manifests(run(*arguments, "yaml").out, "out")
    assert as_json == as_yaml.value
    assert as_json["release"] == "1.2.3"
    assert as_json["digest"].startswith("sha256:")
    assert as_json["rejected"][0] == {"release": "2.0.0", "why": "not in series 1"}


def test_without_explain_a_program_is_not_told_about_the_others(run: Callable[..., Ran]) -> None:
    assert "rejected" not in json.loads(
        run("resolve", "my-component", "-f", "defs.yaml", "-o", "json").out
    )


@pytest.mark.parametrize(
    ("name", "release", "warning"),
    [
        ("my-component", "2.0.0", ""),
        ("vela-system/my-component@1", "1.2.3", ""),
        ("componentdefinition/vela-system/my-component@1", "1.2.3", ""),
        ("worker", "worker-v4.4", ""),
        ("worker@v1", "worker-v1", ""),
        ("Report", "v0.1.0", ""),
        ("Report@v0.2", "v0.2.0", ""),
        ("Report@0.0.0", "v0.0.0", "will be removed in 0.4.0; use v0.1.0"),
        ("function-patch-and-transform", "function-patch-and-transform-e4a917c35d02", ""),
        ("function-patch-and-transform@2", "function-patch-and-transform-7f1c20de4b86", ""),
        (
            "function-patch-and-transform@release-channel=stable",
            "function-patch-and-transform-7f1c20de4b86",
            "",
        ),
        ("CronTab", "v2", ""),
        ("stable.example.com/CronTab@v2", "v2", ""),
        ("CronTab@v1beta1", "v1beta1", "use stable.example.com/v2 CronTab"),
    ],
)
def test_every_capability_resolves_from_files(
    run: Callable[..., Ran], name: str, release: str, warning: str
) -> None:
    ran = run("resolve", name, "-f", EXAMPLES, "-o", "json")
    assert ran.code == 0
    assert json.loads(ran.out)["release"] == release
    assert warning in ran.err
    assert bool(warning) == bool(ran.err)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["my-componnt"], 1, "did you mean my-component?"),
        (["nothing-like-it"], 1, "there is no nothing-like-it in defs.yaml; known: my-component"),
        (["My-Component"], 1, "did you mean my-component?"),
        (["my-component@>1.2.0"], 2, '">1.2.0" is not a version or a series'),
        (["my-component@"], 2, '"" is not a version or a series'),
        (["my-component", "-f", "missing.yaml"], 3, "missing.yaml cannot be read: No such file"),
        (["my-component", "-f", "empty"], 3, "empty contains no .yaml, .yml, .json file"),
        (["my-component", "--policy", "mine"], 2, "there is no policy mine; known: apis, "),
        (
            ["my-component", "--policy", "functions"],
            2,
            "does not apply to ComponentDefinition/vela-system",
        ),
        (["my-component@1", "--policy", "definitions-exact"], 1, "only exact versions"),
        (["my-component", "-o", "xml"], 2, '"table", "json", "yaml"'),
        (["my-component", "-f", "defs.yaml\0"], 3, "cannot be read"),
        (["my-component", "-f", ""], 3, "the name of a file is empty"),
        (
            ["my-component", "--policy", "definitions-legacy"],
            2,
            "does not apply to ComponentDefinition",
        ),
        ([], 2, "NAME"),
    ],
)
def test_a_wrong_question_is_answered_with_what_to_do(
    run: Callable[..., Ran], arguments: list[str], code: int, message: str
) -> None:
    Path("empty").mkdir()
    ran = run("resolve", *arguments, "-f", "defs.yaml")
    assert message in ran.err
    assert ran.code == code
    assert ran.out == ""
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "bad.yaml:2"),
        ("a: 1\na: 2", 'duplicate key "a", first in line 1 (bad.yaml:2)'),
        (
            DEFS.replace('"1.2.3"', "1.2"),
            "expected a string, got a number (bad.yaml:8, spec.versions[1].version); put it in",
        ),
        (DEFS.replace("1.2.3", "v1.2.3"), '"v1.2.3" is published with a leading "v" (bad.yaml:8'),
        (DEFS.replace("1.2.3", "1.2.3+b"), "published with build metadata"),
        (DEFS.replace("1.2.3", "1.2.3-RC"), "published with uppercase letters"),
        (DEFS.replace("1.2.3", ">1.2.3"), '">1.2.3" is not a semantic version'),
        (
            DEFS.replace("1.2.3", "1.2.2"),
            "1.2.2 cannot be published (bad.yaml:8, spec.versions[1]); it",
        ),
        (
            DEFS.replace('version: "1.2.3", ', ""),
            "a version is missing (bad.yaml:8, spec.versions[1])",
        ),
        (DEFS.replace("versions:", "vs:"), "publishes no version (bad.yaml:5, spec.versions)"),
        (
            DEFS + "  version: 1.0.0",
            "v2beta1 has no field version (bad.yaml:11, spec.version)",
        ),
        (DEFS.replace("v2beta1", "v1beta1"), "v1beta1 has no list of versions (bad.yaml:6"),
        (DEFS.replace("v2beta1", "v3"), "core.oam.dev/v3 is not known (bad.yaml:2, apiVersion)"),
        (
            DEFS.replace('"1.2.3", schematic: {a: 2}', '"1.2", schematic: {a: 1}').replace(
                "1.2.2", "1.2.0"
            ),
            "1.2.0 cannot be published (bad.yaml:8, spec.versions[1]); it is the same version as",
        ),
        (DEFS.replace("name: my-component, ", ""), '"name" is missing (bad.yaml:4, metadata)'),
        (
            "apiVersion: core.oam.dev/v2beta1\nkind: [x]",
            "expected a string, got a list (bad.yaml:2, kind)",
        ),
        ("releases: []\nfunctions: {}", "no release is listed (bad.yaml:1, releases)"),
        ("releases: [0.2.0, 0.1.0]\nfunctions: {}", "0.1.0 does not come after 0.2.0"),
        ("functions: {}", '"releases" is missing (bad.yaml:1)'),
        (
            "releases: [0.1.0]\nfunctions: {F: {versions: {v1.0.0: {stage: stabel}}}}",
            'there is no stage "stabel" (bad.yaml:2, functions.F.versions."v1.0.0".stage); expected'
            " candidate, stable, deprecated, removed",
        ),
        (
            "releases: [0.1.0]\nfunctions:\n  F:\n    versions:\n"
            "      v1: {stage: stable, sinse: 1}",
            'unknown field "sinse" (bad.yaml:5, functions.F.versions.v1)',
        ),
        (
            "releases: [0.1.0]\nfunctions:\n"
            "  F: {versions: {v1: {stage: stable}, v2: {stage: stable}}}",
            "F has stable versions v1.0.0, v2.0.0 (bad.yaml:3, functions.F.versions); exactly",
        ),
        (
            "releases: [0.1.0]\nfunctions:\n  F: {versions: {v1: {stage: candidate}}}",
            "F has no stable version",
        ),
        (
            "releases: [0.1.0]\nfunctions:\n  F:\n    versions:\n      v1: {stage: stable}\n"
            "      v1.0.0: {stage: candidate}",
            "v1.0.0 cannot be published (bad.yaml:4, functions.F.versions)",
        ),
        (
            "releases: [0.1.0]\nfunctions:\n"
            "  F: {versions: {v1: {stage: stable}, v2: {stage: removed}}}",
            "without the field removedIn",
        ),
        (
            "releases: [0.1.0]\nfunctions: {F: {versions: {v1: {stage: stable},"
            " v2: {stage: deprecated, since: 0.1.0, use: v9}}}}",
            "F v2 cannot be replaced by v9 (bad.yaml:2, functions.F.versions.v2.use); usable: v1",
        ),
        (
            "releases: [0.1.0]\nfunctions: {F: {versions: {v1: {stage: stable},"
            " v2: {stage: deprecated, since: 0.1.0, use: v2}}}}",
            "F v2 cannot be replaced by v2",
        ),
        (
            "releases: [0.1.0]\nfunctions: {F: {versions: {v1.0.0-rc.1: {stage: stable}}}}",
            "F v1.0.0-rc.1 is stable and a prerelease",
        ),
        (
            "releases: [0.1.0]\nfunctions:\n  F:\n    versions:\n      1.10: {stage: stable}",
            'a version must be a string (bad.yaml:5, functions.F.versions."1.1"); put it in',
        ),
        (
            "releases: [0.1.0]\nfunctions: {F: {versions: {v1: {stage: stable},"
            " v2: {stage: deprecated}}}}",
            "F v2.0.0 is deprecated without the field since",
        ),
        (
            "releases: [0.1.0]\nfunctions: {F: {versions: {v1: {stage: stable, since: 0.1.0}}}}",
            "F v1.0.0 is stable, and cannot have since or removedIn",
        ),
        (
            "apiVersion: pkg.crossplane.io/v1\nkind: FunctionRevision\nmetadata: {name: f-1}\n"
            "spec: {revision: 1}",
            "f-1 has no label that names its function (bad.yaml:3, metadata.labels)",
        ),
        (
            "apiVersion: pkg.crossplane.io/v1\nkind: FunctionRevision\nmetadata: {name: f-1}\n"
            "spec: {revision: 0}",
            "bad.yaml:4, spec.revision",
        ),
        (
            "apiVersion: pkg.crossplane.io/v1\nkind: FunctionRevision\n"
            "metadata: {name: f-1, labels: {pkg.crossplane.io/package: f}}\n"
            "spec: {revision: 1, desiredState: active}",
            'unknown state "active" (bad.yaml:4, spec.desiredState); expected Active, Inactive',
        ),
        (
            "apiVersion: pkg.crossplane.io/v1\nkind: FunctionRevision\n"
            "metadata: {name: f-1, labels: {pkg.crossplane.io/package: f, on: 1}}\n"
            "spec: {revision: 1}",
            "expected a string, got an integer (bad.yaml:3, metadata.labels.true)",
        ),
        (
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
            "metadata: {name: x}\n"
            "spec: {group: g, names: {kind: K}, versions: [{name: v1 }, {name: v1}]}",
            "K v1 cannot be published (bad.yaml:4, spec.versions)",
        ),
        ("just text", "bad.yaml contains nothing that can be resolved"),
    ],
)
def test_a_bad_file_is_named_with_line_and_field(
    run: Callable[..., Ran], text: str, message: str
) -> None:
    Path("bad.yaml").write_text(text)
    ran = run("resolve", "anything", "-f", "bad.yaml")
    assert message in ran.err
    assert ran.code == (1 if "contains nothing" in message else 3)
    assert ran.out == ""
    assert ran.err.count("\n") == 1


def test_one_name_for_two_things_asks_which(run: Callable[..., Ran]) -> None:
    Path("more.yaml").write_text(DEFS.replace("ComponentDef", "TraitDef").replace("2.0.0", "3.0.0"))
    ran = run("resolve", "my-component", "-f", "defs.yaml", "-f", "more.yaml")
    assert ran.code == 2
    assert "write one of ComponentDefinition/vela-system/my-component, TraitDefinition/" in ran.err
    trait = run("resolve", "traitdefinition/vela-system/my-component", "-f", ".")
    assert "3.0.0" in trait.out


def test_the_same_file_twice_is_no_contradiction(run: Callable[..., Ran]) -> None:
    for name in ("CronTab", "Report", "function-patch-and-transform", "my-component"):
        assert run("resolve", name, "-f", EXAMPLES, "-f", EXAMPLES).code == 0
    kinds = (Path(EXAMPLES) / "kinds.yaml").read_text()
    Path("other.yaml").write_text(kinds.replace("name: v2", "name: v3"))
    ran = run("resolve", "CronTab", "-f", EXAMPLES, "-f", "other.yaml")
    assert "CronTab is declared twice, with different releases" in ran.err
    assert ran.code == 3


@pytest.mark.parametrize(
    ("selector", "code", "message"),
    [
        ("", 2, '"" is not a revision'),
        ("a=x,a=y", 2, "with each key once"),
        ("a!=x", 2, "expected key=value"),
        ("a==x", 1, "no revision with a=x"),
        ("=x", 2, "is not a label selector"),
        ("other-1", 1, "has no other-1"),
    ],
)
def test_selectors_of_packages(
    run: Callable[..., Ran], selector: str, code: int, message: str
) -> None:
    ran = run("resolve", f"function-patch-and-transform@{selector}", "-f", EXAMPLES)
    assert message in ran.err
    assert ran.code == code


def test_a_null_is_as_good_as_nothing(run: Callable[..., Ran]) -> None:
    Path("defs.yaml").write_text(
        DEFS.replace("namespace: vela-system", "namespace: null, labels: null, annotations: null")
    )
    assert run("resolve", "my-component", "-f", "defs.yaml").code == 0


def test_an_image_may_be_named_by_its_digest_and_a_revision_is_inactive_by_default(
    run: Callable[..., Ran],
) -> None:
    manifest = {
        "apiVersion": "pkg.crossplane.io/v1",
        "kind": "FunctionRevision",
        "metadata": {"name": "f-1", "labels": {"pkg.crossplane.io/package": "f"}},
        "spec": {"revision": 1, "image": "example.com/f@sha256:abc", "desiredState": "Active"},
    }
    Path("f.json").write_text(json.dumps(manifest))
    assert (
        json.loads(run("resolve", "f", "-f", "f.json", "-o", "json").out)["digest"] == "sha256:abc"
    )
    Path("f.json").write_text(json.dumps(manifest).replace(', "desiredState": "Active"', ""))
    assert "f-1 is inactive" in run("resolve", "f", "-f", "f.json").err


def test_revisions_of_compositions_are_chosen_by_labels_and_kept_by_hand(
    run: Callable[..., Ran],
) -> None:
    label = "crossplane.io/composition-name"
    Path("revisions.yaml").write_text(
        "\n---\n".join(
            "apiVersion: apiextensions.crossplane.io/v1\nkind: CompositionRevision\n"
            f"metadata: {{name: shop-{number}, labels: {{{label}: shop, channel: {channel}}}}}\n"
            f"spec: {{revision: {number}}}"
            for number, channel in ((9, "beta"), (10, "alpha"), (11, "beta"))
        )
    )
    where = ("-f", "revisions.yaml", "-o", "json")
    assert json.loads(run("resolve", "shop", *where).out)["release"] == "shop-11"
    found = json.loads(run("resolve", "shop@channel=alpha", *where).out)
    assert (found["release"], found["policy"]) == ("shop-10", "compositions")
    manual = run("resolve", "shop@9", *where, "--policy", "compositions-manual")
    assert json.loads(manual.out)["release"] == "shop-9"
    assert (
        "shop has no revision with channel=gamma"
        in run("resolve", "shop@channel=gamma", *where).err
    )
    text = Path("revisions.yaml").read_text()
    Path("revisions.yaml").write_text(text.replace(label, "other"))
    assert "has no label that names its composition" in run("resolve", "shop", *where).err


def test_a_kind_of_the_old_form_has_one_version_that_is_served(run: Callable[..., Ran]) -> None:
    Path("old.yaml").write_text(
        "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\n"
        "metadata: {name: x}\nspec: {group: g, names: {kind: K}, version: v1beta2}"
    )
    assert "v1beta2   served" in run("resolve", "K", "-f", "old.yaml").out


def test_a_list_is_as_good_as_documents(run: Callable[..., Ran]) -> None:
    [document] = load_manifests(DEFS, "x")
    items = {"apiVersion": "v1", "kind": "List", "items": [document.value]}
    Path("list.json").write_text(json.dumps(items))
    assert "1.2.3" in run("resolve", "my-component@1.2", "-f", "list.json").out


def test_manifests_come_from_standard_input_too() -> None:
    ran = piped("resolve", "my-component@1.2", "-f", "-", "-o", "json", stdin=DEFS.encode())
    assert json.loads(ran.stdout)["release"] == "1.2.3"


def test_legacy_definitions_count_changes(run: Callable[..., Ran]) -> None:
    one = DEFS.replace("v2beta1", "v1beta1").split("  versions")[0] + "  workload: {a: 1}\n"
    other = one.replace("a: 1", "a: 2")
    Path("legacy.yaml").write_text("---".join([one, one, other, one]))
    ran = run("resolve", "my-component", "-f", "legacy.yaml", "--explain", "-o", "json")
    answer = json.loads(ran.out)
    assert (answer["release"], answer["version"]) == ("my-component-v3", "3")
    assert [other["release"] for other in answer["rejected"]] == [
        "my-component-v2",
        "my-component-v1",
    ]


def test_legacy_definitions_get_a_revision_for_a_new_name(run: Callable[..., Ran]) -> None:
    one = DEFS.replace("v2beta1", "v1beta1").split("  versions")[0] + "  workload: {a: 1}\n"
    named = one.replace(
        "vela-system", 'vela-system, annotations: {definitionrevision.oam.dev/name: "4.4"}'
    )
    Path("legacy.yaml").write_text("---".join([one, named, named]))
    ran = run("resolve", "my-component@v4.4", "-f", "legacy.yaml", "--explain", "-o", "json")
    answer = json.loads(ran.out)
    assert (answer["release"], answer["version"]) == ("my-component-v4.4", "2")
    Path("legacy.yaml").write_text("---".join([named, named.replace("a: 1", "a: 2")]))
    ran = run("resolve", "my-component", "-f", "legacy.yaml")
    assert "my-component-v4.4 exists with other content" in ran.err
    Path("legacy.yaml").write_text(named.replace('"4.4"', '""'))
    assert "the revision's name is empty" in run("resolve", "my-component", "-f", "legacy.yaml").err


def test_a_legacy_definition_in_its_newer_form_is_the_same(run: Callable[..., Ran]) -> None:
    old = DEFS.replace("v2beta1", "v1beta1").split("  versions")[0] + "  workload: {a: 1}\n"
    new = DEFS.split("  versions", maxsplit=1)[0] + "  versions: [{workload: {a: 1}}]\n"
    Path("legacy.yaml").write_text("---".join([old, new]))
    ran = run("resolve", "my-component", "-f", "legacy.yaml", "-o", "json", "--explain")
    assert json.loads(ran.out)["rejected"] == []


def test_legacy_and_semantic_versions_do_not_mix(run: Callable[..., Ran]) -> None:
    legacy = DEFS.replace("v2beta1", "v1beta1").split("  versions")[0] + "  schematic: {a: 1}\n"
    for texts in ([DEFS, legacy], [legacy, DEFS]):
        Path("mixed.yaml").write_text("---".join(texts))
        ran = run("resolve", "my-component", "-f", "mixed.yaml")
        assert "my-component mixes" in ran.err
        assert ran.code == 3


def test_many_versions_are_read_in_little_more_than_linear_time(run: Callable[..., Ran]) -> None:
    versions = "\n".join(f'  - {{version: "1.0.{n}", a: {n}}}' for n in range(3000))
    Path("many.yaml").write_text(DEFS.partition("  - ")[0] + versions)
    assert "1.0.2999" in run("resolve", "my-component", "-f", "many.yaml").out


def test_a_version_and_a_revision_name_do_not_go_together(run: Callable[..., Ran]) -> None:
    Path("both.yaml").write_text(
        "apiVersion: core.oam.dev/v1beta1\nkind: ComponentDefinition\n"
        'metadata: {name: w, annotations: {definitionrevision.oam.dev/name: "1"}}\n'
        "spec: {version: 1.0.0}"
    )
    ran = run("resolve", "w", "-f", "both.yaml")
    assert "both a version and the annotation" in ran.err
    assert ran.code == 3


def test_a_version_and_the_same_in_v1beta1_is_one_release(run: Callable[..., Ran]) -> None:
    Path("more.yaml").write_text(
        "apiVersion: core.oam.dev/v1beta1\nkind: ComponentDefinition\n"
        "metadata: {name: my-component, namespace: vela-system}\n"
        "spec: {version: 1.2.3, schematic: {a: 2}}"
    )
    assert run("resolve", "my-component", "-f", ".").code == 0


@pytest.mark.parametrize("command", [["versions"], ["versions", "sort"], ["resolve"]])
def test_every_command_has_help_with_an_example(
    run: Callable[..., Ran], command: list[str]
) -> None:
    ran = run(*command, "--help")
    assert ran.code == 0
    assert "Usage: polyver" in ran.out
    assert "Example: polyver" in ran.out


def test_help_is_shown_when_nothing_is_asked(run: Callable[..., Ran]) -> None:
    ran = run()
    assert "Usage: polyver COMMAND" in ran.out


def test_a_misspelt_command_is_recognised(run: Callable[..., Ran]) -> None:
    ran = run("reslove", "x")
    assert ran.code == 2
    assert 'Did you mean "resolve"?' in ran.err


def test_the_version_is_printed(run: Callable[..., Ran]) -> None:
    assert run("--version").out == "0.1.0\n"


def test_away_from_a_terminal_nothing_is_coloured_or_cut() -> None:
    ran = piped(
        *("resolve", "function-patch-and-transform", "-f", EXAMPLES), COLUMNS="20", TERM="xterm"
    )
    assert "\x1b" not in ran.stdout + ran.stderr
    assert len(ran.stdout.splitlines()) == 2


def test_text_from_a_file_cannot_reach_into_the_terminal(run: Callable[..., Ran]) -> None:
    evil = "2\\n\\e]0;owned\\a:bug:"
    deprecated = f'deprecated: {{since: "1.0.0", use: "{evil}"}}, schematic: {{a: 4}}'
    Path("defs.yaml").write_text(DEFS.replace("schematic: {a: 4}", deprecated))
    ran = run("resolve", "my-component", "-f", "defs.yaml")
    assert r"use 2\n\x1b]0;owned\x07:bug:" in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("redirection", "code"), [(">&-", 0), ("<&-", 0), ("2>&-", 0), (">/dev/full", 3)]
)
def test_closed_and_full_streams_are_no_bug(redirection: str, code: int) -> None:
    command = f"{POLYVER} versions sort --order kube v1 {redirection}"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert ran.returncode == code
    assert "Traceback" not in ran.stderr
    assert "bug" not in ran.stderr


def test_closed_standard_input_is_named() -> None:
    command = f"{POLYVER} resolve x -f - <&-"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert ran.returncode == 3
    assert "standard input is closed" in ran.stderr


def test_a_file_that_is_too_large_is_refused(run: Callable[..., Ran]) -> None:
    ran = run("resolve", "x", "-f", "/dev/zero")
    assert "/dev/zero is larger than 16 MiB" in ran.err
    assert ran.code == 3


def test_an_interruption_has_its_own_code(
    run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("polyver.app.commands.versions.print_lines", interrupted)
    assert run("versions", "sort", "--order", "kube", "v1").code == 130


def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = f"yes v1 | head -n 100000 | {POLYVER} versions sort --order kube | head -n 1"
    ran = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert ran.stdout == "v1\n"
    assert ran.stderr == ""


def test_a_bug_is_called_one_and_shows_no_traceback(
    run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("polyver.app.commands.versions.print_lines", broken)
    ran = run("versions", "sort", "--order", "kube", "v1")
    assert ran.code == 70
    assert "this is a bug in polyver: ZeroDivisionError: oops" in ran.err
    assert "Traceback" not in ran.err
    monkeypatch.setenv("POLYVER_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        run("versions", "sort", "--order", "kube", "v1")
