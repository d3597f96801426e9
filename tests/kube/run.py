"""Performs a case against an API server and yields its transcript."""

from __future__ import annotations

import http
import http.client
import json
import shlex
import ssl
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec
from tests.deadlines import HANG
from tests.kube.cases import Case, Step, load_given
from tests.kube.hooks import READY, Configuration, Hook
from tests.kube.paths import omit, pick
from tests.kube.stable import Stable, without_list_version
from tests.kube.webhook import Webhook

HEADERS = ("Allow", "Content-Type", "Location", "Retry-After", "Warning", "WWW-Authenticate")
MEDIA = {
    "json": "application/json",
    "yaml": "application/yaml",
    "merge": "application/merge-patch+json",
    "json-patch": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
    "strategic": "application/strategic-merge-patch+json",
    "table": "application/json;as=Table;v=v1;g=meta.k8s.io",
    "table-or-json": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "partial": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "partial-list": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "discovery": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    "discovery-beta": "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
}
MUTATING, VALIDATING = "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"
T = TypeVar("T")
QUIET = 0.3  # how long to listen for events that should not come


@dataclass(frozen=True)
class Target:
    """An API server: where it is, how to be its administrator, and what kubectl needs."""

    url: str
    ca_file: Path
    token: str
    kubectl: Path
    kubeconfig: Path
    restart_controllers: Callable[[], None] = lambda: None
    patience: float = HANG
    """How many seconds to wait for what happens in the background."""


class CaseError(Exception):
    """A case that could not be performed to its end."""


def perform(case: Case, target: Target) -> list[Any]:
    """The transcript of a case: for each step what was answered, made stable."""
    with Webhook() as webhook, tempfile.TemporaryDirectory() as scratch:
        run = _Run(case, target, webhook, Path(scratch))
        run.prepare()
        try:
            return [run.step(step) for step in case.steps]
        finally:
            run.end()


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: dict[str, Any]
    body: Any


class _Run:
    def __init__(self, case: Case, target: Target, webhook: Webhook, scratch: Path) -> None:
        self._case = case
        self._target = target
        self._webhook = webhook
        self._scratch = scratch
        self._context = ssl.create_default_context(cafile=target.ca_file)
        self._connection = self._connect(timeout=target.patience)
        """For whatever is answered in one piece; it opens itself again where it was closed."""
        self._variables: dict[str, Any] = {
            "case": case.case,
            "ns": case.case,
            "group": f"{case.case}.ex.io",
            "webhook": webhook.url,
            "ca": webhook.ca,
            "hooks": webhook.hooks.base,
        }
        address = urlsplit(target.url).netloc
        known = {webhook.url: "webhook", webhook.ca: "ca", address: "server"}
        self._stable = Stable(known | {webhook.hooks.base: "hooks"})
        self._hooks: list[tuple[str, str]] = []
        """The kinds and names of what configures admission webhooks."""
        self._marks = 0

    def prepare(self) -> None:
        """A namespace for the case, and what it is given."""
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._case.case}}
        self._expect(201, "POST", "/api/v1/namespaces", namespace)
        for name in self._case.given:
            for document in load_given(name):
                self._give(self._filled(document.value))

    def _give(self, manifest: Any) -> None:
        if manifest["kind"] != "CustomResourceDefinition":
            raise CaseError(f"a case cannot begin with a {manifest['kind']}")
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        self._expect(201, "POST", path, manifest)
        self._wait(f"{path}/{manifest['metadata']['name']}", _is_established)
        spec = manifest["spec"]
        for version in spec["versions"]:
            if version["served"]:
                group = f"/apis/{spec['group']}/{version['name']}"
                self._wait(
                    f"{group}/{spec['names']['plural']}", lambda answer: answer.status == 200
                )
        # Aggregated discovery follows a moment later, and kubectl asks there.
        self._wait("/apis", lambda answer: _is_discovered(answer, spec), accept="discovery")

    def _expect(self, status: int, method: str, path: str, body: Any) -> None:
        """Prepare something for the case.

        kube-apiserver answers 504 when a request takes it too long, which a busy machine makes
        it do. It may have done what it was asked for all the same.
        """
        answer = self._request(method, path, body=json.dumps(body).encode())
        if answer.status == 504:
            answer = self._until(
                lambda: self._request(method, path, body=json.dumps(body).encode()),
                lambda again: again.status != 504,
                f"{method} {path}",
            )
            done = {"POST": 409, "DELETE": 404}.get(method)
            if answer.status == done:
                return
        if answer.status != status:
            raise CaseError(f"{self._case.case}: {method} {path}: {answer.status} {answer.body}")

    def _wait(self, path: str, holds: Callable[[_Answer], bool], accept: str = "json") -> None:
        self._until(lambda: self._request("GET", path, accept=accept), holds, path)

    def _until(self, ask: Callable[[], T], holds: Callable[[T], bool], what: str) -> T:
        """Ask until it holds, within reason."""
        end = time.monotonic() + self._target.patience
        while not holds(answer := ask()):
            if time.monotonic() > end:
                raise CaseError(f"{self._case.case}, {what}: never came to it: {answer}")
            time.sleep(0.05)
        return answer

    def step(self, step: Step) -> Any:
        if step.webhook is not None:
            return self._set_webhook(step)
        if step.hooks is not None:
            self._set_hooks(step.hooks)
            return {"step": step.title}
        if step.restart is not None:
            self._target.restart_controllers()
            return {"step": step.title}
        if step.kubectl is not None:
            return self._run_kubectl(step)
        if step.watch is not None:
            return self._watch(step)
        return self._ask(step)

    def _set_webhook(self, step: Step) -> Any:
        """A behaviour to take on; `calls` tells what was asked for since the last time."""
        assert step.webhook is not None
        calls, self._webhook.calls[:] = list(self._webhook.calls), []
        if step.webhook == "calls":
            return {"step": step.title, "calls": self._stable.value(calls)}
        if step.webhook.startswith(("asked", "reviews")):
            return {"step": step.title, "asked": self._asked(step)}
        self._webhook.behaviour = step.webhook
        return {"step": step.title}

    def _asked(self, step: Step) -> list[Any]:
        """What admission webhooks were asked, in full or in a line each."""
        assert step.webhook is not None
        found = self._webhook.hooks.asked(self._user())
        what, _, order = step.webhook.partition("-")
        if order == "sorted":
            found.sort(key=lambda each: each[0])
        if what == "asked":
            return [self._stable.value(_line(*each)) for each in found]
        reviews = [{"at": target, **review} for target, review in found]
        for path in step.omit:
            for review in reviews:
                omit(review, path)
        return [self._stable.value(review) for review in reviews]

    def _user(self) -> str:
        """Who the case is, as the server knows them."""
        kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        answer = self._request("POST", path, body=json.dumps(kind).encode())
        return str(answer.body["status"]["userInfo"]["username"])

    def _set_hooks(self, configurations: list[Configuration]) -> None:
        """Configure admission webhooks in place of those before, and wait until they are asked."""
        self._take_away_hooks()
        for each in configurations:
            for hooks, kind in ((each.validating, VALIDATING), (each.mutating, MUTATING)):
                if hooks is not None:
                    self._set_hook(kind, each.name, hooks)

    def _set_hook(self, kind: str, name: str, hooks: list[Hook]) -> None:
        self._marks += 1
        mark = f"{self._case.case}-{self._marks}"
        filled = [msgspec.convert(self._filled(msgspec.to_builtins(e)), Hook) for e in hooks]
        full, namespace = f"{self._case.case}-{name}", self._case.case
        manifest = self._webhook.hooks.manifest(kind, full, namespace, filled, mark)
        self._expect(201, "POST", _configurations(kind), manifest)
        self._hooks.append((kind, full))
        metadata = {"name": "x", "labels": {READY: mark}}
        probe = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        path = "/api/v1/namespaces/default/configmaps?dryRun=All"
        self._until(
            lambda: self._request("POST", path, body=json.dumps(probe).encode()),
            lambda answer: mark in str(pick(answer.body, "message")),
            f"hooks {name}",
        )

    def end(self) -> None:
        """Leave nothing that concerns other cases."""
        try:
            self._take_away_hooks()
        finally:
            self._connection.close()

    def _take_away_hooks(self) -> None:
        for kind, name in self._hooks:
            self._expect(200, "DELETE", f"{_configurations(kind)}/{name}", {})
        self._hooks = []

    def _ask(self, step: Step) -> Any:
        assert step.method is not None
        until = self._filled(step.until)
        answer = self._until(
            lambda: self._request_step(step),
            lambda answer: all(_has(answer, path, wanted) for path, wanted in until.items()),
            step.title,
        )
        if self._hooks and step.method != "GET":
            self._until_cached(step, answer)
        for name, path in step.save.items():
            self._variables[name] = pick(answer.body, path)
        body = answer.body
        for path in step.omit:
            omit(body, path)
        if step.pick:
            paths = {path: self._filled(path) for path in step.pick}
            whole = without_list_version(body)
            picked = {path: pick(whole, filled) for path, filled in paths.items()}
            stable = {path: self._stable.picked(path, value) for path, value in picked.items()}
        else:
            stable = self._stable.value(body)
        return {
            "step": step.title,
            "status": answer.status,
            "headers": self._stable.value(answer.headers),
            "body": stable,
        }

    def _until_cached(self, step: Step, answer: _Answer) -> None:
        """Wait until the watch cache of kube-apiserver has what a step wrote.

        A write begins with the object in the cache. If that is an old one, admission webhooks are
        asked about it first, and again about the current one.
        """
        metadata = answer.body.get("metadata") if isinstance(answer.body, dict) else None
        path = self._filled(step.path).partition("?")[0]
        if answer.status not in (200, 201) or not metadata or "resourceVersion" not in metadata:
            return
        if step.method == "POST":
            path = f"{path}/{metadata['name']}"
        asked = f"{path}?resourceVersion={metadata['resourceVersion']}"
        self._wait(asked, lambda found: found.status != http.HTTPStatus.GATEWAY_TIMEOUT)

    def _request_step(self, step: Step) -> _Answer:
        body = self._filled(step.body) if step.has_body else None
        encoded = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        return self._request(
            step.method or "GET",
            self._filled(step.path),
            body=encoded if step.has_body else None,
            kind=step.type,
            accept=step.accept,
            headers=self._filled(step.headers),
            user=step.as_,
        )

    def _request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        kind: str = "json",
        accept: str = "json",
        headers: dict[str, str] | None = None,
        user: str = "admin",
    ) -> _Answer:
        connection = self._connection
        try:
            connection.request(method, path, body, self._headers(body, kind, accept, user, headers))
            response = connection.getresponse()
            return _Answer(response.status, _kept(response), _decoded(response, response.read()))
        except BaseException:
            connection.close()
            raise

    def _connect(self, timeout: float) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            urlsplit(self._target.url).netloc, context=self._context, timeout=timeout
        )

    def _headers(
        self,
        body: bytes | None,
        kind: str,
        accept: str,
        user: str,
        extra: dict[str, str] | None,
    ) -> dict[str, str]:
        tokens = {"admin": self._target.token, "wrong": "wrong"}
        headers = {"User-Agent": "case/1", "Accept": MEDIA.get(accept, accept)}
        if user in tokens:
            headers["Authorization"] = f"Bearer {tokens[user]}"
        if body is not None and kind != "none":
            headers["Content-Type"] = MEDIA.get(kind, kind)
        return headers | (extra or {})

    def _watch(self, step: Step) -> Any:
        connection = self._connect(timeout=self._target.patience)
        try:
            headers = self._headers(None, "json", step.accept, step.as_, step.headers)
            connection.request("GET", self._filled(step.path), headers=headers)
            response = connection.getresponse()
            entry = {"step": step.title, "status": response.status}
            entry["headers"] = self._stable.value(_kept(response))
            if response.status != 200:
                entry["body"] = self._stable.value(_decoded(response, response.read()))
                return entry
            inner = [self.step(inner) for inner in step.while_]
            events = self._events(connection, response, step)
            entry["events"] = [self._event(event) for event in events]
            return entry | ({"while": inner} if inner else {})
        finally:
            connection.close()

    def _events(
        self,
        connection: http.client.HTTPSConnection,
        response: http.client.HTTPResponse,
        step: Step,
    ) -> list[Any]:
        events: list[Any] = []
        try:
            while line := response.readline():
                event = json.loads(line)
                for path in step.omit:
                    omit(event, path)
                events.append(event)
                if len(events) >= step.events and connection.sock is not None:
                    connection.sock.settimeout(QUIET)
        except TimeoutError:
            if len(events) < step.events:
                raise CaseError(
                    f"{self._case.case}, {step.title}: {len(events)} events, not {step.events}"
                ) from None
        return events

    def _event(self, event: Any) -> Any:
        if event.get("type") == "BOOKMARK":
            event["object"]["metadata"]["resourceVersion"] = "<rv>"
        return self._stable.value(event)

    def _run_kubectl(self, step: Step) -> Any:
        assert step.kubectl is not None
        arguments = shlex.split(self._filled(step.kubectl))
        body = self._filled(step.body) if step.has_body else ""
        ran = self._until(
            lambda: subprocess.run(
                [self._target.kubectl, *arguments],
                input=body if isinstance(body, str) else json.dumps(body),
                env={
                    "PATH": "/usr/bin:/bin",
                    "HOME": str(self._scratch),
                    "KUBECONFIG": str(self._target.kubeconfig),
                    "KUBECACHEDIR": str(self._scratch / "cache"),
                },
                capture_output=True,
                text=True,
                timeout=self._target.patience,
                check=False,
            ),
            lambda ran: ran.returncode == step.until.get("exit", ran.returncode),
            step.title,
        )
        explains = arguments[0] == "explain"
        printed = self._stable.explained if explains else self._stable.printed
        return {
            "step": step.title,
            "exit": ran.returncode,
            "out": printed(ran.stdout),
            "err": self._stable.printed(ran.stderr),
        }

    def _filled(self, value: Any) -> Any:
        """A value with its $variables filled in; a text that is one variable keeps its type."""
        match value:
            case dict():
                return {self._filled(key): self._filled(inner) for key, inner in value.items()}
            case list():
                return [self._filled(inner) for inner in value]
            case str():
                whole = value.removeprefix("$")
                if whole != value and whole in self._variables:
                    return self._variables[whole]
                return Template(value).safe_substitute(self._variables)
            case _:
                return value


def _configurations(kind: str) -> str:
    return f"/apis/admissionregistration.k8s.io/v1/{kind.lower()}s"


def _line(target: str, review: Any) -> str:
    """What a webhook was asked, in short."""
    request = review["request"]
    resource = request["resource"]
    names = [resource["group"], resource["version"], resource["resource"]]
    names += filter(None, [request.get("subResource")])
    return f"{target.partition('?')[0]}: {request['operation']} {'/'.join(filter(None, names))}"


def _kept(response: http.client.HTTPResponse) -> dict[str, Any]:
    found = {name: response.headers.get_all(name) for name in HEADERS}
    return {
        name: values if name == "Warning" else values[0] for name, values in found.items() if values
    }


def _decoded(response: http.client.HTTPResponse, content: bytes) -> Any:
    # The index of OpenAPI documents is JSON that is called plain text.
    if "json" in response.headers.get("Content-Type", "") or content.startswith(b"{"):
        with suppress(ValueError):
            return json.loads(content)
    return content.decode(errors="replace")


def _is_established(answer: _Answer) -> bool:
    return bool(pick(answer.body, "status.conditions[type=Established].status") == "True")


def _is_discovered(answer: _Answer, spec: Any) -> bool:
    served = {version["name"] for version in spec["versions"] if version["served"]}
    versions = pick(answer.body, f"items[metadata.name={spec['group']}].versions") or []
    plural = spec["names"]["plural"]
    found = {
        version["version"]
        for version in versions
        if pick(version, f"resources[resource={plural}]") is not None
        and version.get("freshness") == "Current"
    }
    return served <= found


def _has(answer: _Answer, path: str, wanted: Any) -> bool:
    return bool(answer.status == wanted if path == "status" else pick(answer.body, path) == wanted)
