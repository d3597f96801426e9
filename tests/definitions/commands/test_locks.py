"""`polyver lock`, `verify`, `app` and `plan`, as someone types them, beside a control plane."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.app.test_cli import Ran
from tests.definitions.samples import Platform, application, definition, entry, served, versions_of

from polyver.kube.objects import dump_yaml, load_manifests

Object = dict[str, Any]
Run = Callable[..., Ran]
FORCED = "definition.polyver.dev/remove-by-force"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with served() as around:
        yield around


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return f"d{zlib.crc32(request.node.name.encode())}"


@pytest.fixture
def space(platform: Platform, name: str) -> str:
    """A namespace for the applications of one test."""
    platform.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    return name


@pytest.fixture
def run(
    platform: Platform,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(platform.server.kubeconfig))
    return lambda *arguments: Ran(capsys, *arguments)


def rendering(version: str, more: str = "", **parameters: Object) -> Object:
    """A version that makes a ConfigMap."""
    made = entry(version, parameters={"image": {"type": "string", "default": "nginx"}} | parameters)
    text = f"""apiVersion: v1
kind: ConfigMap
metadata: {{name: "{{{{ .context.name }}}}"}}
data: {{image: "{{{{ .parameter.image }}}}"{more}}}
"""
    made["schematic"]["gotemplate"]["template"] = text
    return made


def write(name: str, *objects: Object) -> str:
    Path(name).write_text("---\n".join(map(dump_yaml, objects)))
    return name


# Locks.


def test_a_lock_is_written_verified_and_what_moved_is_named(
    platform: Platform, name: str, space: str, run: Run
) -> None:
    platform.publish(definition(name, "1.0.0"))
    follows = application("follows", f"{name}@1", namespace=space)
    platform.deploy(follows)
    platform.deploy(application("stays", f"{name}@1.0.0", namespace=space))
    first = run("lock", "-n", space)
    assert (first.code, first.err) == (0, "")
    assert run("lock", "-n", space, "-o", "a.yaml").out == "wrote a.yaml\n"
    assert Path("a.yaml").read_text() == first.out
    assert run("verify", "--lock", "a.yaml").out == "2 applications match the lock\n"
    platform.publish(definition(name, "1.0.0", "1.1.0"))
    platform.uses(follows, "1.1.0")
    done = run("verify", "--lock", "a.yaml")
    assert (done.code, done.err) == (1, "error: 1 difference from the lock (a.yaml)\n")
    assert f"{space}/follows   Component c0   vela-system/{name}   the version is 1.1.0" in done.out
    told = json.loads(run("verify", "--lock", "a.yaml", "-o", "json").out)["differences"]
    assert [(e["what"], e["locked"], e["found"]) for e in told] == [("version", "1.0.0", "1.1.0")]


def test_a_changed_digest_and_what_is_more_or_less_are_named(
    platform: Platform, name: str, space: str, run: Run
) -> None:
    platform.publish(definition(name, "1.0.0"))
    platform.deploy(application("one", f"{name}@1", namespace=space))
    run("lock", "-n", space, "-o", "a.yaml")
    text = Path("a.yaml").read_text()
    Path("a.yaml").write_text(text.replace("sha256:", "sha256:0").replace("name: one", "name: two"))
    done = run("verify", "--lock", "a.yaml")
    assert done.code == 1
    assert "not in the lock" in done.out
    assert "in the lock, but not found" in done.out
    Path("a.yaml").write_text(text.replace("sha256:", "sha256:0"))
    assert "the digest of 1.0.0 is sha256:" in run("verify", "--lock", "a.yaml").out


def test_files_give_the_same_lock_as_the_cluster(
    platform: Platform, name: str, space: str, run: Run
) -> None:
    whole, app = definition(name, "1.0.0", "1.1.0"), application("a", f"{name}@1", namespace=space)
    platform.publish(whole)
    platform.deploy(app)
    files = write("all.yaml", app, whole)
    assert run("lock", "-f", files, "-n", space).out == run("lock", "-n", space).out


def test_what_is_in_files_twice_is_told(name: str, run: Run) -> None:
    app, one = application("a", name), definition(name, "1.0.0", namespace="default")
    done = run("lock", "-f", write("all.yaml", app, app))
    assert (done.code, "Application default/a is listed twice (all.yaml:" in done.err) == (3, True)
    other = definition(name, "1.1.0")
    del other["metadata"]["namespace"]
    done = run("lock", "-f", write("all.yaml", app, one, other))
    assert (done.code, "occurs with and without its namespace" in done.err) == (3, True)


def test_a_lock_lists_every_reason_of_every_application_and_writes_nothing(
    name: str, run: Run
) -> None:
    there = definition(name, "1.0.0")
    fine, first = application("fine", name), application("first", f"{name}@8", f"{name}@9")
    files = write("all.yaml", there, fine, first, application("second", f"{name}-2@1"))
    done = run("lock", "-f", files, "-o", "a.yaml")
    assert (done.code, done.out, Path("a.yaml").exists()) == (1, "", False)
    *reasons, last = done.err.splitlines()
    assert [f"{name} has no release in series {each}" in done.err for each in (8, 9)] == [True] * 2
    assert [each.partition(" cannot be locked: ")[0] for each in reasons] == [
        "error: Application default/first",
        "error: Application default/first",
        "error: Application default/second",
    ]
    assert last.startswith("error: nothing was written: 2 of 3 applications are unresolved")
    assert "--skip-unresolved" in last


def test_applications_that_do_not_resolve_are_left_out_of_a_lock_on_request(
    name: str, run: Run
) -> None:
    there, app = definition(name, "1.0.0"), application("fine", name)
    alone = run("lock", "-f", write("alone.yaml", there, app))
    files = write("all.yaml", there, app, application("wrong", f"{name}@9"))
    done = run("lock", "-f", files, "--skip-unresolved")
    assert (done.code, done.out) == (0, alone.out)
    assert done.err.startswith("warning: Application default/wrong cannot be locked: ")
    assert len(done.err.splitlines()) == 1


def test_all_applications_of_files_that_a_lock_does_not_have_are_named(name: str, run: Run) -> None:
    there, apps = definition(name, "1.0.0"), [application(each, name) for each in "abc"]
    run("lock", "-f", write("one.yaml", there, apps[0]), "-o", "a.yaml")
    done = run("app", "lock", "-f", write("all.yaml", *apps), "--lock", "a.yaml")
    assert (done.code, done.out) == (1, "")
    assert "default/b, default/c are not in the lock (a.yaml)" in done.err


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("kind: Lock", '"apiVersion" is missing (a.yaml:1)'),
        ("", "a.yaml contains 0 documents, but a lock is one document"),
        (
            dump_yaml({"apiVersion": "v1", "kind": "Pod", "applications": []}),
            "Pod of v1 is not a lock (a.yaml:2, kind)",
        ),
    ],
    ids=["torn", "empty", "other"],
)
def test_what_is_no_lock_is_told(run: Run, text: str, complaint: str) -> None:
    Path("a.yaml").write_text(text)
    done = run("verify", "--lock", "a.yaml")
    assert done.code == 3
    assert complaint in done.err


def test_a_manifest_that_is_no_application_is_told_with_its_line(run: Run) -> None:
    broken = application("a", "web@1")
    broken["spec"]["components"] = "web"
    done = run("lock", "-f", write("all.yaml", broken))
    assert done.code == 3
    assert "expected a list, got a string (all.yaml:8, spec.components)" in done.err


def test_an_application_in_a_file_gets_its_part_of_a_lock(
    platform: Platform, name: str, space: str, run: Run
) -> None:
    platform.publish(definition(name, "1.0.0", "1.1.0"))
    app = application("a", f"{name}@1", namespace=space)
    platform.deploy(app)
    run("lock", "-n", space, "-o", "a.yaml")
    done = run("app", "lock", "-f", write("app.yaml", app), "--lock", "a.yaml")
    [document] = load_manifests(done.out, "printed")
    carried: Any = document.value
    assert carried["spec"] == app["spec"]
    platform.write(carried)
    platform.until(app, lambda each: each["status"]["resolutions"][0]["reason"] == "locked")
    other = write("app.yaml", application("b", name, namespace=space))
    done = run("app", "lock", "-f", other, "--lock", "a.yaml")
    assert (done.code, f"{space}/b is not in the lock (a.yaml)" in done.err) == (1, True)
    assert run("app", "lock", "-f", other).code == 2
    assert run("app", "lock").code == 2


def test_an_application_is_locked_and_unlocked(
    platform: Platform, name: str, space: str, run: Run
) -> None:
    platform.publish(definition(name, "1.0.0"))
    app = application("a", f"{name}@1", namespace=space)
    platform.deploy(app)
    assert run("app", "lock", "a", "-n", space).out == f"a is locked: vela-system/{name} 1.0.0\n"
    platform.until(app, lambda each: each["status"]["resolutions"][0]["reason"] == "locked")
    done = run("why", "app/a", "-n", space)
    assert "locked, since" in done.out
    assert run("app", "unlock", "a", "-n", space).out == "a is no longer locked\n"
    assert run("app", "unlock", "a", "-n", space).out == "a is not locked\n"
    platform.until(app, lambda each: each["status"]["resolutions"][0]["reason"] != "locked")


# The way back.


def test_an_application_returns_to_an_earlier_revision_and_stays_there(
    platform: Platform, name: str, space: str, run: Run
) -> None:
    platform.publish(definition(name, "1.0.0"))
    app = application("a", f"{name}@1", namespace=space)
    platform.deploy(app)
    platform.publish(definition(name, "1.0.0", "1.1.0"))
    platform.uses(app, "1.1.0")
    done = run("app", "rollback", "a", "-n", space, "--dry-run")
    assert done.out == f"a would have the spec and the versions of a-v1: {name} 1.0.0\n"
    assert versions_of(platform.get(app)) == ["1.1.0"]
    done = run("app", "rollback", "a", "-n", space)
    assert (done.code, done.err) == (0, "")
    found = platform.uses(app, "1.0.0")
    assert found["status"]["latestRevision"]["name"] == "a-v3"
    follower = application("f", f"{name}@1", namespace=space)
    platform.publish(definition(name, "1.0.0", "1.1.0", "1.2.0"))
    platform.deploy(follower)
    platform.uses(follower, "1.2.0")
    assert versions_of(platform.get(app)) == ["1.0.0"]
    table = [line.split() for line in run("app", "history", "a", "-n", space).out.splitlines()]
    assert [(row[0], row[1], row[4], row[5:]) for row in table[1:]] == [
        ("1", "a-v1", "1.0.0", []),
        ("2", "a-v2", "1.1.0", []),
        ("3", "a-v3", "1.0.0", ["1"]),
    ]
    run("app", "unlock", "a", "-n", space)
    platform.uses(app, "1.2.0")


def test_the_spec_returns_as_it_was_and_stays_its_owners(
    platform: Platform, name: str, space: str, run: Run
) -> None:
    platform.publish(definition(name, "1.0.0", "2.0.0"))
    first = application("a", f"{name}@1", namespace=space)
    first["spec"]["policies"] = [{"name": "p", "type": f"{name}-p"}]
    platform.publish(definition(f"{name}-p", "1.0.0", kind="PolicyDefinition"))
    second = application("a", f"{name}@2", namespace=space)
    for each in (first, second):
        said = {k: v for k, v in each.items() if k != "status"}
        each["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(said)}
        platform.deploy(each)
    platform.uses(second, "2.0.0")
    assert run("app", "rollback", "a", "-n", space, "--to", "v1").code == 0
    found = platform.uses(first, "1.0.0", "1.0.0")
    assert found["spec"] == first["spec"]
    assert json.loads(found["metadata"]["annotations"][LAST_APPLIED])["spec"] == first["spec"]
    owners = {
        each["manager"]: each["fieldsV1"]
        for each in found["metadata"]["managedFields"]
        if "subresource" not in each
    }
    assert "f:spec" not in owners["polyver"]
    [other] = [fields for manager, fields in owners.items() if manager != "polyver"]
    assert {"f:components", "f:policies"} <= other["f:spec"].keys()


def test_a_way_back_to_what_is_gone_is_refused_and_changes_nothing(
    platform: Platform, name: str, space: str, run: Run
) -> None:
    platform.publish(definition(name, "1.0.0"))
    app = application("a", f"{name}@1", namespace=space)
    platform.deploy(app)
    platform.publish(definition(name, "1.0.0", "1.1.0"))
    platform.uses(app, "1.1.0")
    platform.publish(definition(name, "1.1.0"))
    before = platform.get(app)
    done = run("app", "rollback", "a", "-n", space)
    assert done.code == 1
    assert f"a cannot return to a-v1: {name} 1.0.0 was removed" in done.err
    assert platform.get(app) == before


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("rollback", "b"), "there is no application b in the namespace"),
        (("rollback", "a", "--to", "7"), "a has no revision 7; known: a-v1"),
        (("rollback", "a", "--to", "x"), "a has no revision x; known: a-v1"),
        (("rollback", "a"), "a has no earlier revision than a-v1"),
        (("history", "b"), "there is no application b"),
    ],
)
def test_a_way_back_that_does_not_exist_is_told(
    platform: Platform, name: str, run: Run, arguments: tuple[str, ...], complaint: str
) -> None:
    space = "ways"
    if space not in str(platform.request("GET", "/api/v1/namespaces")):
        platform.request("POST", "/api/v1/namespaces", {"metadata": {"name": space}})
        platform.publish(definition("ways", "1.0.0"))
        platform.deploy(application("a", "ways@1", namespace=space))
    done = run("app", *arguments, "-n", space)
    assert (done.code, complaint in done.err) == (1, True), done.err


# Plans.


def test_a_plan_tells_who_moves_and_what_changes(
    platform: Platform, name: str, space: str, run: Run
) -> None:
    platform.publish(definition(name, rendering("1.0.0")))
    app = application("a", f"{name}@1", namespace=space)
    platform.deploy(app)
    platform.deploy(application("b", f"{name}@1.0.0", namespace=space))
    new = write("new.yaml", definition(name, rendering("1.0.0"), rendering("1.1.0", ", x: new")))
    done = run("plan", "-f", new)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[:2] == [
        "1 application: 0 unchanged, 1 changed, 0 would lose objects, 0 would fail",
        f"ComponentDefinition vela-system/{name} publishes 1.1.0",
    ]
    row = [f"vela-system/{name}", "1.0.0", "1.1.0", *"newest in series 1 1:".split(), f"{space}/a"]
    assert lines[3].split() == row
    assert lines[4:8] == [
        "",
        "1 ConfigMap: data.x added: new",
        f"  {space}/a",
        f"  example: ConfigMap {space}/c0 (v1) of {space}/a",
    ]
    assert "+  x: new" in lines
    assert f"{space}/b" not in done.out
    assert platform.revisions(name) == [f"{name}-v1.0.0"]
    told = json.loads(run("plan", "-f", new, "-o", "json").out)
    assert [(each["from"], each["to"]) for each in told["moves"]] == [("1.0.0", "1.1.0")]
    [changed] = told["changes"]
    assert changed["example"]["diff"].endswith("+  x: new")
    assert changed["applications"] == [f"{space}/a"]
    platform.publish(definition(name, rendering("1.0.0"), rendering("1.1.0", ", x: new")))
    platform.uses(app, "1.1.0")


def test_a_plan_tells_what_would_be_refused(
    platform: Platform, name: str, space: str, run: Run
) -> None:
    platform.publish(definition(name, rendering("1.0.0"), rendering("1.1.0")))
    platform.deploy(application("a", f"{name}@1.0.0", namespace=space))
    number = rendering("1.2.0", image={"type": "integer", "default": 1})
    for new, complaint in (
        (definition(name, rendering("1.1.0")), f"1.0.0 is used by Application {space}/a"),
        (definition(name, rendering("1.0.0", ", x: new"), rendering("1.1.0")), "other content"),
        (
            definition(name, rendering("1.0.0"), rendering("1.1.0"), number),
            "image: string changed to integer",
        ),
        (definition(name, rendering("1.0.0"), "v2"), 'a leading "v"'),
    ):
        done = run("plan", "-f", write("new.yaml", new))
        assert done.code == 1
        assert f"ComponentDefinition vela-system/{name} is refused: " in done.out
        assert complaint in done.out


def test_a_plan_tells_what_is_lost_by_force(
    platform: Platform, name: str, space: str, run: Run
) -> None:
    platform.publish(definition(name, "1.0.0", "1.1.0"))
    platform.deploy(application("a", f"{name}@1.0.0", namespace=space))
    new = definition(name, "1.1.0", **{FORCED: "1.0.0"})
    done = run("plan", "-f", write("new.yaml", new), "-o", "json")
    assert (done.code, done.err) == (1, "error: 1 application would fail\n")
    told = json.loads(done.out)
    [lost] = told["losses"]
    assert (lost["application"], lost["from"]) == (f"{space}/a", "1.0.0")
    assert f"{name} 1.0.0 was removed" in lost["error"]
    [forced] = told["definitions"][0]["removesByForce"]
    assert forced == f"{name} 1.0.0 is removed by force, but is used by Application {space}/a"


def test_a_plan_takes_applications_beside_the_definitions_that_they_need(
    platform: Platform, name: str, space: str, run: Run
) -> None:
    app = application("a", f"{name}@1", namespace=space)
    done = run("plan", "-f", write("app.yaml", app))
    assert done.code == 1
    assert f"there is no ComponentDefinition {name}" in done.out
    both = write("both.yaml", definition(name, rendering("1.0.0")), app)
    done = run("plan", "-f", both)
    assert (done.code, done.err) == (0, "")
    assert "1 ConfigMap added" in done.out.splitlines()
    platform.publish(definition(name, rendering("1.0.0"), rendering("2.0.0", ", x: new")))
    platform.deploy(app)
    app["spec"]["components"][0]["type"] = f"{name}@2"
    done = run("plan", "-f", write("app.yaml", app))
    assert "+  x: new" in done.out.splitlines()
    assert versions_of(platform.get(app)) == ["1.0.0"]


def test_a_plan_tells_whom_a_definition_of_their_own_would_take_something_from(
    platform: Platform, name: str, space: str, run: Run
) -> None:
    platform.publish(definition(name, "1.0.0"))
    platform.deploy(application("a", f"{name}@1", namespace=space))
    new = definition(name, "2.0.0", namespace=space)
    told = json.loads(run("plan", "-f", write("new.yaml", new), "-o", "json").out)
    [lost] = told["losses"]
    assert (lost["definition"], lost["from"]) == (f"{space}/{name}", "vela-system 1.0.0")


def test_files_without_anything_to_plan_are_told(run: Run) -> None:
    done = run("plan", "-f", write("x.yaml", {"apiVersion": "v1", "kind": "Pod"}))
    assert (done.code, "there is no object in the files that can be planned" in done.err) == (
        1,
        True,
    )


def test_what_a_server_would_not_take_is_told(name: str, space: str, run: Run) -> None:
    wrong = application("a", name, namespace=space, autoUpdate="yes")
    done = run("plan", "-f", write("app.yaml", wrong))
    assert done.code == 1
    assert 'expected "true" or "false"' in done.out


CONFIG = """apiVersion: v1
kind: %s
metadata: {name: "{{ .context.appName }}"}
data: {password: "%s"}
"""


def made_of(version: str, template: str) -> Object:
    made = rendering(version)
    made["schematic"]["gotemplate"]["template"] = template
    return made


def followers(platform: Platform, name: str, space: str, template: str, count: int) -> list[str]:
    """Deploy applications that follow a definition; their names."""
    platform.publish(definition(name, made_of("1.0.0", template)))
    names = [f"a{number:02}" for number in range(count)]
    for each in names:
        platform.runs(application(each, f"{name}@1", namespace=space))
    return [f"{space}/{each}" for each in names]


def test_a_plan_for_a_release_that_breaks_everyone_fails_with_one_line_for_all(
    platform: Platform, name: str, space: str, run: Run
) -> None:
    template = CONFIG % ("ConfigMap", "x")
    names = followers(platform, name, space, template, 12)
    broken = definition(name, made_of("1.0.0", template), made_of("1.1.0", "kind: ConfigMap"))
    done = run("plan", "-f", write("new.yaml", broken))
    assert (done.code, done.err) == (1, "error: 12 applications would fail\n")
    lines = done.out.splitlines()
    assert (
        lines[0] == "12 applications: 0 unchanged, 0 changed, 0 would lose objects, 12 would fail"
    )
    [failure] = [number for number, line in enumerate(lines) if " would fail: " in line]
    assert "12 applications would fail: document 1 has no apiVersion" in lines[failure]
    assert lines[failure + 1].endswith(f"{space}/a09 and 2 more")
    assert len(lines) < 12, "it does not grow with the applications"
    whole = run("plan", "-f", "new.yaml", "--all").out
    assert f"  {', '.join(names)}" in whole.splitlines()
    told = json.loads(run("plan", "-f", "new.yaml", "-o", "json").out)
    assert told["summary"]["wouldFail"] == 12
    assert [each["applications"] for each in told["failures"]] == [names]


def test_a_plan_for_a_release_that_renders_nothing_names_the_objects_that_are_lost(
    platform: Platform, name: str, space: str, run: Run
) -> None:
    template = CONFIG % ("ConfigMap", "x")
    followers(platform, name, space, template, 2)
    empty = definition(name, made_of("1.0.0", template), made_of("1.1.0", "# nothing"))
    done = run("plan", "-f", write("new.yaml", empty))
    assert (done.code, done.err) == (1, "error: 2 applications would lose objects\n")
    assert "2 ConfigMaps lost" in done.out.splitlines()
    assert f"  example: ConfigMap {space}/a00 (v1) of {space}/a00" in done.out.splitlines()
    assert run("plan", "-f", "new.yaml", "--allow-deletion").code == 0
    empty["metadata"]["annotations"]["polyver.dev/allow-deletion"] = "true"
    done = run("plan", "-f", write("new.yaml", empty))
    assert (done.code, done.err) == (0, "")
    assert "2 would lose objects" in done.out


def test_a_plan_shows_of_secrets_only_that_they_change(
    platform: Platform, name: str, space: str, run: Run
) -> None:
    old, new = (CONFIG % ("Secret", each) for each in ("dGlnZXI=", "bGlvbg=="))
    followers(platform, name, space, old, 2)
    files = write("new.yaml", definition(name, made_of("1.0.0", old), made_of("1.1.0", new)))
    shown = [run("plan", "-f", files, *more) for more in ((), ("--all",), ("-o", "json"))]
    for done in shown:
        assert done.code == 0
        assert not [each for each in ("dGlnZXI=", "bGlvbg==") if each in done.out + done.err]
    assert "2 Secrets: data.password changed" in shown[0].out.splitlines()
    assert "+  password: (changed)" in shown[0].out.splitlines()


def test_a_plan_fails_for_kinds_that_are_not_served_and_fields_that_are_not_executed(
    platform: Platform, name: str, space: str, run: Run
) -> None:
    old = CONFIG % ("ConfigMap", "x")
    followers(platform, name, space, old, 1)
    unknown = old.replace("v1", "nobody.example/v1", 1).replace("ConfigMap", "Thing")
    for new, message in (
        (made_of("1.1.0", unknown), "no nobody.example/v1 Thing is served"),
        (
            made_of("1.1.0", old) | {"status": {"healthPolicy": "isHealth: true"}},
            f"{name} 1.1.0 has status.healthPolicy, which is not executed",
        ),
    ):
        files = write("new.yaml", definition(name, made_of("1.0.0", old), new))
        done = run("plan", "-f", files)
        assert done.code == 1
        assert f"1 application would fail: {message}" in done.out


def test_an_application_that_fails_already_does_not_fail_a_plan(
    platform: Platform, name: str, space: str, run: Run
) -> None:
    template = CONFIG % ("ConfigMap", "x")
    platform.publish(definition(name, made_of("1.0.0", template)))
    app = application("a", f"{name}@1", namespace=space, properties={"unknown": 1})
    platform.deploy(app)
    platform.uses(app, "1.0.0")  # until then, it fails because there is no definition
    new = definition(name, made_of("1.0.0", template), made_of("1.1.0", template))
    done = run("plan", "-f", write("new.yaml", new))
    assert done.code == 0
    assert done.out.startswith("1 application: 1 unchanged, 0 changed")
    assert "1 application fails already, independent of the plan: " in done.out
    assert run("plan", "-f", write("app.yaml", app)).code == 1, "it is this one that is planned"
