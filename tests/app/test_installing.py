"""What an installation consists of, without any cluster: nothing names what is not there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.deadlines import HANG
from tests.definitions.samples import SYSTEM, definition, entry, using
from tests.rights import APISERVICES, OWN_USER, Asked, Grant, grants, read_path
from tests.walks.installed import free_port
from tests.walks.installed_kinds import GROUP, KITES

from polyver.apis import Webhook
from polyver.apis.admission.conversions import CONVERSIONS_WANTED
from polyver.apis.admission.kinds import wanted_by
from polyver.apis.controllers.retirement_observing import RETIREMENTS_ON
from polyver.app import _replica
from polyver.app._replica import ReplicaSettings, replica
from polyver.app.capabilities import Choices
from polyver.app.installing import Installation, Installer, manifests
from polyver.capability.capability import Surroundings
from polyver.capability.rollouts import POLICIES
from polyver.client import Client, GroupVersionResource, find
from polyver.client.client import ClientRequest, ClientResponse
from polyver.client.cluster import ClusterClient, find_access
from polyver.core.plain import Object
from polyver.definitions.names import FORCED
from polyver.definitions.resolution import KEPT
from polyver.kube.objects import dump_yaml, load_manifests
from polyver.rollouts import policies
from polyver.rollouts.names import ROLLOUTS_ON
from polyver.testing import EmbeddedServer
from polyver.webhook.configurations import configurations

CHOICES = Choices(frozenset({"apis", "functions", "definitions"}))
CONTRIBUTIONS = CHOICES.contributions(Surroundings(namespace="polyver-system"))
WANTED = Installation(
    "a:1", options=("--kinds", "shop.kinds"), kinds=(KITES,), contributions=CONTRIBUTIONS
)
names = st.from_regex("[a-z]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)


@st.composite
def installations(draw: st.DrawFn) -> Installation:
    secret = draw(st.just("") | names)
    return Installation(
        draw(names),
        draw(names),
        draw(st.integers(1, 9)),
        tuple(draw(st.lists(names, max_size=2))),
        draw(st.sampled_from([(), (KITES,)])),
        tuple(each for each in CONTRIBUTIONS if draw(st.booleans())),
        tuple(draw(st.lists(names, max_size=3))),
        secret,
        f"{draw(names)}/{draw(names)}" if secret else "",
    )


def by_kind(objects: list[Object]) -> dict[tuple[str, str], Object]:
    return {(each["kind"], each["metadata"]["name"]): each for each in objects}


def pod(objects: list[Object]) -> Object:
    spec: Object = by_kind(objects)["Deployment", "polyver"]["spec"]["template"]["spec"]
    return spec


@settings(max_examples=30)
@given(installations())
def test_everything_that_is_named_is_there(wanted: Installation) -> None:
    objects = manifests(wanted)
    found = by_kind(objects)
    assert len(found) == len(objects)
    for each in objects:
        assert each["metadata"].get("namespace", wanted.namespace) == wanted.namespace
        if "roleRef" in each:
            role = each["roleRef"]["kind"], each["roleRef"]["name"]
            assert role in found or role[1] in wanted.roles
            assert [s["namespace"] for s in each["subjects"]] == [wanted.namespace]
            assert ("ServiceAccount", each["subjects"][0]["name"]) in found
    template = found["Deployment", "polyver"]["spec"]["template"]
    labels = template["metadata"]["labels"].items()
    assert found["Service", "polyver"]["spec"]["selector"].items() <= labels
    [container] = template["spec"]["containers"]
    ports = {each["name"] for each in container["ports"]}
    assert found["Service", "polyver"]["spec"]["ports"][0]["targetPort"] in ports
    volumes = {each["name"] for each in template["spec"]["volumes"]}
    assert {each["name"] for each in container["volumeMounts"]} == volumes


@settings(max_examples=30)
@given(installations())
def test_what_is_written_is_read_back_as_the_same(wanted: Installation) -> None:
    objects = manifests(wanted)
    text = "---\n".join(map(dump_yaml, objects))
    assert [each.value for each in load_manifests(text, "out")] == objects
    assert manifests(wanted) == objects


@settings(max_examples=30)
@given(installations())
def test_a_budget_never_stops_the_only_replica_from_moving(wanted: Installation) -> None:
    budgets = [each for each in manifests(wanted) if each["kind"] == "PodDisruptionBudget"]
    assert [each["spec"]["minAvailable"] < wanted.replicas for each in budgets] == (
        [True] if wanted.replicas > 1 else []
    )


def test_a_pod_may_do_nothing_on_its_machine() -> None:
    spec = pod(manifests(WANTED))
    [container] = spec["containers"]
    context = container["securityContext"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert context["readOnlyRootFilesystem"]
    assert not context["allowPrivilegeEscalation"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & {*spec}


def test_replicas_are_asked_how_they_are_over_https() -> None:
    [container] = pod(manifests(WANTED))["containers"]
    for probe, path in (
        ("readiness", "/readyz"),
        ("liveness", "/healthz"),
        ("startup", "/healthz"),
    ):
        asked = container[f"{probe}Probe"]["httpGet"]
        assert (asked["path"], asked["port"], asked["scheme"]) == (path, "https", "HTTPS")


def test_the_arguments_are_those_that_run_takes() -> None:
    from polyver.app.run import app

    given = [
        *("--capabilities", "apis,functions,definitions"),
        *("--allow-http", "prometheus.monitoring:9090", "--allow-http", "*.example.com"),
        *("--functions", "shop/functions.py", "--functions", "shop.more"),
        *("--catalogue", "c.yaml", "--allow-command", "--function-timeout", "90s"),
        *("--semver-gate", "warn"),
    ]
    _, parsed, _ = app.parse_args(given, exit_on_error=False, print_error=False)
    assert [*parsed.arguments["having"].arguments()] == given
    options = (*given, "--kinds", "m")
    tls = Installation("a:1", options=options, tls_secret="certs", inject_ca_from="a/b")
    [container] = pod(manifests(tls))["containers"]
    command, *arguments = container["args"]
    assert command == "run"
    _, bound, _ = app.parse_args(arguments, exit_on_error=False, print_error=False)
    assert bound.arguments["namespace"] == "polyver-system"
    assert bound.arguments["kinds"] == ["m"]
    assert [*bound.arguments["having"].arguments()] == given
    assert bound.arguments["inject_ca_from"] == "a/b"
    assert str(bound.arguments["tls_key"]) == f"{mounted(container, 'tls')}/tls.key"


def mounted(container: Object, name: str) -> str:
    [found] = [each["mountPath"] for each in container["volumeMounts"] if each["name"] == name]
    return str(found)


# Rights.


RECORDS = ("definitionrevisions", "applicationrevisions", "rollouts")
"""What replicas make, and take away again."""


@settings(max_examples=30)
@given(installations())
def test_no_right_is_for_anything_at_all(wanted: Installation) -> None:
    for grant in grants(wanted):
        assert "*" not in (grant.verb, grant.right.group, grant.right.resource)
        assert grant.verb not in ("escalate", "bind", "impersonate")
        assert "delete" not in grant.verb or grant.right.resource in RECORDS
        assert grant.right.group != "rbac.authorization.k8s.io"


@settings(max_examples=30)
@given(installations())
def test_of_secrets_one_may_be_read_at_most(wanted: Installation) -> None:
    secrets = [each for each in grants(wanted) if each.right.resource == "secrets"]
    assert {each.role for each in secrets} <= {"namespace"}
    read = [each.right.name for each in secrets if each.verb != "create"]
    assert {*read} == (set() if wanted.tls_secret else {"polyver-webhook"})


def test_nobody_is_locked_out_when_no_replica_answers() -> None:
    """What is needed to start one is never asked about, whatever the kinds are."""
    wanted = [CONVERSIONS_WANTED, *wanted_by(KITES)]
    registered = configurations(wanted, WANTED.webhook)
    rules = [rule for each in registered for hook in each["webhooks"] for rule in hook["rules"]]
    assert rules
    for rule in rules:
        assert {*rule["apiGroups"]} <= {GROUP, "polyver.dev"}
        assert not [each for each in rule["resources"] if "*" in each]
        assert rule["resources"] == ["conversions"] or "DELETE" not in rule["operations"]
        assert "*" not in rule["operations"]


# What `polyver run` asks for, beside the embedded server.


class Recording(ClusterClient):
    """A client that notes what it asks for."""

    asked: set[Asked]

    async def _send(self, ask: ClientRequest) -> ClientResponse:
        answer = await super()._send(ask)
        found = {*read_path(ask.method, ask.path, ask.query)}
        self.asked |= found
        if answer.status == 201 and ask.method == "PATCH":
            # An apply that creates has to be allowed to, under that name.
            self.asked |= {Asked("create", a.group, a.resource, a.namespace, a.name) for a in found}
        return answer

    async def _pieces(self, ask: ClientRequest) -> AsyncGenerator[bytes, None]:
        self.asked |= {*read_path(ask.method, ask.path, ask.query)}
        async for piece in super()._pieces(ask):
            yield piece


@pytest.fixture(scope="module")
def asked() -> Iterator[set[Asked]]:
    """All that a replica asks for on a walk through what it does."""
    with pytest.MonkeyPatch.context() as patch, EmbeddedServer(capabilities=()) as server:
        found: set[Asked] = set()
        patch.setattr(Recording, "asked", found, raising=False)
        patch.setattr(_replica, "ClusterClient", Recording)
        asyncio.run(walk(server))
        yield found


async def walk(server: EmbeddedServer) -> None:
    async with installed(server) as client:
        port = free_port()
        at = Webhook(url=f"https://127.0.0.1:{port}")
        async with replica(settings_of(client, at, port)), asyncio.timeout(HANG):
            await steps(client)


@asynccontextmanager
async def installed(server: EmbeddedServer) -> AsyncIterator[ClusterClient]:
    async with ClusterClient(find_access(kubeconfig=server.kubeconfig)) as client:
        await install(client, server.url)
        yield client


async def install(client: Client, url: str) -> list[str]:
    said: list[str] = []
    await Installer(client, url, said.append).install(WANTED, manifests(WANTED))
    return said


def settings_of(client: ClusterClient, at: Webhook, port: int = 0) -> ReplicaSettings:
    own = "127.0.0.1", port, WANTED.namespace, ("127.0.0.1",), (KITES,)
    return ReplicaSettings(client.access, at, *own, choices=CHOICES)


MAPS, KITE, LEASES = (
    GroupVersionResource("", "v1", "configmaps"),
    GroupVersionResource(GROUP, "v2", "kites"),
    GroupVersionResource("coordination.k8s.io", "v1", "leases"),
)
BLUEPRINTS, ACTION_SETS = (
    GroupVersionResource("cr.kanister.io", "v1alpha1", plural)
    for plural in ("blueprints", "actionsets")
)
DEFINITIONS = {
    kind: GroupVersionResource("core.oam.dev", "v2beta1", f"{kind.lower()}s")
    for kind in (f"{sort}Definition" for sort in ("Component", "Trait", "Policy", "WorkflowStep"))
}
DEFINITION = DEFINITIONS["ComponentDefinition"]
REVISIONS, APPLICATIONS = (
    GroupVersionResource("core.oam.dev", "v1beta1", plural)
    for plural in ("definitionrevisions", "applications")
)
MADE_BY_AN_ACTION = "{apiVersion: v1, kind: ConfigMap, metadata: {name: made}}"
CRDS, SERVED, HOOKS = (
    GroupVersionResource(
        "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
    ),
    GroupVersionResource("polyver.dev", "v1alpha1", "conversions", namespaced=False),
    GroupVersionResource(
        "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", namespaced=False
    ),
)


async def steps(client: Client) -> None:
    """A kind in Python is reconciled, and a Conversion served."""
    await client.create(CRDS, BOATS)
    await client.create(SERVED, CONVERSION)
    await until(client, HOOKS, "polyver", "", lambda _: True)
    kite = {"apiVersion": f"{GROUP}/v2", "kind": "Kite", "metadata": {"name": "red"}}
    await client.create(KITE, {**kite, "spec": {"metres": 3}}, "default")
    await until(client, KITE, "red", "default", lambda obj: bool(obj.get("status")))
    await until(client, MAPS, "tail", "default", lambda _: True)
    await until(client, SERVED, "boats.example.com", "", lambda obj: bool(obj.get("status")))
    await act(client)
    await publish(client)
    await roll_out(client)
    await roll_out_function(client)
    await retire(client)
    lease = await client.get(LEASES, "polyver", WANTED.namespace)
    await until(client, LEASES, "polyver", WANTED.namespace, lambda obj: obj != lease)


async def retire(client: Client) -> None:
    """A version of a kind is removed, in which objects were stored."""
    versions = [{**each, "storage": each["name"] == "v2"} for each in BOATS["spec"]["versions"]]
    await client.patch(CRDS, "boats.example.com", change={"spec": {"versions": versions}})
    about = {"apiVersion": "polyver.dev/v1alpha1", "kind": "Retirement"}
    spec = {"definition": "boats.example.com", "version": "v1", "ignoreClients": True}
    made = {**about, "metadata": {"name": "boats.example.com-v1"}, "spec": spec}
    await client.create(RETIREMENTS_ON, made)
    await until(
        client,
        RETIREMENTS_ON,
        "boats.example.com-v1",
        "",
        lambda obj: obj.get("status", {}).get("state") == "Completed",
    )


async def act(client: Client) -> None:
    """An action runs, tells by an Event that a version is not there, and is let go."""
    kanister = "cr.kanister.io/v1alpha1"
    arguments = {"operation": "create", "namespace": "default", "spec": MADE_BY_AN_ACTION}
    phase = {"name": "a", "func": "KubeOps", "args": arguments}
    blueprint = {"apiVersion": kanister, "kind": "Blueprint", "metadata": {"name": "bp"}}
    await client.create(
        BLUEPRINTS, {**blueprint, "actions": {"go": {"phases": [phase]}}}, "default"
    )
    action_set = {"apiVersion": kanister, "kind": "ActionSet", "metadata": {"name": "as"}}
    spec = {"actions": [{"name": "go", "blueprint": "bp", "preferredVersion": "v0.9.0"}]}
    await client.create(ACTION_SETS, {**action_set, "spec": spec}, "default")

    def complete(obj: Object) -> bool:
        state = obj.get("status", {}).get("state")
        assert state != "failed", obj["status"]
        return bool(state == "complete" and not obj["metadata"].get("finalizers"))

    await until(client, ACTION_SETS, "as", "default", complete)
    events = await client.list(GroupVersionResource("", "v1", "events"), "default")
    assert {each["involvedObject"]["name"] for each in events.items} == {"as"}


async def publish(client: Client) -> None:
    """A definition is published and used, loses versions, and application and definition go.

    Once the application loses its status, and gets it back from its newest revision.
    """
    for kind, resource in DEFINITIONS.items():
        name = kind.lower()
        await client.create(resource, definition(name, "1.0.0", "1.1.0", kind=kind), SYSTEM)
        await until(client, resource, name, SYSTEM, lambda obj: "versions" in obj.get("status", {}))
    about = {"apiVersion": "core.oam.dev/v1beta1", "kind": "Application"}
    application = {**about, "metadata": {"name": "shop"}, "spec": using()}
    await client.create(APPLICATIONS, application, "default")
    for number in range(1, KEPT + 2):
        await until(client, APPLICATIONS, "shop", "default", partial(has_revision, number))
        change = {"spec": using(number=number)}
        await client.patch(APPLICATIONS, "shop", "default", change=change)
    lost = {"status": {"resolutions": None}}
    await client.patch(APPLICATIONS, "shop", "default", change=lost, subresource="status")
    await until(client, APPLICATIONS, "shop", "default", has_resolutions)
    # Policies and workflows are not executed, and only what runs counts as a user.
    change = {"spec": {"policies": None, "workflow": None}}
    await client.patch(APPLICATIONS, "shop", "default", change=change)
    await until(client, APPLICATIONS, "shop", "default", runs)
    change = {"spec": {"versions": [entry("1.1.0")]}}
    await client.patch(DEFINITION, "componentdefinition", SYSTEM, change=change)
    await gone(client, REVISIONS, "componentdefinition-v1.0.0", SYSTEM)
    forced = {"metadata": {"annotations": {FORCED: "1.1.0"}}}
    change = {**forced, "spec": {"versions": [entry("1.2.0")]}}
    await client.patch(DEFINITION, "componentdefinition", SYSTEM, change=change)
    await gone(client, REVISIONS, "componentdefinition-v1.1.0", SYSTEM)
    events = await client.list(GroupVersionResource("", "v1", "events"), SYSTEM)
    assert "RemovedByForce" in {each["reason"] for each in events.items}
    await client.delete(APPLICATIONS, "shop", "default")
    await gone(client, APPLICATIONS, "shop", "default")
    for kind, resource in DEFINITIONS.items():
        await client.delete(resource, kind.lower(), SYSTEM)
        await gone(client, resource, kind.lower(), SYSTEM)


async def roll_out(client: Client) -> None:
    """A policy starts the rollout of a new version, which ends, and is deleted after the next."""
    await client.create(DEFINITION, definition("rolled", "1.0.0"), SYSTEM)
    await until(
        client, DEFINITION, "rolled", SYSTEM, lambda obj: "versions" in obj.get("status", {})
    )
    target = {"group": "core.oam.dev", "kind": "ComponentDefinition", "name": "rolled"}
    policy = {
        "apiVersion": "polyver.dev/v1alpha1",
        "kind": "RolloutPolicy",
        "metadata": {"name": "careful"},
        "spec": {"targets": [target], "steps": [{"share": "100%"}]},
    }
    await client.create(POLICIES, policy, SYSTEM)
    await until(client, POLICIES, "careful", SYSTEM, lambda obj: bool(obj.get("status")))
    change = {"spec": {"versions": [entry("1.0.0"), entry("1.1.0")]}}
    await client.patch(DEFINITION, "rolled", SYSTEM, change=change)
    await until(client, ROLLOUTS_ON, "rolled-1.1.0", SYSTEM, completed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policies, "KEPT", 1)
        change = {"spec": {"versions": [entry("1.0.0"), entry("1.1.0"), entry("1.2.0")]}}
        await client.patch(DEFINITION, "rolled", SYSTEM, change=change)
        await gone(client, ROLLOUTS_ON, "rolled-1.1.0", SYSTEM)
    await client.delete(DEFINITION, "rolled", SYSTEM)
    await gone(client, DEFINITION, "rolled", SYSTEM)


async def roll_out_function(client: Client) -> None:
    """A policy marks the stable version of a function, and a user starts a rollout of it."""
    target = {"group": "polyver.dev", "kind": "BlueprintFunction", "name": "KubeExec"}
    about = {"apiVersion": "polyver.dev/v1alpha1", "metadata": {"name": "functions"}}
    spec = {"targets": [target], "steps": [{"share": "100%"}]}
    policy = {**about, "kind": "RolloutPolicy", "spec": spec}
    await client.create(POLICIES, policy, WANTED.namespace)
    await until(client, POLICIES, "functions", WANTED.namespace, lambda obj: "status" in obj)
    journey = {"target": target, "to": "v0.1.0", "policyRef": {"name": "functions"}}
    rollout = {**about, "kind": "Rollout", "spec": journey}
    await client.create(ROLLOUTS_ON, rollout, WANTED.namespace)
    await until(client, ROLLOUTS_ON, "functions", WANTED.namespace, completed)


def published(obj: Object) -> bool:
    return "versions" in (obj.get("status") or {})


def completed(obj: Object) -> bool:
    return (obj.get("status") or {}).get("state") == "Completed"


def has_revision(number: int, obj: Object) -> bool:
    return bool(obj.get("status", {}).get("latestRevision", {}).get("revision") == number)


def runs(obj: Object) -> bool:
    return bool(obj["status"].get("status") == "running")


def has_resolutions(obj: Object) -> bool:
    return bool(obj["status"].get("resolutions"))


async def gone(client: Client, resource: GroupVersionResource, name: str, namespace: str) -> None:
    while await find(client, resource, name, namespace) is not None:
        await asyncio.sleep(0.02)


async def until(
    client: Client,
    resource: GroupVersionResource,
    name: str,
    namespace: str,
    holds: Callable[[Object], bool],
) -> None:
    while (found := await find(client, resource, name, namespace)) is None or not holds(found):
        await asyncio.sleep(0.02)


def _version(name: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    whole = {"openAPIV3Schema": schema}
    return {"name": name, "served": True, "storage": name == "v1", "schema": whole}


BOATS: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "boats.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Boat", "plural": "boats"},
        "scope": "Namespaced",
        "versions": [_version("v1"), _version("v2")],
    },
}
CONVERSION: Object = {
    "apiVersion": "polyver.dev/v1alpha1",
    "kind": "Conversion",
    "metadata": {"name": "boats.example.com"},
    "spec": {
        "group": "example.com",
        "kind": "Boat",
        "versions": ["v1", "v2"],
        "edges": [{"from": "v1", "to": "v2", "rules": [{"move": {"from": "a", "to": "b"}}]}],
    },
}
MADE = ("configmaps", "boats")
"""What polyver reads and writes by rights that the author of the kinds gives."""


def test_replicas_ask_for_nothing_that_they_have_no_right_to(asked: set[Asked]) -> None:
    given = grants(WANTED)
    allowed = {OWN_USER, APISERVICES, Asked("watch", APISERVICES.group, APISERVICES.resource)}
    refused = [
        str(each)
        for each in asked - allowed
        if each.resource not in MADE and not any(grant.allows(each) for grant in given)
    ]
    assert refused == []


@pytest.mark.parametrize("grant", grants(WANTED), ids=str)
def test_without_one_right_replicas_could_not_ask_something(
    asked: set[Asked], grant: Grant
) -> None:
    others = [each for each in grants(WANTED) if each != grant]
    needing = [each for each in asked if grant.allows(each)]
    assert [each for each in needing if not any(other.allows(each) for other in others)]


# The installation and those who run in it write the same definitions.


def test_what_replicas_wrote_is_no_reason_to_install_anything_anew() -> None:
    async def scenario(server: EmbeddedServer) -> None:
        async with installed(server) as client:
            at = Webhook(WANTED.namespace, "polyver")
            async with replica(settings_of(client, at)), asyncio.timeout(HANG):
                await until(client, CRDS, KITES.definition().name, "", trusts)
            said = await install(client, server.url)
            assert {line.split()[-1] for line in said} == {"unchanged"}

    with EmbeddedServer(capabilities=()) as server:
        asyncio.run(scenario(server))


def test_a_definition_is_let_go_with_its_conversion() -> None:
    async def scenario(server: EmbeddedServer) -> None:
        async with installed(server) as client:
            await client.create(CRDS, BOATS)
            await client.create(SERVED, CONVERSION)
            at = Webhook(WANTED.namespace, "polyver")
            async with replica(settings_of(client, at)), asyncio.timeout(HANG):
                await until(client, CRDS, "boats.example.com", "", trusts)
                crd = await client.get(CRDS, "boats.example.com")
                for each in crd["spec"]["versions"]:
                    each["served"] = each["storage"]
                change = {"spec": {"versions": crd["spec"]["versions"]}}
                await client.patch(CRDS, "boats.example.com", change=change)
                plural = "validatingwebhookconfigurations"
                hooks = GroupVersionResource(
                    "admissionregistration.k8s.io", "v1", plural, namespaced=False
                )
                await client.delete(hooks, "polyver")  # nobody answers at its address
                await client.delete(SERVED, "boats.example.com")
                await until(client, CRDS, "boats.example.com", "", lambda obj: not trusts(obj))

    with EmbeddedServer(capabilities=()) as server:
        asyncio.run(scenario(server))


def test_another_port_is_put_right() -> None:
    def asks(port: int) -> Callable[[Object], bool]:
        def holds(crd: Object) -> bool:
            client = crd["spec"]["conversion"]["webhook"]["clientConfig"]
            return bool(client["service"]["port"] == port)

        return holds

    async def scenario(server: EmbeddedServer) -> None:
        async with installed(server) as client:
            at, name = Webhook(WANTED.namespace, "polyver"), KITES.definition().name
            async with replica(settings_of(client, at)), asyncio.timeout(HANG):
                await until(client, CRDS, name, "", trusts)
                change = {"webhook": {"clientConfig": {"service": {"port": 8443}}}}
                await client.patch(CRDS, name, change={"spec": {"conversion": change}})
                await until(client, CRDS, name, "", asks(443))

    with EmbeddedServer(capabilities=()) as server:
        asyncio.run(scenario(server))


def trusts(crd: Object) -> bool:
    """Whether a definition says who converts, and why it may be believed."""
    webhook = (crd["spec"].get("conversion") or {}).get("webhook") or {}
    return bool(webhook.get("clientConfig", {}).get("caBundle"))
