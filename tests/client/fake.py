"""A small API in memory, so that what is written against the client can be tried by itself.

It knows just enough: versions, finalizers, preconditions, pages, watches, namespaces. Whatever it
and the real server answer differently is a mistake here.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from polyver.client import Discovery
from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.patch import apply_json_patch, apply_merge_patch
from polyver.kube.objects.status import (
    MODIFIED,
    ApiError,
    already_exists,
    conflict,
    expired,
    invalid,
    invalid_field,
    not_found,
)
from polyver.kube.server.http import HttpRequest, HttpResponse

NAMESPACE = ResourceKind("", "v1", "Namespace", "namespaces", "namespace", namespaced=False)
CONFIG_MAP = ResourceKind("", "v1", "ConfigMap", "configmaps", "configmap", namespaced=True)
SECRET = ResourceKind("", "v1", "Secret", "secrets", "secret", namespaced=True)
ACCOUNT = ResourceKind(
    "", "v1", "ServiceAccount", "serviceaccounts", "serviceaccount", namespaced=True
)
EVENT = ResourceKind("", "v1", "Event", "events", "event", namespaced=True)
NODE = ResourceKind("", "v1", "Node", "nodes", "node", namespaced=False)
WIDGET = ResourceKind("ex.io", "v1", "Widget", "widgets", "widget", namespaced=True)
BUILT_IN = [NAMESPACE, CONFIG_MAP, SECRET, ACCOUNT, EVENT, NODE]

Path = tuple[str, str, str, str]
"""Group, plural, namespace, name."""


@dataclass
class FakeApi:
    """Objects, and the log of what happened to them."""

    kinds: list[ResourceKind] = field(default_factory=lambda: list(BUILT_IN))
    objects: dict[Path, Object] = field(default_factory=dict)
    log: list[tuple[str, Path, Object]] = field(default_factory=list)
    oldest: int = 0
    ended: int = 0
    stale: set[str] = field(default_factory=set)
    """Group versions whose kinds cannot be told at the moment."""
    requests: list[str] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    breaks: Callable[[HttpRequest], ApiError | None] = lambda _: None
    """Makes requests fail."""

    @property
    def version(self) -> int:
        return len(self.log)

    def compact(self) -> None:
        """Forget the past; a watch that needs it ends with an error."""
        self.oldest = self.version

    def end_watches(self) -> None:
        """As a server does whenever it likes."""
        self.ended += 1
        self._wake()

    def _wake(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def names(self, plural: str) -> set[str]:
        return {path[3] for path in self.objects if path[1] == plural}

    async def handle(self, request: HttpRequest) -> HttpResponse:
        self.requests.append(f"{request.method} {request.path}")
        await asyncio.sleep(0)
        try:
            problem = self.breaks(request)
            if problem is not None:
                raise problem
            return _Asked(self, request).answer()
        except ApiError as error:
            return _json(error.status, error.code)

    def write(self, event: str, path: Path, content: Object) -> Object:
        content["metadata"]["resourceVersion"] = str(self.version + 1)
        self.log.append((event, path, copy.deepcopy(content)))
        if event == "DELETED":
            del self.objects[path]
        else:
            self.objects[path] = content
        self._wake()
        return content


def _json(content: object, status: int = 200) -> HttpResponse:
    return HttpResponse(status, [], msgspec.json.encode(content))


class _Asked:
    def __init__(self, api: FakeApi, request: HttpRequest) -> None:
        self.api = api
        self.request = request
        self.query = dict(parse_qsl(request.query))
        self.partial = "PartialObjectMetadata" in request.headers.get("accept", "")
        self.body: Any = msgspec.json.decode(request.body) if request.body else None

    def answer(self) -> HttpResponse:
        if self.request.path in ("/api", "/apis"):
            core = self.request.path == "/api"
            return _json(discovery(self.api.kinds, core=core, stale=self.api.stale))
        parts = self.request.path.strip("/").split("/")
        if parts[0] == "api":
            parts.insert(1, "")
        group, version, rest = parts[1], parts[2], parts[3:]
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
            namespace, rest = rest[1], rest[2:]
        plural, name, self.part = [*rest, "", ""][:3]
        self.kind = self._kind(group, version, plural)
        self.path = group, plural, namespace, name
        if name:
            return _json(self._shown(self._one(name)))
        return self._many()

    def _kind(self, group: str, version: str, plural: str) -> ResourceKind:
        for kind in self.api.kinds:
            if (kind.group, kind.version, kind.plural) == (group, version, plural):
                return kind
        raise ApiError(404, "NotFound", "404 page not found")

    def _shown(self, content: Object) -> Object:
        if content.get("kind") == "Status":
            return content
        if self.partial:
            about = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
            return about | {"metadata": content["metadata"]}
        return content | {"apiVersion": self.kind.api_version, "kind": self.kind.kind}

    def _one(self, name: str) -> Object:
        current = self.api.objects.get(self.path)
        if current is None and "apply" in self.request.headers.get("content-type", ""):
            return self._create(self.body)
        if current is None:
            raise not_found(self.kind, name)
        match self.request.method:
            case "GET":
                return current
            case "PUT":
                return self._update(current, self.body)
            case "PATCH":
                media = self.request.headers["content-type"]
                patch = apply_json_patch if "json-patch" in media else apply_merge_patch
                return self._update(current, patch(current, self.body))
            case "DELETE":
                return self._delete(self.path, current, self.body or {})
        raise AssertionError(self.request.method)

    def _update(self, current: Object, content: Object) -> Object:
        metadata = content["metadata"]
        if metadata.get("uid", current["metadata"]["uid"]) != current["metadata"]["uid"]:
            cause = invalid_field("metadata.uid", metadata["uid"], "field is immutable")
            raise invalid(self.kind, self.path[3], [cause])
        version = current["metadata"]["resourceVersion"]
        if metadata.get("resourceVersion", version) != version:
            raise conflict(self.kind, self.path[3], MODIFIED)
        updated = copy.deepcopy(content if not self.part else current)
        if self.part == "status":
            updated["status"] = content.get("status")
        if self.part == "finalize":
            updated["spec"]["finalizers"] = content["spec"].get("finalizers") or []
        for key in ("uid", "deletionTimestamp", "creationTimestamp", "resourceVersion"):
            if key in current["metadata"]:
                updated["metadata"][key] = current["metadata"][key]
        if "dryRun" in self.query:
            return updated
        if updated == current:
            return current
        return self._finished(self.path, updated)

    def _finished(self, path: Path, content: Object) -> Object:
        held = content["metadata"].get("finalizers") or (content.get("spec") or {}).get(
            "finalizers" if path[1] == "namespaces" else "-"
        )
        gone = "deletionTimestamp" in content["metadata"] and not held
        return self.api.write("DELETED" if gone else "MODIFIED", path, content)

    def _delete(self, path: Path, current: Object, options: Object) -> Object:
        wanted = options.get("preconditions") or {}
        for key in ("uid", "resourceVersion"):
            if wanted.get(key, current["metadata"][key]) != current["metadata"][key]:
                raise conflict(self.kind, path[3], f"Precondition failed: {key}")
        content = copy.deepcopy(current)
        metadata = content["metadata"]
        policy = options.get("propagationPolicy")
        if policy in ("Foreground", "Orphan") and "deletionTimestamp" not in metadata:
            finalizer = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}[policy]
            metadata["finalizers"] = sorted({*metadata.get("finalizers", ()), finalizer})
        metadata.setdefault("deletionTimestamp", "2026-01-01T00:00:00Z")
        if path[1] == "namespaces":
            content["status"] = (content.get("status") or {}) | {"phase": "Terminating"}
        if content == current:
            return current
        done = self._finished(path, content)
        return done if path in self.api.objects else {"kind": "Status", "status": "Success"}

    def _create(self, content: Object) -> Object:
        group, plural, namespace, _ = self.path
        metadata = content["metadata"]
        path = group, plural, namespace, metadata["name"]
        self._check_namespace(namespace, metadata["name"])
        if path in self.api.objects:
            raise already_exists(self.kind, metadata["name"])
        made = copy.deepcopy(content)
        made["metadata"] |= {
            "uid": f"uid-{self.api.version + 1}",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }
        if namespace:
            made["metadata"]["namespace"] = namespace
        if self.kind is NAMESPACE:
            made = {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}} | made
        return made if "dryRun" in self.query else self.api.write("ADDED", path, made)

    def _check_namespace(self, namespace: str, name: str) -> None:
        if not namespace:
            return
        found = self.api.objects.get(("", "namespaces", "", namespace))
        if found is None:
            raise not_found(NAMESPACE, namespace)
        if "deletionTimestamp" in found["metadata"]:
            causes = [{"reason": "NamespaceTerminating"}]
            raise ApiError(403, "Forbidden", f"{name} is forbidden", details={"causes": causes})

    def _many(self) -> HttpResponse:
        if self.request.method == "POST":
            return _json(self._shown(self._create(self.body)), 201)
        if self.request.method == "DELETE":
            options = {"propagationPolicy": self.query.get("propagationPolicy")}
            for path, content in self._matching():
                self._delete(path, content, options)
            return _json({"kind": "Status", "status": "Success"})
        if "watch" in self.query:
            return HttpResponse(200, [], self._events(int(self.query["resourceVersion"])))
        return self._list()

    def _matching(self) -> list[tuple[Path, Object]]:
        found = sorted(self.api.objects.items())
        return [(path, content) for path, content in found if self._concerns(path, content)]

    def _concerns(self, path: Path, content: Object) -> bool:
        group, plural, namespace, _ = self.path
        wanted = dict(
            each.split("=") for each in self.query.get("labelSelector", "").split(",") if each
        )
        labels = content["metadata"].get("labels", {})
        inside = path[:2] == (group, plural) and namespace in ("", path[2])
        return inside and wanted.items() <= labels.items()

    def _list(self) -> HttpResponse:
        after = self.query.get("continue", "")
        found = [each for each in self._matching() if "/".join(each[0]) > after]
        limit = int(self.query.get("limit", len(found) or 1))
        more = "/".join(found[limit - 1][0]) if len(found) > limit else ""
        metadata = {"resourceVersion": str(self.api.version), "continue": more}
        return _json(
            {"metadata": metadata, "items": [self._shown(each) for _, each in found[:limit]]}
        )

    async def _events(self, version: int) -> AsyncGenerator[bytes, None]:
        ended = self.api.ended
        while ended == self.api.ended:
            if version < self.api.oldest:
                yield _line("ERROR", expired("too old resource version").status)
                return
            for event, path, content in self.api.log[version:]:
                if self._concerns(path, content):
                    yield _line(event, self._shown(content))
                version += 1
            if self.kind not in self.api.kinds:
                return
            if version == self.api.version:
                await self.api.changed.wait()


def _line(event: str, content: Object) -> bytes:
    return msgspec.json.encode({"type": event, "object": content}) + b"\n"


def discovery(kinds: list[ResourceKind], *, core: bool, stale: set[str]) -> Object:
    """Kinds as aggregated discovery tells them."""
    groups: dict[str, dict[str, list[Object]]] = {}
    for kind in kinds:
        if (kind.group == "") is core:
            found = groups.setdefault(kind.group, {}).setdefault(kind.version, [])
            if kind.api_version not in stale:
                found.append(_told(kind))
    items = [
        {"metadata": {"name": group}, "versions": [_version(*each, group, stale) for each in found]}
        for group, found in ((group, versions.items()) for group, versions in groups.items())
    ]
    return {"kind": "APIGroupDiscoveryList", "items": items}


def _version(version: str, resources: list[Object], group: str, stale: set[str]) -> Object:
    fresh = "Stale" if f"{group}/{version}" in stale else "Current"
    return {"version": version, "resources": resources, "freshness": fresh}


def _told(kind: ResourceKind) -> Object:
    return {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }


def served(*kinds: ResourceKind) -> Discovery:
    return Discovery(kinds)
