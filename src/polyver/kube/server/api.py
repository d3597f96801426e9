"""The request pipeline for all kinds and all clients, and the server's background work."""

from __future__ import annotations

import asyncio
import datetime
import secrets
from collections.abc import Awaitable, Callable, Mapping

from polyver.kube.http.http import read_duration
from polyver.kube.http.worker_threads import off_loop
from polyver.kube.objects import encode_json
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError, bad_request, internal, not_allowed, not_found
from polyver.kube.server._uids import new_uid
from polyver.kube.server.accounts import Accounts
from polyver.kube.server.admission import AdmissionChain
from polyver.kube.server.answers import as_unreadable, status_answer
from polyver.kube.server.call import Call, ServerContext
from polyver.kube.server.conversion import unreadable, unreadable_update
from polyver.kube.server.definitions import Definitions, DroppedVersions
from polyver.kube.server.delete import delete_collection, delete_object
from polyver.kube.server.documents import ApiDocuments, unknown_path
from polyver.kube.server.http import (
    ApiPath,
    HttpRequest,
    HttpResponse,
    choose_form,
    error_form,
    parse_api_path,
    verb_of,
)
from polyver.kube.server.identity import AuthorizationAttributes, may, refusal
from polyver.kube.server.kinds import addresses, builtin_resources, lifecycle
from polyver.kube.server.options import Query
from polyver.kube.server.read import get_object, list_objects
from polyver.kube.server.registrations import Registrations
from polyver.kube.server.request_counts import RequestCounts
from polyver.kube.server.resource import EntryNotConverted, ResourceCatalogue, ServedResource
from polyver.kube.server.reviews import review
from polyver.kube.server.watch import watch_objects
from polyver.kube.server.write import create_object, patch_object, update_object
from polyver.kube.store import Store, StoreClosed, StoreFailed

__all__ = ["ApiServer"]

# The characters of the random suffix: without vowels and digits that look like vowels, so that no
# generated name contains a word.
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
RELEASE = "1.35.0"
_LONGEST = 60.0


def _suffix() -> str:
    return "".join(secrets.choice(_SUFFIX) for _ in range(5))


def _key() -> bytes:
    from polyver.kube.http.tls import key_pem, new_key

    return key_pem(new_key())


class ApiServer:
    """The API server: it answers requests, and stores its objects in one store."""

    def __init__(
        self,
        store: Store,
        *,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
        new_uid: Callable[[], str] = new_uid,
        new_suffix: Callable[[], str] = _suffix,
        release: str = RELEASE,
        address: str = "127.0.0.1:6443",
        account_key: Callable[[], bytes] = _key,
    ) -> None:
        self.problem = ""
        """The reason why the background work ended with an error; "" if it did not."""
        self.paths: dict[str, Callable[[HttpRequest], Awaitable[HttpResponse]]] = {}
        """Handlers of POST requests for paths that polyver adds, by path.

        kube-apiserver does not have these paths, and only administrators may send these requests.
        """
        self.pages: dict[str, Callable[[HttpRequest], Awaitable[HttpResponse]]] = {}
        """Handlers of GET requests for paths that polyver adds, by path.

        kube-apiserver does not have these paths.
        """
        self.request_counts = RequestCounts()
        """The requests for custom resources, by version and client."""
        self.catalogue = ResourceCatalogue(builtin_resources())
        self.admission = AdmissionChain()
        self.server = ServerContext(store, self.catalogue, self.admission, now, new_uid, new_suffix)
        namespaces = lifecycle(self.server)
        self.admission.add(namespaces)
        self.server.last_check = namespaces.check
        self.admission.add(addresses(self.server))
        self.admission.add(DroppedVersions(self.server))
        self.accounts = Accounts(self.server, account_key)
        self._documents = ApiDocuments(self.catalogue, release=release, address=address)
        self._registrations = Registrations(self.server, self.handle)
        self._definitions = Definitions(self.server)
        self._definitions.load()

    def custom_kinds(self) -> set[str]:
        """Return the names of the CustomResourceDefinitions that are served now."""
        return {each.kind.resource for each in self.catalogue if each.kind.custom}

    async def run(self) -> None:
        """Run the background work of the server until it is cancelled or fails.

        The first task processes CustomResourceDefinitions. The second task creates and deletes
        APIServices, so that each served version has one. The third task compacts old revisions of
        the store.
        """
        try:
            # If one task fails, a task group waits until the other tasks have cleaned up. The
            # function asyncio.gather would not wait.
            async with asyncio.TaskGroup() as group:
                group.create_task(self._definitions.run())
                group.create_task(self._registrations.run())
                group.create_task(_compact_regularly(self.server.store))
        except* Exception as errors:
            self.problem = (
                "changes of CustomResourceDefinitions are no longer processed: "
                f"{errors.exceptions[0]!r}"
            )
            raise
        finally:
            await self.server.webhooks.close()

    async def handle(self, request: HttpRequest) -> HttpResponse:
        """Answer a request. If handling it raises an ApiError, answer with a Status object."""
        try:
            return await self._route(request)
        except ApiError as error:
            return status_answer(error, error_form(request.headers.get("accept", "")))
        except StoreClosed:
            text = "the server is shutting down"
            return status_answer(ApiError(503, "ServiceUnavailable", text), error_form(""))
        except StoreFailed as error:
            return status_answer(internal(str(error)), error_form(""))

    async def _answer_path(self, request: HttpRequest) -> HttpResponse:
        """Answer a request for a path that does not belong to a resource."""
        wanted = AuthorizationAttributes(request.method.lower(), path=request.path)
        if not may(request.user, wanted):
            raise refusal(request.user, wanted)
        if request.path in self.paths and request.method == "POST":
            return await self.paths[request.path](request)
        if request.path in self.pages and request.method in ("GET", "HEAD"):
            return await self.pages[request.path](request)
        if self._documents.has(request.path):
            return self._documents.answer(request)
        return await off_loop(lambda: self._documents.answer(request))

    def _count(self, request: HttpRequest, kind: ResourceKind) -> None:
        if kind.custom and not request.own:
            user, agent = request.user.name, request.headers.get("user-agent", "")
            self.request_counts.count(kind.resource, kind.version, user, agent)

    async def _route(self, request: HttpRequest) -> HttpResponse:
        api_path = parse_api_path(request.path)
        if api_path is None or not api_path.resource:
            return await self._answer_path(request)
        query = Query(request.query)
        watch = api_path.old_watch or (query.flag("watch") and not api_path.name)
        verb = verb_of(request.method, api_path, watch=watch)
        if verb not in _VERBS:
            raise not_allowed()
        _authorize(request, api_path, verb)
        resource = self.catalogue.get(api_path.group, api_path.version, api_path.resource)
        if resource is None or not _has_path(resource, api_path, verb):
            return unknown_path(builtin=self.catalogue.is_builtin(api_path.group))
        self._count(request, resource.kind)
        accept = request.headers.get("accept", "")
        form = choose_form(accept, custom=resource.kind.custom)
        call = Call(self.server, request, resource, api_path, query, form)
        if resource.warning:
            call.warn(resource.warning)
        perform = _VERBS[verb]
        if resource.review:
            perform = review
        elif api_path.subresource == "token" and not resource.kind.custom:
            perform = self.accounts.request
        try:
            timeout = _request_timeout(query, verb)
            if timeout is None:
                return await perform(call)
            async with asyncio.timeout(timeout):
                return await perform(call)
        except TimeoutError:
            return _out_of_time()
        except (EntryNotConverted, ApiError) as error:
            refused = status_answer(_error_of(call, verb, error), error_form(accept))
            refused.headers += call.warning_headers()
            return refused


def _request_timeout(query: Query, verb: str) -> float | None:
    """Read the timeout of a request, in seconds, from its query parameter `timeout`.

    Return None if there is no timeout. A watch has the parameter `timeoutSeconds` instead, so for a
    watch the result is None.
    """
    text = query.text("timeout")
    if not text or verb == "watch":
        return None
    seconds = read_duration(text)
    if seconds is None:
        raise bad_request(f"invalid timeout specified in the request URL: {text}")
    return min(seconds, _LONGEST) if seconds > 0 else _LONGEST


def _out_of_time() -> HttpResponse:
    message = "Timeout: request did not complete within the allotted timeout"
    status = ApiError(504, "Timeout", message, details={}).status
    # In kube-apiserver, this Status has neither kind nor apiVersion.
    body = encode_json({k: v for k, v in status.items() if k not in ("kind", "apiVersion")})
    return HttpResponse(504, [("content-type", "text/plain; charset=utf-8")], body)


def _error_of(call: Call, verb: str, failed: EntryNotConverted | ApiError) -> ApiError:
    """Convert the exception of a failed request to the error that the client gets."""
    if isinstance(failed, ApiError):
        return failed
    if verb in ("update", "patch", "create"):
        return unreadable_update(as_unreadable(failed))
    return unreadable(call.resource.kind, as_unreadable(failed))


def _authorize(request: HttpRequest, api_path: ApiPath, verb: str) -> None:
    namespace = api_path.namespace
    if not api_path.group and api_path.resource == "namespaces":
        namespace = api_path.name
    wanted = AuthorizationAttributes(
        verb,
        group=api_path.group,
        resource=api_path.resource,
        subresource=api_path.subresource,
        namespace=namespace,
        name=api_path.name,
    )
    if not may(request.user, wanted):
        raise refusal(request.user, wanted)


def _has_path(resource: ServedResource, api_path: ApiPath, verb: str) -> bool:
    """Report whether the resource has this path.

    If the path does not support the verb, raise an error.
    """
    # The path must match the scope and the subresources of the kind.
    kind = resource.kind
    if api_path.rest or (api_path.namespace and not kind.namespaced):
        return False
    no_namespace = kind.namespaced and not api_path.namespace
    if (no_namespace and api_path.name) or (api_path.old_watch and kind.custom):
        return False
    part = kind.subresource(api_path.subresource)
    if api_path.subresource and not kind.custom and part is None:
        return False
    # The kind must support the verb on this path.
    if api_path.old_watch and verb != "watch":
        raise not_allowed()
    if no_namespace and verb not in ("list", "watch"):
        if kind.custom:
            return False
        raise not_allowed()
    if kind.custom:
        _check_custom(kind, api_path, verb)
        return True
    named = {"create": part is not None, "update": True, "patch": True}.get(
        verb, bool(api_path.name)
    )
    if verb not in (part.verbs if part else kind.verbs) or named != bool(api_path.name):
        raise not_allowed()
    return True


def _check_custom(kind: ResourceKind, api_path: ApiPath, verb: str) -> None:
    """Raise an error if a custom kind does not support a verb on this path."""
    if verb in ("update", "patch") and not api_path.name:
        raise bad_request("name must be provided")
    if not api_path.subresource:
        return
    if kind.subresource(api_path.subresource) is None:
        raise not_found(kind, api_path.name)
    if verb not in ("get", "update", "patch"):
        text = f'{verb} is not supported on resources of kind "{kind.resource}"'
        details = {"group": kind.group, "kind": kind.plural}
        raise ApiError(405, "MethodNotAllowed", text, details=details)


_VERBS: Mapping[str, Callable[[Call], Awaitable[HttpResponse]]] = {
    "create": create_object,
    "delete": delete_object,
    "deletecollection": delete_collection,
    "get": get_object,
    "list": list_objects,
    "patch": patch_object,
    "update": update_object,
    "watch": watch_objects,
}


_EVERY = 300.0


async def _compact_regularly(store: Store, *, every: float = _EVERY) -> None:
    """Compact the store every `every` seconds, up to the revision that it had at the previous time.

    So a watch or a paged list can continue for at least `every` seconds after its start.
    """
    before = store.revision
    while True:
        await asyncio.sleep(every)
        now = store.revision
        try:
            if before > store.compacted:
                await store.compact(before)
        except StoreClosed:
            return
        except StoreFailed:
            continue  # the disk failed; the next interval tries again
        before = now
