"""The page of a control plane that runs, asked over HTTP."""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.app.test_cli import Ran
from tests.deadlines import HANG
from tests.definitions.samples import application, definition, entry, legacy
from tests.editing import edited
from tests.walks.support import request
from tests.web.visiting import CATALOGUE, FUNCTIONS, Visited, Visitor, visited

from polyver.kube.objects.status import ApiError

HOSTILE = "<script>alert(1)</script>"
BLUEPRINTS = "/apis/cr.kanister.io/v1alpha1/namespaces/default/blueprints"
ACTION_SETS = "/apis/cr.kanister.io/v1alpha1/namespaces/default/actionsets"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ANYTHING = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
QUEUES = {
    "metadata": {"name": "queues.ex.io"},
    "spec": {
        "group": "ex.io",
        "scope": "Namespaced",
        "names": {"plural": "queues", "kind": "Queue"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": ANYTHING},
            {
                "name": "v1beta1",
                "served": True,
                "storage": False,
                "deprecated": True,
                "deprecationWarning": f"old; use v1 {HOSTILE}",
                "schema": ANYTHING,
            },
        ],
    },
}
BLUEPRINT = {
    "metadata": {"name": "tidy"},
    "actions": {
        "weekly": {
            "phases": [
                {
                    "func": "Expired",
                    "funcVersion": "v0.0.0",
                    "name": "choose",
                    "args": {"backups": ["a", "b"], "keep": 1},
                }
            ]
        },
        "daily": {
            "phases": [{"func": "Expired", "name": "choose", "args": {"backups": [], "keep": 1}}]
        },
    },
}
OLD = {
    "metadata": {"name": "old"},
    "actions": {
        "run": {
            "phases": [
                {
                    "func": "KubeExec",
                    "funcVersion": "v0.0.0",
                    "name": "exec",
                    "args": {"namespace": "a", "pod": "b", "container": "c", "command": ["d"]},
                }
            ]
        }
    },
}
ACTION_SET = {
    "metadata": {"name": "tidy-1"},
    "spec": {"actions": [{"name": "daily", "blueprint": "tidy", "preferredVersion": "v0.1.0"}]},
}
WEB = "ComponentDefinition/vela-system/web"


@pytest.fixture(scope="module")
def around() -> Iterator[Visited]:
    with visited() as found:
        platform = found.platform
        gone = entry("1.1.0", deprecated={"since": "2.0", "use": f"2.0 {HOSTILE}"})
        platform.publish(definition("web", "1.0.0", gone, "2.0.0"))
        platform.publish(legacy("worker", "one"))
        shop = application("shop", "web@1", "worker")
        shop["metadata"]["labels"] = {"team": "checkout"}
        platform.deploy(shop)
        platform.deploy(application("wrong", "web@3", "nothing@1", f"web@{HOSTILE}"))
        found.create("CustomResourceDefinition", DEFINITIONS, QUEUES)
        found.eventually(lambda: _served(found))
        queue = {"metadata": {"name": "mails"}, "spec": {"size": 1}}
        found.create("Queue", "/apis/ex.io/v1beta1/namespaces/default/queues", queue)
        found.create("Blueprint", BLUEPRINTS, BLUEPRINT)
        found.create("Blueprint", BLUEPRINTS, OLD)
        found.create("ActionSet", ACTION_SETS, ACTION_SET)
        found.eventually(lambda: _complete(found))
        found.eventually(lambda: found.visitor.data("/runs", state="complete")["total"] == 1)
        yield found


def _served(found: Visited) -> bool:
    try:
        return bool(found.server.request("GET", "/apis/ex.io/v1beta1/queues"))
    except ApiError:
        return False


def _complete(found: Visited) -> bool:
    told = found.platform.request("GET", f"{ACTION_SETS}/tidy-1")
    return bool(told.get("status", {}).get("state") == "complete")


@pytest.fixture
def visitor(around: Visited) -> Visitor:
    return around.visitor


# What it shows.


def test_all_lineages_of_all_capabilities_are_there(visitor: Visitor) -> None:
    data = visitor.data("/lineages")
    assert data["capabilities"] == ["apis", "definitions", "functions"]
    names = {(each["capability"], each["name"]) for each in data["lineages"]}
    assert {("apis", "Queue"), ("definitions", "web"), ("functions", "KubeExec")} <= names
    words = visitor.see("/").words
    assert "KubeExec v0.0.0 is deprecated since 0.1.0 and will be removed in 0.3.0" in words
    assert data["incomplete"] == {}


def test_what_wants_attention_comes_first_and_the_worst_before_the_rest(visitor: Visitor) -> None:
    found = visitor.data("/lineages")["attention"]
    levels = [each["level"] for each in found]
    assert levels == sorted(levels, key=("error", "warning", "note").index)
    facts = [each["fact"] for each in found]
    assert "web has no release in series 3" in facts
    assert any("there is no ComponentDefinition nothing" in fact for fact in facts)


def test_a_search_leaves_what_is_sought(visitor: Visitor) -> None:
    found = visitor.data("/lineages", q="expi")["lineages"]
    assert [each["name"] for each in found] == ["Expired"]
    found = visitor.data("/lineages", capability="definitions")["lineages"]
    assert {each["capability"] for each in found} == {"definitions"}
    assert "No lineage has “zzz” in its name." in visitor.see("/", q="zzz").words


def test_an_application_is_told_what_polyver_why_tells(
    around: Visited, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(around.server.kubeconfig))
    done = Ran(capsys, "why", "app/shop", "-n", "default", "-o", "json", "--explain")
    said = {each["at"]: each for each in json.loads(done.out)["resolutions"]}
    uses = around.visitor.data("/dependents/Application default/shop")["uses"]
    assert {each["at"] for each in uses} == set(said)
    for use in uses:
        path = f"/why/{use['capability']}/{use['path']}"
        told = around.visitor.data(path, name=use["name"], at=use["at"])
        wanted = said[use["at"]]
        assert use["requested"] == wanted["requested"]
        assert told["reason"] == wanted["reason"]
        assert told["warnings"] == wanted.get("warnings", [])
        rejected = [{"release": e["release"], "why": e["why"]} for e in told["rejected"]]
        assert rejected == wanted["rejected"]


def test_a_function_is_told_what_polyver_impact_tells(
    around: Visited, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(around.server.kubeconfig))
    options = ("--functions", FUNCTIONS, "--catalogue", CATALOGUE, "-o", "json")
    done = Ran(capsys, "impact", "Expired", *options)
    said = [
        (each.get("asksFor", ""), each["gets"], each["why"], bool(each.get("actionSet")))
        for each in json.loads(done.out)["uses"]
    ]
    rows = around.visitor.lineage("functions", "Expired")["uses"]["items"]
    told = [
        (row["requested"], row["release"], row["reason"], row["name"].startswith("ActionSet"))
        for row in rows
    ]
    assert sorted(told) == sorted(said)
    assert len(told) == 3


def test_a_function_shows_the_arguments_of_each_version(visitor: Visitor) -> None:
    data = visitor.lineage("functions", "Expired")
    tables = {each["name"]: each["table"]["rows"] for each in data["releases"]}
    assert [row[0] for row in tables["v0.0.0"]] == ["backups", "keep"]
    assert ["keep", "integer", "7", "How many to keep."] in tables["v0.1.0"]
    assert "only-prefix" in visitor.see("/lineages/functions/Expired").words


def test_who_writes_an_old_api_version_is_known(visitor: Visitor) -> None:
    data = visitor.lineage("apis", "ex.io/Queue", release="v1beta1")
    [row] = data["uses"]["items"]
    assert (row["name"], row["requested"]) == ("Queue.ex.io default/mails", "v1beta1")
    assert row["at"].startswith("metadata.managedFields[")
    assert row["warnings"] == [f"old; use v1 {HOSTILE}"]
    marks = {each["name"]: each.get("marks", []) for each in data["releases"]}
    assert marks == {"v1": ["storage"], "v1beta1": []}


def test_requests_and_clients_of_each_version_are_shown(around: Visited) -> None:
    names = {"plural": "tasks", "kind": "Task"}
    spec = {**QUEUES["spec"], "names": names}  # type: ignore[dict-item]
    tasks = {"metadata": {"name": "tasks.ex.io"}, "spec": spec}
    around.create("CustomResourceDefinition", DEFINITIONS, tasks)
    path = "/apis/polyver.dev/v1alpha1/versionusages/tasks.ex.io"
    client = {"user": "jo", "userAgent": HOSTILE, "requests": 1200}
    client |= {"lastRequest": "2026-11-19T20:15:04Z"}
    counted = {"version": "v1beta1", "requests": 1201, "lastRequest": "2026-11-19T20:16:00Z"}
    counted |= {"otherClients": 1, "clients": [client]}

    def ask(method: str, path: str, body: object = None) -> Any:
        part = "/status" if method == "PUT" else ""
        return around.platform.request(method, path + part, body)

    def change(usage: dict[str, Any]) -> None:
        usage["status"] |= {"since": "2026-11-02T08:15:00Z", "versions": [counted]}

    around.eventually(lambda: (request(around.server, "GET", path) or {}).get("status"))
    edited(ask, path, change)
    seen = "/lineages/apis/ex.io/Task"
    text = "1,201 requests, the last at 2026-11-19T20:16:00Z (1 by other clients)"
    around.eventually(lambda: text in around.visitor.see(seen).words)
    words = around.visitor.see(seen).words
    assert "requests counted since 2026-11-02T08:15:00Z" in words
    assert "no requests" in words  # of v1
    releases = around.visitor.lineage("apis", "ex.io/Task")["releases"]
    [found] = [each["table"] for each in releases if "table" in each]
    assert found["title"] == "Clients"
    assert found["rows"] == [["jo", HOSTILE, "1,200", "2026-11-19T20:15:04Z"]]


def test_what_runs_is_shown_with_its_versions(visitor: Visitor) -> None:
    run = visitor.data("/runs/ActionSet default/tidy-1")
    [step] = run["steps"]
    assert (step["path"], step["release"], step["state"]) == ("Expired", "v0.1.0", "complete")
    assert "tidy-1" in visitor.see("/runs").words
    assert "the preferred version" in visitor.see("/runs/ActionSet default/tidy-1").words


def test_a_legacy_definition_has_its_revisions(visitor: Visitor) -> None:
    data = visitor.lineage("definitions", "ComponentDefinition/vela-system/worker")
    assert [each["name"] for each in data["releases"]] == ["worker-v1"]
    assert data["uses"]["items"][0]["name"] == "Application default/shop"


def test_every_link_leads_somewhere(visitor: Visitor) -> None:
    seen, left = set[str](), ["/"]
    while left:
        path = left.pop()
        if path in seen or len(seen) > 150:
            continue
        seen.add(path)
        answer = visitor.ask(path, authorization=f"Bearer {visitor.token}")
        assert answer.status == 200, path
        left += [
            href.partition("#")[0]
            for tag, attributes in answer.tags
            if tag in ("a", "link") and (href := attributes.get("href") or "").startswith("/")
        ]
    assert len(seen) > 40
    assert any(path.startswith("/why/") for path in seen)


# What moves.


def test_a_release_is_shown_as_soon_as_it_is_published(around: Visited) -> None:
    platform, visitor = around.platform, around.visitor
    platform.publish(definition("live", "1.0.0"))
    platform.deploy(application("follower", "live@1"))
    path = "ComponentDefinition/vela-system/live"
    around.eventually(lambda: visitor.see(f"/lineages/definitions/{path}").status == 200)
    platform.publish(definition("live", "1.0.0", "1.0.1"))

    def moved() -> bool:
        rows = visitor.lineage("definitions", path)["uses"]["items"]
        return [(row["release"], "uses" in row) for row in rows] == [("1.0.1", False)]

    around.eventually(moved)


def test_a_release_that_an_application_could_not_take_is_shown(around: Visited) -> None:
    platform, visitor = around.platform, around.visitor
    good, bad = entry("1.0.0"), entry("1.0.1", schematic={"gotemplate": {"template": "{{ fail }}"}})
    platform.publish(definition("held", good))
    platform.runs(application("stays", "held@1"))
    platform.publish(definition("held", good, bad))
    path = "ComponentDefinition/vela-system/held"

    def stayed() -> bool:
        found = visitor.lineage("definitions", path)
        rows = [(row["release"], row.get("reason", "")) for row in found["uses"]["items"]]
        told = "1.0.1: 1 follower, 0 on it, 0 held, 1 failing"
        return (
            rows == [("1.0.0", "kept: the move to 1.0.1 failed")] and found.get("problem") == told
        )

    around.eventually(stayed)


def test_changes_are_told_as_they_happen(around: Visited) -> None:
    visitor = around.visitor
    connection = http.client.HTTPConnection(visitor.host, timeout=HANG)
    headers = {"authorization": f"Bearer {visitor.token}"}
    connection.request("GET", "/events", headers=headers)
    stream = connection.getresponse()
    assert stream.headers["content-type"].startswith("text/event-stream")
    first = int(stream.readline().removeprefix(b"data: "))
    assert stream.readline() == b"\n"
    around.create(
        "Queue",
        "/apis/ex.io/v1/namespaces/default/queues",
        {"metadata": {"name": "told"}, "spec": {}},
    )
    line = b""
    while not line.startswith(b"data: "):
        line = stream.readline()
    assert int(line.removeprefix(b"data: ")) > first
    connection.close()


def test_a_kind_that_comes_and_goes_takes_its_objects_with_it(around: Visited) -> None:
    visitor = around.visitor
    spec = {**QUEUES["spec"], "group": "soon.io"}  # type: ignore[dict-item]
    soon = {"metadata": {"name": "queues.soon.io"}, "spec": spec}
    around.create("CustomResourceDefinition", DEFINITIONS, soon)
    path = "/apis/soon.io/v1/namespaces/default/queues"

    def create() -> bool:
        try:
            return bool(around.create("Queue", path, {"metadata": {"name": "mails"}, "spec": {}}))
        except ApiError:
            return False

    around.eventually(create)
    seen = "/dependents/Queue.soon.io default/mails"
    around.eventually(lambda: visitor.see(seen).status == 200)
    around.platform.request("DELETE", f"{DEFINITIONS}/queues.soon.io")
    around.eventually(lambda: visitor.see(seen).status == 404)
    around.eventually(lambda: visitor.see("/lineages/apis/soon.io/Queue").status == 404)
    assert visitor.see("/dependents/Queue.ex.io default/mails").status == 200


# Who may see it.


def test_nobody_sees_anything_without_the_token(visitor: Visitor) -> None:
    for path in ("/", "/api/lineages", "/events", "/static/page.css", "/lineages/functions/Wait"):
        answer = visitor.ask(path)
        assert answer.status == 401
        assert "polyver up prints" in answer.text
        assert "Expired" not in answer.text
    assert visitor.ask("/?token=wrong").status == 401
    assert visitor.ask("/", authorization="Bearer wrong").status == 401


def test_an_address_with_the_token_becomes_a_cookie_and_leaves_no_token(visitor: Visitor) -> None:
    answer = visitor.ask(f"/dependents?q=shop&token={visitor.token}")
    assert (answer.status, answer.headers["location"]) == (303, "/dependents?q=shop")
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Strict"} <= set(cookie.split("; "))
    seen = visitor.ask("/dependents?q=shop", cookie=cookie.partition(";")[0])
    assert seen.status == 200
    assert "Application default/shop" in seen.words


def test_other_names_for_this_machine_are_refused(visitor: Visitor) -> None:
    own = f"Bearer {visitor.token}"
    for host in ("rebound.example", "rebound.example:6451", "127.0.0.1.rebound.example"):
        assert visitor.ask("/", host=host, authorization=own).status == 421
        assert visitor.ask(f"/?token={visitor.token}", host=host).status == 421
    assert visitor.ask("/", host="localhost:9", authorization=own).status == 200


def test_the_token_of_the_page_opens_nothing_else(around: Visited) -> None:
    context = ssl.create_default_context(cafile=around.server.ca_file)
    host = around.server.url.removeprefix("https://")
    connection = http.client.HTTPSConnection(host, context=context, timeout=HANG)
    headers = {"authorization": f"Bearer {around.visitor.token}"}
    connection.request("GET", "/api/v1/namespaces", headers=headers)
    assert connection.getresponse().status == 401
    connection.close()
    for token in (around.server.token, around.server.viewer_token):
        assert around.visitor.ask("/", authorization=f"Bearer {token}").status == 401


def test_nothing_can_be_written(visitor: Visitor) -> None:
    own = f"Bearer {visitor.token}"
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        answer = visitor.ask("/", method, authorization=own)
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
    for path in ("/", "/events"):
        assert visitor.ask(path, "HEAD", authorization=own).status == 200


@pytest.mark.parametrize("path", ["/", "/nowhere", "/api/lineages", "/static/page.js", "/?token=x"])
def test_every_answer_says_what_browsers_may_do_with_it(visitor: Visitor, path: str) -> None:
    for headers in ({}, {"authorization": f"Bearer {visitor.token}"}):
        found = visitor.ask(path, **headers).headers
        assert found["content-security-policy"].startswith("default-src 'none';")
        assert "unsafe" not in found["content-security-policy"]
        assert found["x-content-type-options"] == "nosniff"
        assert found["referrer-policy"] == "no-referrer"
        assert found["cache-control"] == "no-store"
        assert found["x-frame-options"] == "DENY"


# What is odd.


def test_hostile_texts_are_shown_and_are_no_markup(visitor: Visitor) -> None:
    pages = [
        visitor.see("/"),
        visitor.see("/", q=HOSTILE),
        visitor.see("/", capability=HOSTILE),
        visitor.see("/lineages/apis/ex.io/Queue"),
        visitor.see(f"/lineages/definitions/{WEB}", q=HOSTILE, release=HOSTILE),
        visitor.see("/dependents/Application default/wrong"),
        visitor.see("/dependents", q=HOSTILE),
        visitor.see("/runs", q=HOSTILE, state=HOSTILE),
        visitor.see(f"/lineages/{HOSTILE}/{HOSTILE}"),
        visitor.see(f"/{HOSTILE}"),
    ]
    for page in pages:
        scripts = [attributes for tag, attributes in page.tags if tag == "script"]
        assert scripts == [{"src": "/static/page.js", "defer": None}]
        assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)
    assert any(HOSTILE in page.words for page in pages)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nowhere", 404),
        ("/lineages/functions/Nothing", 404),
        ("/lineages/nothing/at/all", 404),
        ("/lineages/functions/Expired?page=x", 400),
        ("/lineages/functions/Expired?page=-1", 400),
        ("/lineages/functions/Expired?page=99999999999999999999", 400),
        ("/lineages/functions/Expired?page=99999", 200),
        ("/lineages/functions/Expired?release=none", 200),
        ("/why/functions/Expired", 404),
        ("/why/functions/Expired?name=a&at=b", 404),
        ("/dependents/nobody", 404),
        ("/runs/nothing", 404),
        ("/?q=" + "a" * 201, 400),
        ("/?q=" + "a" * 5000, 414),
        ("/" + "a" * 3000, 414),
        ("/lineages/%ff/%00", 404),
        ("/lineages/..%2f..%2fetc/passwd", 404),
        ("/static/../_app.py", 404),
        ("/static/%2e%2e/_app.py", 404),
        ("/?q=%ff%fe", 200),
        ("/api/nowhere", 404),
        ("/api/lineages?q=" + "a" * 201, 400),
    ],
)
def test_what_is_odd_is_answered_in_words(visitor: Visitor, path: str, status: int) -> None:
    answer = visitor.ask(path, authorization=f"Bearer {visitor.token}")
    assert answer.status == status, answer.text
    assert "Traceback" not in answer.text
    if path.startswith("/api/") and status != 200:
        assert answer.json["error"]


def test_nothing_of_the_page_is_loaded_before_someone_looks() -> None:
    script = (
        "import sys, asyncio\n"
        "from polyver.app.embedded import EmbeddedSettings, embedded\n"
        "async def main():\n"
        "    async with embedded(EmbeddedSettings(page_port=0)) as running:\n"
        "        assert running.page\n"
        "        print([n for n in ('starlette', 'anyio') if n in sys.modules])\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
