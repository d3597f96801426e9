"""`polyver functions`, `catalogue`, `blueprint`, `impact` and `why`, as someone types them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.app.test_cli import Ran
from tests.functions.samples import CATALOGUE, HEAD, SEED, known
from tests.walks.support import eventually

from polyver.kube.objects import load_manifests
from polyver.testing import EmbeddedServer

FUNCTIONS = '''
from polyver import functions
from polyver.functions import Duration

@functions.register("KubeExec")
async def kube_exec(ctx, namespace: str, pod: str, container: str | None, command: list[str]):
    """Runs a command in a container."""

@functions.register("KubeExec", version="v0.1.0", stable=True)
async def kube_exec_v010(
    ctx, namespace: str, pod: str, container: str | None, command: list[str],
    timeout: Duration = "1m",
):
    """The same, with an end."""

@functions.register("Report")
@functions.register("Report", version="v0.1.0")
@functions.register("Report", version="v0.2.0")
def report(ctx, text: str = ""):
    """Writes a report."""
'''
BLUEPRINT = HEAD + SEED + "    - {func: Report, name: report, funcVersion: v0.0.0}\n"
WITH = ("--functions", "fns.py")


def promoted() -> str:
    """The catalogue after a promotion that the server does not know of."""
    stable = CATALOGUE.replace("v0.1.0: {stage: stable}", "v0.1.0: {stage: candidate}")
    return stable.replace("v0.2.0: {stage: candidate}", "v0.2.0: {stage: stable}")


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ran]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    Path("fns.py").write_text(FUNCTIONS)
    Path("catalogue.yaml").write_text(CATALOGUE)
    Path("bp.yaml").write_text(BLUEPRINT)
    return lambda *arguments: Ran(capsys, *arguments)


Run = Callable[..., Ran]


def test_functions_are_listed(run: Run) -> None:
    ran = run("functions", "list", *WITH)
    assert (ran.code, ran.err) == (0, "")
    assert [line.split() for line in ran.out.splitlines()] == [
        ["NAME", "VERSION", "STAGE", "SINCE", "REMOVED", "IN", "USE"],
        ["Command", "v0.0.0", "stable"],
        ["HTTPCall", "v0.0.0", "stable"],
        ["KubeExec", "v0.0.0", "candidate"],
        ["KubeExec", "v0.1.0", "stable"],
        ["KubeOps", "v0.0.0", "stable"],
        ["KubeTask", "v0.0.0", "stable"],
        ["Report", "v0.0.0", "deprecated", "0.2.0", "0.4.0", "v0.1.0"],
        ["Report", "v0.0.9", "removed", "0.3.0", "v0.1.0"],
        ["Report", "v0.1.0", "stable"],
        ["Report", "v0.2.0", "candidate"],
        ["Wait", "v0.0.0", "stable"],
        ["WaitV2", "v0.0.0", "stable"],
    ]
    listed = json.loads(run("functions", "list", *WITH, "-o", "json").out)
    assert [each["name"] for each in listed["functions"]] == [
        *("Command", "HTTPCall", "KubeExec", "KubeOps", "KubeTask", "Report", "Wait", "WaitV2")
    ]


def test_a_catalogue_without_code_is_listed_as_such(run: Run) -> None:
    ran = run("functions", "list")
    assert ran.code == 0
    assert "Report     v0.1.0    stable, without code" in ran.out
    assert run("functions", "show", "Report").out.startswith("Report v0.0.0: deprecated")


def test_a_function_is_shown_with_its_arguments(run: Run) -> None:
    ran = run("functions", "show", "KubeExec@v0.1", *WITH)
    assert ran.code == 0
    assert "KubeExec v0.1.0: stable, default" in ran.out
    assert "timeout     duration          no         1m" in ran.out
    assert "The same, with an end." in ran.out
    assert json.loads(run("functions", "show", "Report", *WITH, "-o", "json").out)["default"]


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["show", "KubeExce"], 1, "there is no function KubeExce; did you mean KubeExec?"),
        (["show", "Report@v7"], 1, "Report has no v7.0.0; known: v0.0.0, v0.0.9"),
        (["show", "Report@x"], 2, '"x" is not a semantic version'),
        (["promote", "Report"], 2, "Report is not NAME@VERSION"),
        (["promote", "Report@v0.1.0"], 1, "is already stable (catalogue.yaml:6)"),
        (["promote", "Report@v0.2.0", "--removed-in", "0.3.0"], 1, "cannot be removed in 0.3.0"),
        (["deprecate", "Report@v0.1.0"], 1, "is the stable version"),
        (
            ["remove", "Report@v0.0.0"],
            1,
            "will be removed in 0.4.0 (catalogue.yaml:5); the current catalogue release is 0.3",
        ),
        (["promote", "Report@v0.2.0", "--catalogue", "no.yaml"], 3, "no.yaml cannot be read"),
        (
            ["promote", "Report@v0.2.0", "--catalogue", "bp.yaml"],
            3,
            "expected a catalogue, found a Bl",
        ),
    ],
)
def test_a_refusal_says_why_and_changes_nothing(
    run: Run, arguments: list[str], code: int, complaint: str
) -> None:
    loads = WITH if arguments[0] == "show" else ()
    ran = run("functions", *arguments, *loads)
    assert ran.code == code
    assert complaint in ran.err
    assert Path("catalogue.yaml").read_text() == CATALOGUE
    assert {path.name for path in Path().iterdir()} <= {
        *("fns.py", "catalogue.yaml", "bp.yaml", "__pycache__")
    }


def test_a_promotion_is_shown_first_and_then_written(run: Run) -> None:
    shown = run("functions", "promote", "Report@v0.2.0", "--dry-run")
    assert shown.code == 0
    assert "+      v0.2.0: {stage: stable}" in shown.out
    assert Path("catalogue.yaml").read_text() == CATALOGUE
    ran = run("functions", "promote", "Report@v0.2.0")
    assert ran.out.splitlines()[0] == "Report v0.2.0 is stable"
    written = Path("catalogue.yaml").read_text()
    assert "v0.1.0: {stage: deprecated, since: 0.3.0, removedIn: 0.5.0, use: v0.2.0}" in written
    assert written.splitlines()[0] == CATALOGUE.splitlines()[0]


def test_the_life_of_a_version_from_release_to_release(run: Run) -> None:
    assert run("catalogue", "release", "0.3.0").code == 1
    assert run("catalogue", "release", "0.4.0").out.splitlines() == [
        "0.4.0 is released",
        "Report v0.0.0 is removed",
    ]
    assert run("functions", "remove", "Report@v0.0.0").code == 0
    refused = run("functions", "list", *WITH)
    assert refused.code == 3
    assert "Report v0.0.0 is registered, and the catalogue lists it as removed" in refused.err
    assert "fns.py:16 and catalogue.yaml:5" in refused.err


def test_patch_releases_do_not_shorten_the_notice_of_a_removal(run: Run) -> None:
    assert run("functions", "promote", "Report@v0.2.0").code == 0
    for patch in ("0.3.1", "0.3.2"):
        assert run("catalogue", "release", patch).code == 0
    file = Path("catalogue.yaml")
    written = file.read_text()
    file.write_text(written.replace("removedIn: 0.5.0", "removedIn: 0.3.2"))
    refused = run("functions", "list", *WITH)
    assert refused.code == 3
    assert "Report v0.1.0 is deprecated since 0.3.0 and cannot be removed in 0.3.2" in refused.err
    assert "that is 0 minor or major releases later, at least 2 are needed" in refused.err
    file.write_text(written)
    for early in ("0.3.9", "0.4.1"):
        ran = run("functions", "deprecate", "Report@v0.1.0", "--removed-in", early)
        assert (ran.code, f"cannot be removed in {early}" in ran.err) == (1, True)
    assert run("catalogue", "release", "0.4.0").code == 0
    assert run("catalogue", "release", "0.5.0").out.splitlines()[-1] == "Report v0.1.0 is removed"


def test_a_release_that_takes_something_away_from_a_blueprint_can_be_refused(run: Run) -> None:
    ran = run("catalogue", "release", "0.4.0", "-f", "bp.yaml")
    assert ran.code == 1
    assert "in use by kanister/times (bp.yaml:19, actions.tail.phases[1])" in ran.err
    assert Path("catalogue.yaml").read_text() == CATALOGUE
    forced = run("catalogue", "release", "0.4.0", "-f", "bp.yaml", "--force")
    assert (forced.code, "warning: this removes versions that are in use" in forced.err) == (
        0,
        True,
    )
    # It is gone by then, so that writing it down takes nothing away.
    assert run("functions", "remove", "Report@v0.0.0", "-f", "bp.yaml").code == 0


def test_a_file_of_that_name_that_is_something_else_is_not_taken(run: Run) -> None:
    Path("catalogue.yaml").write_text("books: []\n")
    assert run("functions", "list", *WITH).code == 0
    assert "there is no catalogue" in run("catalogue", "release", "0.4.0").err


def test_a_byte_order_mark_and_the_mode_of_the_file_stay(run: Run) -> None:
    file = Path("catalogue.yaml")
    file.write_bytes(b"\xef\xbb\xbf" + CATALOGUE.encode())
    file.chmod(0o640)
    assert run("catalogue", "release", "0.4.0").code == 0
    assert file.read_bytes().startswith(b"\xef\xbb\xbfreleases: [0.1.0, 0.2.0, 0.3.0, 0.4.0]")
    assert file.stat().st_mode & 0o777 == 0o640


def test_of_several_catalogues_the_right_one_is_edited(run: Run) -> None:
    Path("other.yaml").write_text("releases: [1.0.0]\nfunctions: {}\n")
    both = ("--catalogue", "other.yaml", "--catalogue", "catalogue.yaml")
    assert run("functions", "promote", "Report@v0.2.0", *both).code == 0
    assert "0.5.0" in Path("catalogue.yaml").read_text()
    ran = run("catalogue", "release", "2.0.0", *both)
    assert (ran.code, "choose one with --catalogue" in ran.err) == (2, True)


def test_a_project_says_where_its_functions_and_catalogues_are(run: Run) -> None:
    Path("pyproject.toml").write_text(
        '[tool.polyver]\nfunctions = ["fns"]\ncatalogues = ["lists/own.yaml"]\n'
    )
    Path("lists").mkdir()
    Path("catalogue.yaml").rename("lists/own.yaml")
    assert run("blueprint", "validate", "-f", "bp.yaml").code == 0
    assert run("functions", "promote", "Report@v0.2.0").code == 0
    Path("pyproject.toml").write_text("[tool.polyver]\nfunctions = 5\n")
    ran = run("functions", "list")
    assert (ran.code, "tool.polyver.functions is not a list of names" in ran.err) == (3, True)


# Blueprints.


def test_a_blueprint_that_is_right_is_told_with_its_warnings(run: Run) -> None:
    ran = run("blueprint", "validate", "-f", "bp.yaml", *WITH)
    assert (ran.code, ran.out) == (0, "1 blueprint checked, no errors\n")
    assert "Report v0.0.0 is deprecated since 0.2.0" in ran.err


def test_what_stops_working_in_a_release_fails_the_check(run: Run) -> None:
    ran = run("blueprint", "validate", "-f", "bp.yaml", *WITH, "--release", "0.4.0")
    assert ran.code == 1
    assert "phase report stops working in 0.4.0: Report v0.0.0 was removed in 0.4.0" in ran.err
    found = json.loads(
        run("blueprint", "validate", "-f", "bp.yaml", *WITH, "--release", "0.4", "-o", "json").out
    )
    assert [each["severity"] for each in found["findings"]] == ["warning", "error"]
    assert found["findings"][1]["path"] == "actions.tail.phases[1].funcVersion"


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["-f", "bp.yaml", "--release", "0.3.0"], 2, "0.3.0 is already released"),
        (["-f", "bp.yaml", "--release", "x"], 2, "is not a semantic version"),
        (["-f", "catalogue.yaml"], 1, "there is no Blueprint in catalogue.yaml"),
        (["-f", "no.yaml"], 3, "no.yaml cannot be read"),
    ],
)
def test_what_makes_no_sense_is_told(
    run: Run, arguments: list[str], code: int, complaint: str
) -> None:
    ran = run("blueprint", "validate", *arguments, *WITH)
    assert ran.code == code
    assert complaint in ran.err


def test_the_users_of_a_version_are_listed(run: Run) -> None:
    ran = run("impact", "Report@v0.0.0", "-f", "bp.yaml", *WITH)
    assert ran.code == 0
    assert ran.out.splitlines()[1].split()[:5] == [
        *("kanister/times", "tail", "report", "v0.0.0", "v0.0.0")
    ]
    assert run("impact", "Report@v0.2.0", "-f", "bp.yaml", *WITH).out == "not used\n"
    assert run("impact", "Nobody", "-f", "bp.yaml", *WITH).code == 1
    found = json.loads(run("impact", "KubeExec", "-f", "bp.yaml", *WITH, "-o", "json").out)
    assert found["uses"][0]["place"] == "bp.yaml:7, actions.tail.phases[0]"


# Code that cannot be used.


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "raise RuntimeError('no')",
            "broken cannot be imported: RuntimeError: no (broken.py:1)",
        ),
        ("x = 1", "broken.py registers no function"),
        (
            "from polyver import functions\n@functions.register('A')\ndef a(): ...",
            "the first argument of a function is its context (broken.py:2); write def name(ctx, …)",
        ),
        (
            "from polyver import functions\n"
            "@functions.register('A')\ndef a(ctx): ...\n@functions.register('A')\ndef a(ctx): ...",
            "A v0.0.0 is registered twice (broken.py:2 and broken.py:4)",
        ),
        (
            "from polyver import functions\n@functions.register('KubeExec')\ndef a(ctx): ...",
            "KubeExec v0.0.0 is registered twice (fns.py:5 and broken.py:2)",
        ),
    ],
)
def test_code_that_a_user_names_has_to_be_right(run: Run, text: str, complaint: str) -> None:
    Path("broken.py").write_text(text)
    ran = run("functions", "list", *WITH, "--functions", "broken.py")
    assert ran.code == 3
    assert complaint in ran.err


def install(name: str, *modules: tuple[str, str]) -> None:
    """Put packages beside the test as an installer does: code, and a note of its entry points."""
    for module, text in modules:
        Path(f"{module}.py").write_text(text)
    folder = Path(f"{name}-1.0.dist-info")
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    entries = "".join(f"{module} = {module}\n" for module, _ in modules)
    (folder / "entry_points.txt").write_text(f"[polyver.functions]\n{entries}")


GOOD = "from polyver import functions\n@functions.register('Good')\ndef good(ctx): ...\n"


@pytest.mark.parametrize(
    ("module", "complaint"),
    [
        ("raise RuntimeError('no')", "RuntimeError('no')"),
        ("import sys; sys.exit(4)", "it ended with 4"),
        ("import nowhere", "ModuleNotFoundError(\"No module named 'nowhere'\")"),
        ("x = 1", "it registers no function"),
        (GOOD, "Good v0.0.0 is registered twice (agood.py:2 and bad.py:2)"),
    ],
)
def test_an_installed_package_that_is_broken_costs_only_itself(
    run: Run, monkeypatch: pytest.MonkeyPatch, module: str, complaint: str
) -> None:
    install("good-functions", ("agood", GOOD))
    install("bad-functions", ("bad", module))
    monkeypatch.syspath_prepend(str(Path.cwd()))
    ran = run("functions", "list", *WITH)
    assert ran.code == 0, ran.err
    assert "Good       v0.0.0" in ran.out
    assert "KubeExec   v0.1.0" in ran.out
    assert f"the functions of bad-functions (bad) are ignored: {complaint}" in ran.err


def test_a_package_brings_its_catalogue_along_and_is_one_with_what_is_named(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Named as well where a project is installed in place, and says where its functions are."""
    Path("shipped").mkdir()
    install("shipped-functions", ("shipped", ""))
    Path("shipped.py").rename("shipped/__init__.py").write_text(FUNCTIONS)
    Path("catalogue.yaml").rename("shipped/catalogue.yaml")
    monkeypatch.syspath_prepend(str(Path.cwd()))
    ran = run("functions", "list")
    assert ran.code == 0, ran.err
    assert "Report     v0.0.0    deprecated   0.2.0" in ran.out
    again = ("--functions", "shipped/__init__.py", "--catalogue", "shipped/catalogue.yaml")
    assert run("functions", "list", *again).out == ran.out


# What is on a server.


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(capabilities=["functions"], functions=known()) as running:
        group = "/apis/cr.kanister.io/v1alpha1/namespaces/default"
        [document] = load_manifests(BLUEPRINT.replace(", namespace: kanister", ""), "bp.yaml")
        running.request("POST", f"{group}/blueprints", document.value)
        for name, action in (("now", "tail"), ("never", "none")):
            about = {"apiVersion": "cr.kanister.io/v1alpha1", "kind": "ActionSet"}
            spec = {"actions": [{"name": action, "blueprint": "times", "preferredVersion": "v0.2"}]}
            running.request(
                "POST", f"{group}/actionsets", about | {"metadata": {"name": name}, "spec": spec}
            )
            eventually(
                lambda name=name: (
                    "state"  # type: ignore[misc]
                    in running.request("GET", f"{group}/actionsets/{name}").get("status", {})
                )
            )
        yield running


@pytest.fixture
def connected(server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))


@pytest.mark.usefixtures("connected")
def test_why_tells_what_a_phase_got_and_would_get_now(run: Run) -> None:
    ran = run("why", "actionset/now", *WITH, "--explain")
    assert ran.code == 0
    rows = [line.split() for line in ran.out.splitlines()]
    assert rows[1][:5] == ["tail", "tail", "KubeExec", "v0.1.0", "v0.1.0"]
    assert rows[2][:5] == ["tail", "report", "Report", "v0.0.0", "v0.0.0"]
    assert "Report v0.0.0 is deprecated since 0.2.0 and will be removed in 0.4.0" in ran.out
    assert "not 0.1.0" in ran.out
    found = json.loads(run("why", "actionset/now", *WITH, "-o", "json").out)
    assert found["phases"][0]["now"] == {
        "version": "v0.1.0",
        "why": "exact version",
        "rejected": [{"version": "v0.0.0", "why": "not 0.1.0"}],
    }


@pytest.mark.usefixtures("connected")
def test_why_tells_why_nothing_has_begun(run: Run) -> None:
    ran = run("why", "actionsets/never", *WITH)
    assert "failed: blueprint default/times has no action none" in ran.out
    assert "blueprint times or its action none does not exist" in ran.err
    assert run("why", "actionset/other", *WITH).code == 1
    assert run("why", "pod/other", *WITH).code == 2
    assert run("why", "actionset/now", "--context", "nowhere").code == 3


@pytest.mark.usefixtures("connected")
def test_impact_asks_the_cluster_where_no_file_is_named(run: Run) -> None:
    for where in ([], ["-f", "cluster:"], ["-f", "cluster:polyver-token"]):
        ran = run("impact", "Report@v0.0.0", *WITH, *where)
        assert [line.split()[:3] for line in ran.out.splitlines()[1:]] == [
            ["default/times", "tail", "report"]
        ]
    both = run("impact", "Report@v0.0.0", *WITH, "-f", "bp.yaml", "-f", "cluster:")
    assert len(both.out.splitlines()) == 3


@pytest.mark.usefixtures("connected")
def test_the_functions_of_the_server_count_where_none_are_named(run: Run) -> None:
    """Here is no code that registers Report, and a catalogue that says something else of it."""
    Path("catalogue.yaml").write_text(promoted())
    found = json.loads(run("why", "actionset/now", "-o", "json").out)
    assert [each["now"]["version"] for each in found["phases"]] == ["v0.1.0", "v0.0.0"]
    used = json.loads(run("impact", "Report", "-o", "json").out)
    assert [(each["blueprint"], each["gets"]) for each in used["uses"]] == [
        ("default/times", "v0.0.0")
    ]
    listed = json.loads(run("functions", "list", "-o", "json").out)
    stages = {each["name"]: each["versions"] for each in listed["functions"]}["Report"]
    assert ("v0.1.0", "stable") in [(each["version"], each["stage"]) for each in stages]
    shown = run("functions", "show", "Report@v0.1")
    assert (shown.code, shown.out.splitlines()[0].partition(":")[0]) == (0, "Report v0.1.0")
    assert run("functions", "show", "Reprot").code == 1


@pytest.mark.usefixtures("connected")
def test_code_that_is_named_counts_and_what_differs_from_the_server_is_told(run: Run) -> None:
    Path("other.yaml").write_text(promoted())
    named = (*WITH, "--catalogue", "other.yaml")
    for command in (["why", "actionset/now"], ["impact", "Report"], ["functions", "list"]):
        server = ["--context", "polyver"] if command[0] == "functions" else []
        ran = run(*command, *named, *server)
        assert ran.code == 0, ran.err
        [told] = [line for line in ran.err.splitlines() if "Report is" in line]
        assert "v0.1.0 stable, v0.2.0 candidate on https://" in told
        assert "and v0.0.0 deprecated, v0.1.0 candidate, v0.2.0 stable here" in told
    assert "Report is" not in run("why", "actionset/now", *WITH).err


def test_what_comes_with_polyver_gives_way(run: Run) -> None:
    shown = run("functions", "show", "KubeExec@v0.0.0", *WITH).out
    assert "Runs a command in a container." in shown
    Path("only.yaml").write_text(
        "releases: [1.0.0]\nfunctions:\n  KubeExec:\n    versions:\n      v0.0.0: {stage: stable}\n"
        "      v0.1.0: {stage: candidate}\n      v0.2.0: {stage: candidate}\n"
    )
    listed = run("functions", "list", "--catalogue", "only.yaml").out
    assert "KubeExec   v0.0.0    stable" in listed
    assert "KubeOps    v0.0.0    stable" in listed


@pytest.mark.parametrize("text", ["soon", "0s", "-1h", "5"])
def test_the_time_of_a_call_has_to_be_one(run: Run, text: str) -> None:
    ran = run("up", "--functions", "fns.py", f"--function-timeout={text}")
    assert ran.code == 2
    assert f"'{text}' is not a duration (--function-timeout)" in ran.err
