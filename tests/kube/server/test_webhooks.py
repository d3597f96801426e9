"""What the transcripts cannot show of admission webhooks: when they hold, and who is asked."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.deadlines import HANG
from tests.kube.hooks import Answer, Hook
from tests.kube.server.test_pipeline import (
    CONFIG_MAPS,
    DEFINITIONS,
    WIDGETS,
    Client,
    define,
    eventually,
    run,
    widget,
)
from tests.kube.webhook import Webhook

from polyver.client import GroupVersionResource
from polyver.client.in_process import DirectClient
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError
from polyver.kube.server.conversion.reviews import WebhookCallFailed
from polyver.kube.server.identity import CONTROLLERS
from polyver.kube.server.webhooks.configuration import RuleWithOperations
from polyver.kube.server.webhooks.reviews import denied, read_patch, read_verdict
from polyver.kube.store import StoreWrite

GROUP = "admissionregistration.k8s.io"
REFUSAL = Answer({"allowed": False, "status": {"message": "not here"}})
CONFIG_MAP = GroupVersionResource("", "v1", "configmaps")


@pytest.fixture
def served() -> Iterator[Webhook]:
    with Webhook() as hook:
        yield hook


def path_of(kind: str) -> str:
    return f"/apis/{GROUP}/v1/{kind.lower()}webhookconfigurations"


def rule(*operations: str, group: str = "", plural: str = "configmaps") -> dict[str, Any]:
    about = {"apiGroups": [group], "apiVersions": ["*"], "resources": [plural]}
    return {"operations": list(operations), **about}


def configuration(served: Webhook, kind: str, *hooks: Hook) -> Any:
    """The hooks of the default namespace, without the one that cases wait for."""
    made = served.hooks.manifest(f"{kind}WebhookConfiguration", "a", "default", list(hooks), "x")
    return made | {"webhooks": made["webhooks"][1:]}


def refusing(*operations: str, **about: str) -> Hook:
    return Hook("v.no", REFUSAL, {"rules": [rule(*operations, **about)]})


def told(answer: Any) -> tuple[int, str]:
    return answer.status, json.loads(answer.body).get("message", "")


def test_a_configuration_holds_from_when_it_is_written_until_it_is_gone(served: Webhook) -> None:
    async def test(client: Client) -> None:
        await client.make(CONFIG_MAPS, {"metadata": {"name": "before"}})
        made = configuration(served, "Validating", refusing("CREATE"))
        await client.make(path_of("Validating"), made)
        refused = await client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "now"}})
        assert told(refused) == (400, 'admission webhook "v.no.ex.io" denied the request: not here')
        changed = made["webhooks"][0] | {"rules": [rule("DELETE")]}
        body = {"webhooks": [changed]}
        merge = "application/merge-patch+json"
        await client.ask("PATCH", f"{path_of('Validating')}/a", body, kind=merge)
        await client.make(CONFIG_MAPS, {"metadata": {"name": "now"}})
        assert (await client.ask("DELETE", f"{CONFIG_MAPS}/now")).status == 400
        await client.ask("DELETE", f"{path_of('Validating')}/a")
        assert (await client.ask("DELETE", f"{CONFIG_MAPS}/now")).status == 200

    run(test)


def test_controllers_in_this_process_are_asked_about_as_well(served: Webhook) -> None:
    async def test(client: Client) -> None:
        made = configuration(served, "Mutating", refusing("CREATE"))
        await client.make(path_of("Mutating"), made)
        direct = DirectClient(client.api, CONTROLLERS)
        wanted = {"metadata": {"name": "a", "namespace": "default"}}
        with pytest.raises(ApiError, match="denied the request: not here"):
            await direct.create(CONFIG_MAP, wanted)
        [(_, review)] = served.hooks.asked(CONTROLLERS.name)
        assert review["request"]["userInfo"]["username"] == CONTROLLERS.name

    run(test)


def test_nobody_is_asked_about_objects_that_go_with_their_kind(served: Webhook) -> None:
    async def test(client: Client) -> None:
        await define(client)
        await client.make(WIDGETS, widget("a"))
        hook = refusing("DELETE", group="ex.io", plural="widgets")
        await client.make(path_of("Validating"), configuration(served, "Validating", hook))
        assert (await client.ask("DELETE", f"{WIDGETS}/a")).status == 400
        definition = f"{DEFINITIONS}/widgets.ex.io"
        await client.ask("DELETE", definition)
        await eventually(lambda: _is_gone(client, definition))

    run(test)


async def _is_gone(client: Client, path: str) -> bool:
    return (await client.ask("GET", path)).status == 404


def test_validating_webhooks_are_asked_all_at_once(served: Webhook) -> None:
    everybody = threading.Barrier(3, timeout=HANG)
    answer = served.hooks.answer

    def together(target: str, review: Any) -> tuple[int, str, bytes]:
        everybody.wait()
        return answer(target, review)

    served.hooks.answer = together  # type: ignore[method-assign]

    async def test(client: Client) -> None:
        hooks = [Hook(f"v.{name}", set={"rules": [rule("CREATE")]}) for name in "abc"]
        await client.make(path_of("Validating"), configuration(served, "Validating", *hooks))
        await client.make(CONFIG_MAPS, {"metadata": {"name": "a"}})
        assert not everybody.broken

    run(test)


async def store(client: Client, kind: str, content: dict[str, Any]) -> None:
    """Store a configuration as a server did that did not check it."""
    plural = f"{kind.lower()}webhookconfigurations"
    about = {"apiVersion": f"{GROUP}/v1", "kind": f"{kind}WebhookConfiguration"}
    head = json.dumps(about | {"metadata": {"name": "a"}})[:-2] + ', "resourceVersion": "'
    tail = '"}, ' + json.dumps({"webhooks": content["webhooks"]})[1:]
    change = StoreWrite(f"/{GROUP}/{plural}/a", head.encode(), tail.encode(), 0)
    await client.api.server.store.write(change)


@pytest.mark.parametrize("kind", ["Mutating", "Validating"])
def test_a_webhook_with_side_effects_takes_no_dry_run(served: Webhook, kind: str) -> None:
    async def test(client: Client) -> None:
        hook = Hook("v.some", set={"rules": [rule("CREATE")], "sideEffects": "Some"})
        await store(client, kind, configuration(served, kind, hook))
        refused = await client.ask("POST", f"{CONFIG_MAPS}?dryRun=All", {"metadata": {"name": "a"}})
        text = 'admission webhook "v.some.ex.io" does not support dry run'
        assert told(refused) == (400, text)
        assert (await client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})).status == 201

    run(test)


@pytest.mark.parametrize(("policy", "status"), [("Fail", 403), ("Ignore", 201)])
def test_a_condition_that_was_never_checked_fails(
    served: Webhook, policy: str, status: int
) -> None:
    async def test(client: Client) -> None:
        conditions = [{"name": "a", "expression": "nothing == 1"}]
        about = {"rules": [rule("CREATE")], "failurePolicy": policy, "matchConditions": conditions}
        made = configuration(served, "Validating", Hook("v.odd", set=about))
        await store(client, "Validating", made)
        answer = await client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
        assert answer.status == status
        if status == 403:
            assert "undeclared reference to 'nothing'" in told(answer)[1]

    run(test)


@pytest.mark.parametrize(
    ("response", "status", "message"),
    [
        ({"status": {"code": 2**31 - 1, "message": "no"}}, 500, "denied the request: no"),
        ({"status": {"code": 600, "message": "no"}}, 500, "denied the request: no"),
        ({"status": {"code": -5}}, 400, "denied the request without explanation"),
        ({"status": {"details": {"retryAfterSeconds": -1}}}, 400, "without explanation"),
        ({"status": {"message": "x\r\nSet-Cookie: a=b"}}, 400, "x\r\nSet-Cookie: a=b"),
        ({"warnings": ["x\r\ny: z", "\x00", "good"]}, 400, "without explanation"),
    ],
)
def test_whatever_a_webhook_answers_is_an_answer(
    served: Webhook, response: dict[str, Any], status: int, message: str
) -> None:
    async def test(client: Client) -> None:
        answer = Answer({"allowed": False} | response)
        hook = Hook("v.odd", answer, {"rules": [rule("CREATE")]})
        await client.make(path_of("Validating"), configuration(served, "Validating", hook))
        refused = await client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
        assert refused.status == status
        assert message in told(refused)[1]
        warned = [text for name, text in refused.headers if name == "warning"]
        assert set(warned) <= {'299 - "good"'}

    run(test)


def test_a_webhook_that_comes_and_goes_is_asked_over_new_connections(served: Webhook) -> None:
    async def test(client: Client) -> None:
        made = configuration(served, "Validating", Hook("v.yes", set={"rules": [rule("CREATE")]}))
        for name in "abc":
            await client.make(path_of("Validating"), made)
            await client.make(CONFIG_MAPS, {"metadata": {"name": name}})
            await client.ask("DELETE", f"{path_of('Validating')}/a")
            await client.make(CONFIG_MAPS, {"metadata": {"name": f"{name}-alone"}})
        assert len(served.hooks.asked("kubernetes-admin")) == 3

    run(test)


def test_a_write_waits_for_its_webhook_and_others_do_not(served: Webhook) -> None:
    answered = threading.Event()
    answer = served.hooks.answer

    def late(target: str, review: Any) -> tuple[int, str, bytes]:
        assert answered.wait(HANG)
        return answer(target, review)

    served.hooks.answer = late  # type: ignore[method-assign]

    async def test(client: Client) -> None:
        hook = Hook("m.late", set={"rules": [rule("CREATE")]})
        await client.make(path_of("Mutating"), configuration(served, "Mutating", hook))
        slow = asyncio.create_task(client.make(CONFIG_MAPS, {"metadata": {"name": "a"}}))
        await client.make("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})
        assert not slow.done()
        answered.set()
        assert (await slow)["metadata"]["name"] == "a"

    run(test)


FIELDS = ("uid", "allowed", "status", "patch", "patchType", "warnings", "auditAnnotations", "odd")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["code", "details", "metadata", "x"]), inner, max_size=3)
    ),
    max_leaves=4,
)
RESPONSES = st.dictionaries(st.sampled_from(FIELDS), VALUES) | VALUES
REVIEWS = st.fixed_dictionaries(
    {"response": RESPONSES},
    optional={
        "apiVersion": st.sampled_from(["admission.k8s.io/v1", "v1"]) | VALUES,
        "kind": st.just("AdmissionReview") | VALUES,
    },
)


@given(REVIEWS.map(lambda review: json.dumps(review).encode()) | st.binary(), st.booleans())
def test_an_answer_is_a_verdict_or_a_failure(body: bytes, mutating: bool) -> None:
    for version in ("v1", "v1beta1"):
        with suppress(WebhookCallFailed):
            verdict = read_verdict(body, uid="", version=version, mutating=mutating)
            assert denied("a.b.c", verdict.status).status["code"] >= 400
            read_patch(verdict.patch, verdict.patch_type)


WORDS = st.sampled_from(["", "apps", "v1", "pods", "widgets", "CREATE", "status"])
KINDS = st.builds(
    lambda group, version, plural: ResourceKind(group, version, "K", plural, "k", namespaced=True),
    *(WORDS, WORDS, WORDS),
)


def read(kind: ResourceKind, operation: str, part: str, scope: str = "*") -> dict[str, Any]:
    """A rule for exactly one request."""
    return {
        "operations": [operation],
        "apiGroups": [kind.group],
        "apiVersions": [kind.version],
        "resources": [f"{kind.plural}/{part}" if part else kind.plural],
        "scope": scope,
    }


STARS = {"operations": "*", "apiGroups": "*", "apiVersions": "*", "resources": "*/*"}


@given(KINDS, WORDS, WORDS, st.sets(st.sampled_from(sorted(STARS))), st.booleans())
def test_a_star_takes_what_its_place_would_have_taken(
    kind: ResourceKind, operation: str, part: str, starred: set[str], namespaced: bool
) -> None:
    wanted = read(kind, operation, part, "Namespaced" if namespaced else "Cluster")
    wanted |= {name: [STARS[name]] for name in starred}
    asked = RuleWithOperations.read(wanted)
    assert asked.matches(kind, operation, part, namespaced=namespaced)
    assert not asked.matches(kind, operation, part, namespaced=not namespaced)


@given(KINDS, KINDS, st.tuples(WORDS, WORDS), st.tuples(WORDS, WORDS))
def test_a_rule_without_stars_takes_one_request_alone(
    kind: ResourceKind, other: ResourceKind, one: tuple[str, str], two: tuple[str, str]
) -> None:
    asked = RuleWithOperations.read(read(kind, *one))
    same = (kind, *one) == (other, *two)
    assert asked.matches(other, *two, namespaced=True) is same
