"""DELETE requests for one object or a collection.

An object without finalizers is deleted immediately. An object with finalizers is first only marked
for deletion. It is deleted when its last finalizer is removed.
"""

from __future__ import annotations

from polyver.core.plain import Object
from polyver.kube.http.worker_threads import Turns
from polyver.kube.objects import encode_json
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError, conflict, not_found
from polyver.kube.server.admission import AdmissionRequest
from polyver.kube.server.answers import data_answer, list_answer
from polyver.kube.server.bodies import read_delete_options
from polyver.kube.server.call import Call, ServerContext
from polyver.kube.server.http import PLAIN, ApiPath, HttpRequest, HttpResponse
from polyver.kube.server.identity import SERVER
from polyver.kube.server.options import DeleteOptions, ListOptions, Query
from polyver.kube.server.read import read_selection
from polyver.kube.server.resource import ServedResource
from polyver.kube.server.webhook_admission import deleted, subject_of
from polyver.kube.store import Conflict, StoreEntry, StoreWrite

__all__ = ["delete_all", "delete_collection", "delete_object"]

_MOST_TRIES = 20
_PAGE = 500
ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"


async def delete_object(call: Call) -> HttpResponse:
    """Delete one object; answer with the object or with a Status, as kube-apiserver does."""
    options = read_delete_options(call)
    entry = call.store.get(call.key)
    if entry is None:
        raise not_found(call.resource.kind, call.api_path.name)
    left = await _delete(call, entry, options)
    if left is not None or call.resource.rules.answers_deletion:
        gone = await call.resource.decode(entry)
        return await data_answer(
            call, left or call.resource.rules.ended(gone, call.server.timestamp())
        )
    return call.answer(200, encode_json(await _success(call.resource.kind, entry, call)))


async def _success(kind: ResourceKind, entry: StoreEntry, call: Call) -> Object:
    metadata = (await call.resource.decode(entry))["metadata"]
    details = {"name": metadata["name"], "kind": kind.plural, "uid": metadata["uid"]}
    details |= {"group": kind.group} if kind.group else {}
    named = {"kind": "Status", "apiVersion": "v1", "metadata": {}}
    return named | {"status": "Success", "details": details}


async def delete_collection(call: Call) -> HttpResponse:
    """Delete all objects that the selectors of the request match; answer with a list of them."""
    selected = ListOptions.read(call.query)
    options = read_delete_options(call)
    selection = read_selection(call.resource, selected)
    prefix, after = call.resource.range(call.api_path.namespace), ""
    found: list[StoreEntry] = []
    turns = Turns()
    while True:
        page = call.store.page(prefix, after=after, limit=_PAGE)
        for entry in page.entries:
            if turns.over:
                await turns.next()
            if await selection.matches(entry):
                found.append(entry)
                await _delete_if_there(call, entry, options)
        if not page.remaining:
            break
        after = page.entries[-1].key
    metadata = {"resourceVersion": str(call.store.revision)}
    if call.resource.kind.custom:
        metadata["continue"] = ""
    return await list_answer(call, found, metadata)


async def delete_all(server: ServerContext, resource: ServedResource) -> None:
    """Delete all objects of a custom kind because its CRD is being deleted."""
    api_path = ApiPath(resource.kind.group, resource.kind.version, resource.kind.plural)
    request = HttpRequest("DELETE", "", "", {}, b"", SERVER)
    await delete_collection(Call(server, request, resource, api_path, Query(""), PLAIN))


async def _delete_if_there(call: Call, entry: StoreEntry, options: DeleteOptions) -> None:
    try:
        await _delete(call, entry, options)
    except ApiError as error:
        if error.code != 404:
            raise


async def _delete(call: Call, entry: StoreEntry, options: DeleteOptions) -> Object | None:
    """Delete an object, or mark it for deletion if it has finalizers.

    Return the marked object, or None if the object was deleted.
    """
    for _ in range(_MOST_TRIES):
        obj = await call.resource.decode(entry)
        _check_preconditions(call, obj, options)
        await _admit(call, obj, options)
        try:
            return await _delete_once(call, entry, obj, options)
        except Conflict as error:
            if error.current is None:
                raise not_found(call.resource.kind, obj["metadata"]["name"]) from None
            entry = error.current
    raise conflict(
        call.resource.kind, obj["metadata"]["name"], "it is changed too often; try again"
    )


async def _delete_once(
    call: Call, entry: StoreEntry, obj: Object, options: DeleteOptions
) -> Object | None:
    rules, begun = call.resource.rules, "deletionTimestamp" in obj["metadata"]
    _set_finalizers(obj, options)
    if not rules.held(obj):
        if not options.dry_run:
            head, tail = await call.resource.stored_form(obj)
            await call.store.write(StoreWrite(entry.key, head, tail, entry.revision, delete=True))
        return None
    if not begun:
        rules.begin_deletion(obj, call.server.timestamp())
    head, tail = await call.resource.stored_form(obj)
    if options.dry_run or b"%b%d%b" % (head, entry.revision, tail) == entry.value:
        return obj
    written = await _mark(call, StoreWrite(entry.key, head, tail, entry.revision))
    return await call.resource.decode(written)


async def _mark(call: Call, change: StoreWrite) -> StoreEntry:
    """Store an object that is marked for deletion.

    For a Namespace, the server refuses new objects in it already while this write is pending.
    """
    if call.resource.kind.resource != "namespaces":
        return await call.store.write(change)
    name = change.key.rpartition("/")[2]
    call.server.terminating.add(name)
    try:
        return await call.store.write(change)
    finally:
        # The stored namespace now shows its deletion, unless the write failed.
        call.server.terminating.discard(name)


def _set_finalizers(obj: Object, options: DeleteOptions) -> None:
    """Set the finalizer that the propagation policy Orphan or Foreground requires.

    The garbage collector removes it when it has processed the dependents.
    """
    policy = options.propagation
    if policy is None and options.orphan is not None:
        policy = "Orphan" if options.orphan else "Background"
    if policy is None:
        return
    metadata = obj["metadata"]
    kept = [each for each in metadata.get("finalizers") or [] if each not in (ORPHAN, FOREGROUND)]
    added = {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(policy, [])
    metadata.pop("finalizers", None)
    if kept + added:
        metadata["finalizers"] = kept + added


def _check_preconditions(call: Call, obj: Object, options: DeleteOptions) -> None:
    metadata = obj["metadata"]
    wanted = {"UID": (options.uid, "uid"), "ResourceVersion": (options.revision, "resourceVersion")}
    for name, (value, field) in wanted.items():
        if value is not None and value != metadata[field]:
            text = (
                f"the {name} in the precondition ({value}) does not match the {name} in record "
                f"({metadata[field]}). The object might have been "
                f"{'deleted and then recreated' if field == 'uid' else 'modified'}"
            )
            raise _precondition_failed(call, metadata["name"], text)


def _precondition_failed(call: Call, name: str, text: str) -> ApiError:
    """Build the error for a precondition, such as a uid, that the object does not meet.

    Its details name the kind. The details of other conflict errors name the resource.
    """
    kind = call.resource.kind
    group = {"group": kind.group} if kind.group else {}
    details = {"name": name, "kind": kind.kind} | group
    message = f'Operation cannot be fulfilled on {kind.qualified} "{name}": {text}'
    return ApiError(409, "Conflict", message, details=details)


async def _admit(call: Call, obj: Object, options: DeleteOptions) -> None:
    review = AdmissionRequest(
        operation="DELETE",
        kind=call.resource.kind,
        namespace=call.api_path.namespace,
        name=obj["metadata"]["name"],
        subresource="",
        object=None,
        old=obj,
        user=call.request.user,
        dry_run=options.dry_run,
    )
    await call.server.admission.mutate(review)
    await call.server.admission.validate(review)
    for text in review.warnings:
        call.warn(text)
    if call.server.webhooks.idle or not call.request.path:
        # While a CRD is being deleted, webhooks are not called for its objects.
        return
    # For the deletion of a collection, the name is empty, because the request path contains no
    # name.
    subject = await subject_of(call, "DELETE", name=call.api_path.name, deletion=options)
    if subject is not None:
        await deleted(call, subject, obj)
