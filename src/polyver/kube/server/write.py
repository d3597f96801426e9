"""Answers create, update, patch and apply requests for all kinds, up to the write to the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from polyver.core.plain import Object
from polyver.kube.objects.apply import Entry as Managed
from polyver.kube.objects.codec import encode_sorted
from polyver.kube.objects.rules import check_metadata, check_metadata_update
from polyver.kube.objects.status import (
    MODIFIED,
    ApiError,
    Cause,
    already_exists,
    bad_request,
    conflict,
    invalid,
    invalid_field,
    not_found,
)
from polyver.kube.server.admission import AdmissionRequest
from polyver.kube.server.answers import data_answer, object_answer
from polyver.kube.server.bodies import read_object
from polyver.kube.server.call import Call
from polyver.kube.server.http import HttpResponse
from polyver.kube.server.managed_fields import own, set_entries, times_kept
from polyver.kube.server.options import WriteOptions, parse_revision
from polyver.kube.server.patch import APPLY, applied_to, patch_type, patched, read_config
from polyver.kube.server.resource import rewritten
from polyver.kube.server.rules import ObjectView, ScaleView, WholeObjectView
from polyver.kube.server.webhook_admission import (
    PendingUpdate,
    mutate_create,
    mutate_update,
    pruned,
    shown_kind,
    subject_of,
    validate,
)
from polyver.kube.server.webhooks import AdmissionAttributes
from polyver.kube.store import Conflict, StoreEntry, StoreWrite
from polyver.languages.values.strings import same

__all__ = ["create_object", "patch_object", "update_object"]

# The number of times that a write without a resourceVersion is repeated after conflicts.
_MOST_TRIES = 1000
_STANDARD_FINALIZERS = ("foregroundDeletion", "kubernetes", "orphan")
_SET_BY_SERVER = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "resourceVersion",
    "selfLink",
    "uid",
)


@dataclass(frozen=True, slots=True)
class Draft:
    """The object of a write, before the admission chain.

    `owners` has the managedFields entries if the write is a server-side apply, otherwise None.
    """

    obj: Object
    owners: Sequence[Managed] | None = None
    shown: Object | None = None
    """For an update: the object as the request path shows it; `obj` is the object to store."""
    entry: StoreEntry | None = None
    """For an update: the stored object, as it was when the server read it."""


async def create_object(call: Call) -> HttpResponse:
    """Create an object (POST)."""
    options = _options(call, "CreateOptions")
    obj = await call.run(lambda: read_object(call, options.validation))
    match_namespace(call, obj)
    return await _create(call, Draft(obj), options)


@dataclass(frozen=True, slots=True)
class _New:
    """A new object after all mutating steps, with the data that the validating steps need.

    Mutating steps are `mutate` of the admission chain, and the mutating webhooks.
    """

    obj: Object
    review: AdmissionRequest
    subject: AdmissionAttributes | None
    pruned: bool
    """False if mutating webhooks changed the object, which may then contain unknown fields."""
    applied: bool
    """True if the request was a server-side apply."""


async def _create(call: Call, draft: Draft, options: WriteOptions) -> HttpResponse:
    """Create an object. If its generated name is in use, try again with another generated name."""
    obj = draft.obj
    await call.run(lambda: _dedupe_owners(call, obj))
    _check_unstored(obj)
    metadata = obj["metadata"]
    for name in _SET_BY_SERVER:
        metadata.pop(name, None)
    if call.resource.kind.namespaced:
        metadata["namespace"] = call.api_path.namespace
    await _own(call, WholeObjectView(call.resource.rules), draft, None, options)
    review = _review(call, draft, None, options)
    await call.server.admission.mutate(review)
    subject = await subject_of(call, "CREATE", name=metadata.get("name", ""))
    made = obj
    if subject is not None:
        made = await mutate_create(call, subject, obj)
    if made is not obj:
        _check_unstored(made)
        _dedupe_owners(call, made, _AFTER_ADMISSION)
        match_namespace(call, made)
    applied = draft.owners is not None
    new = _New(made, review, subject, pruned=made is obj, applied=applied)
    for last in (False,) * 7 + (True,):
        fresh = made | {"metadata": dict(made["metadata"])}
        generated = not fresh["metadata"].get("name")
        try:
            return await _create_once(call, new, fresh, options)
        except ApiError as error:
            if not generated or last or error.reason != "AlreadyExists":
                raise
    raise AssertionError("the last try returns or raises")


async def _create_once(call: Call, new: _New, obj: Object, options: WriteOptions) -> HttpResponse:
    resource, rules, review = call.resource, call.resource.rules, new.review
    metadata = obj["metadata"]
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = metadata["generateName"][:248] + call.server.new_suffix()
    metadata["uid"] = call.server.new_uid()
    metadata["creationTimestamp"] = call.server.timestamp()
    metadata.pop("generation", None)
    if rules.counts:
        metadata["generation"] = 1
    name = metadata.get("name", "")
    review.object, review.name = obj, name
    if rules.has_status and not rules.brings_status:
        obj.pop("status", None)
    await call.run(lambda: rules.prepare_create(obj))
    await call.check(lambda: _check_new(call, obj))
    if new.subject is not None:
        new.subject.name = name
        await validate(call, new.subject, WholeObjectView(rules), obj, None)
        if not new.pruned:
            await call.run(lambda: pruned(call, obj))
    await call.server.admission.validate(review)
    await call.run(lambda: _warn(call, obj, None, review))
    await call.run(lambda: rules.settle(obj, applied=new.applied))
    key = resource.key(metadata.get("namespace", ""), name)
    head, tail = await resource.stored_form(obj)
    call.server.last_check(review)
    if options.dry_run:
        if found := call.store.get(key):
            raise await _exists(call, name, found)
        return await data_answer(call, obj, 201)
    try:
        entry = await call.store.write(StoreWrite(key, head, tail, 0))
    except Conflict as error:
        raise await _exists(call, name, error.current) from None
    return await object_answer(call, entry, 201)


def _check_new(call: Call, obj: Object) -> None:
    rules, metadata = call.resource.rules, obj["metadata"]
    causes = check_metadata(
        metadata,
        namespaced=call.resource.kind.namespaced,
        name_problems=rules.name_problems,
        generating=True,
    )
    causes += _check_finalizers(call, metadata)
    _refuse(call, metadata.get("name", ""), [*causes, *rules.check_create(obj)])


async def _own(
    call: Call, part: ObjectView, draft: Draft, old: Object | None, options: WriteOptions
) -> None:
    """Record the field owners in managedFields, before admission changes the object."""
    if draft.owners is not None:
        set_entries(draft.obj, draft.owners)
    else:
        await own(call, part, draft.obj, old, options.manager)


def _check_finalizers(call: Call, metadata: Object) -> list[Cause]:
    """Return an error for each finalizer that has no domain and is not a standard finalizer.

    There are no such errors for custom resources, because objects that were stored before this rule
    existed may have such finalizers. Their clients get warnings instead.
    """
    if call.resource.kind.custom or call.resource.kind.group == "apiextensions.k8s.io":
        return []
    text = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        invalid_field(f"metadata.finalizers[{number}]", each, text)
        for number, each in enumerate(metadata.get("finalizers") or ())
        if "/" not in each and each not in _STANDARD_FINALIZERS
    ]


async def _exists(call: Call, name: str, found: StoreEntry | None) -> ApiError:
    obj = await call.resource.decode(found) if found else {"metadata": {}}
    deleting = bool(obj["metadata"].get("deletionTimestamp"))
    return already_exists(call.resource.kind, name, deleting=deleting)


def _check_unstored(obj: Object) -> None:
    if obj["metadata"].get("resourceVersion"):
        raise ApiError(500, "", "resourceVersion should not be set on objects to be created")


async def update_object(call: Call) -> HttpResponse:
    """Replace an object or one of its subresources (PUT)."""
    part = call.resource.view(call.api_path.subresource)
    options = _options(call, "UpdateOptions")
    obj = await call.run(lambda: read_object(call, options.validation))
    match_name(call, obj)
    match_namespace(call, obj)
    given = obj["metadata"].get("resourceVersion", "")

    async def change(entry: StoreEntry, old: Object) -> Draft:
        wanted, uid = obj["metadata"].get("uid"), old["metadata"].get("uid")
        if wanted and wanted != uid:
            text = (
                f"StorageError: invalid object, Code: 4, Key: {registry_key(call)}, "
                "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
                f"UID in precondition: {wanted}, UID in object meta: {uid}"
            )
            raise conflict(call.resource.kind, call.api_path.name, text)
        return Draft(part.merge(obj, old), shown=obj, entry=entry)

    if call.resource.rules.creates_on_update and call.store.get(call.key) is None:
        obj["metadata"].pop("resourceVersion", None)
        return await _create(call, Draft(obj), options)
    return await _change(call, part, options, change, retry=not given)


async def patch_object(call: Call) -> HttpResponse:
    """Patch an object or one of its subresources (PATCH), including server-side apply.

    If another write changed the object meanwhile, the patch is applied to the newer object, unless
    the patch states a resourceVersion.
    """
    part = call.resource.view(call.api_path.subresource)
    applied = patch_type(call) == APPLY
    options = _options(call, "PatchOptions", applied=applied)
    if applied:
        return await _apply(call, part, options)

    async def change(entry: StoreEntry, old: Object) -> Draft:
        # The patched object shares unchanged parts with `base`. Therefore `base` is decoded again:
        # no other object may share parts with it.
        base = part.base(await call.resource.decode(entry, kept=True))
        shown = await call.run(lambda: patched(call, base, options))
        match_name(call, shown)
        match_namespace(call, shown)
        return Draft(part.merge(shown, old), shown=shown, entry=entry)

    return await _change(call, part, options, change, retry=True, kept=True)


async def _apply(call: Call, part: ObjectView, options: WriteOptions) -> HttpResponse:
    """Answer a server-side apply: merge the configuration into the object, or create the object."""
    config = await call.run(lambda: read_config(call))

    async def change(entry: StoreEntry, old: Object) -> Draft:
        live = await call.resource.decode(entry, kept=True)
        shown, owners = await applied_to(call, part, live, config, options)
        match_name(call, shown)
        match_namespace(call, shown)
        return Draft(part.merge(shown, old), owners, shown, entry)

    if part.name or call.store.get(call.key) is not None:
        return await _change(call, part, options, change, retry=True, kept=True)
    obj, owners = await applied_to(call, part, None, config, options)
    obj["metadata"].pop("resourceVersion", None)
    match_name(call, obj)
    match_namespace(call, obj)
    try:
        return await _create(call, Draft(obj, owners), options)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
    return await _change(call, part, options, change, retry=True, kept=True)


async def _change(
    call: Call,
    part: ObjectView,
    options: WriteOptions,
    change: Callable[[StoreEntry, Object], Awaitable[Draft]],
    *,
    retry: bool,
    kept: bool = False,
) -> HttpResponse:
    for _ in range(_MOST_TRIES):
        entry = call.store.get(call.key)
        if entry is None:
            raise not_found(call.resource.kind, call.api_path.name)
        call.weight = max(call.weight, len(entry.value))
        # For patches, the converted object may come from a cache.
        old = await call.resource.decode(entry, kept=kept)
        draft = await change(entry, old)
        update = await _updated(call, part, draft, old, options)
        try:
            return await _store(call, part, entry, update, options)
        except Conflict:
            if not retry:
                break
    raise conflict(call.resource.kind, call.api_path.name, MODIFIED)


async def _updated(
    call: Call, part: ObjectView, draft: Draft, old: Object, options: WriteOptions
) -> Object:
    """Build the object to store: record field owners, run admission, set fields, and validate."""
    obj = draft.obj | {"metadata": dict(draft.obj["metadata"])}
    await call.run(lambda: _dedupe_owners(call, obj))
    draft = Draft(obj, draft.owners, draft.shown, draft.entry)
    await _own(call, part, draft, old, options)
    review = _review(call, draft, old, options, part.name)
    await call.server.admission.mutate(review)
    subject = await subject_of(
        call,
        "UPDATE",
        name=call.api_path.name,
        subresource=part.name,
        other_kind=shown_kind(part),
    )
    made = None
    if subject is not None:
        assert draft.shown is not None
        pending = PendingUpdate(draft.shown, obj, old)
        made = await mutate_update(call, subject, part, pending)
        if made is not None:
            _dedupe_owners(call, made, _AFTER_ADMISSION)
        if made is not None and isinstance(part, ScaleView):
            await _own(call, part, Draft(made), old, options)
        review.object = obj = made or obj
    assert draft.entry is not None
    _check_revision(call, obj, draft.entry)
    await call.run(lambda: _prepare_change(call, part, obj, old))
    await call.check(lambda: _check_change(call, part, obj, old))
    if subject is not None:
        await validate(call, subject, part, obj, old)
        if made is not None:
            await call.run(lambda: pruned(call, obj))
    await call.server.admission.validate(review)
    await call.run(lambda: _warn(call, obj, old, review))
    applied = draft.owners is not None
    await call.run(lambda: call.resource.rules.settle(obj, applied=applied))
    return await call.run(lambda: times_kept(old, obj))


def _prepare_change(call: Call, part: ObjectView, obj: Object, old: Object) -> None:
    """Set the metadata that only the server sets, and apply the rules of the kind."""
    metadata, before = obj["metadata"], old["metadata"]
    metadata.pop("selfLink", None)
    for name in ("creationTimestamp", "generation"):
        metadata.pop(name, None)
        if name in before:
            metadata[name] = before[name]
    # If the request contains these fields, they stay: a later check refuses a changed value.
    for name in ("uid", "deletionTimestamp", "deletionGracePeriodSeconds"):
        if metadata.get(name) is None and name in before:
            metadata[name] = before[name]
    metadata["resourceVersion"] = before["resourceVersion"]
    part.prepare(obj, old)
    if not call.resource.rules.counts or part.name == "status":
        return
    # The generation counts changes, but not changes of the metadata or of a status subresource.
    ignored = {"metadata", "status"} if call.resource.rules.has_status else {"metadata"}
    new = {key: value for key, value in obj.items() if key not in ignored}
    if not same(new, {key: value for key, value in old.items() if key not in ignored}):
        # Do not use the variable `metadata`: the rules of a kind may have replaced
        # `obj["metadata"]`.
        obj["metadata"]["generation"] = before.get("generation", 0) + 1


def _check_change(call: Call, part: ObjectView, obj: Object, old: Object) -> None:
    metadata = [
        *check_metadata_update(obj["metadata"], old["metadata"]),
        *_check_finalizers(call, obj["metadata"]),
    ]
    for text in call.resource.rules.tolerated(obj, old):
        call.warn(text)
    # As in kube-apiserver, problems of metadata are reported twice: the check for all kinds and the
    # check for this kind both report them.
    name = obj["metadata"].get("name", "")
    _refuse(call, name, [*metadata, *metadata, *part.check(obj, old)])


async def _store(
    call: Call, part: ObjectView, entry: StoreEntry, obj: Object, options: WriteOptions
) -> HttpResponse:
    head, tail = await call.resource.stored_form(obj)
    # A write that changes nothing is not stored: the revision stays, and watchers get no event.
    if b"%b%d%b" % (head, entry.revision, tail) == entry.value:
        return await _answer(call, part, entry)
    if options.dry_run:
        return await data_answer(call, part.show(obj))
    if obj["metadata"].get("deletionTimestamp") and not call.resource.rules.held(obj):
        # The last finalizer was removed, so the object is deleted. Watchers get the object in its
        # state before this write, and the answer has the revision before this write.
        last = rewritten(entry.value)
        await call.store.write(StoreWrite(entry.key, *last, entry.revision, delete=True))
        return await data_answer(call, part.show(obj))
    written = await call.store.write(StoreWrite(entry.key, head, tail, entry.revision))
    return await _answer(call, part, written)


async def _answer(call: Call, part: ObjectView, entry: StoreEntry) -> HttpResponse:
    if part.name == "scale":
        return await data_answer(call, part.show(await call.resource.decode(entry)))
    return await object_answer(call, entry)


def _check_revision(call: Call, obj: Object, entry: StoreEntry) -> None:
    given = obj["metadata"].get("resourceVersion") or ""
    if not given:
        if call.resource.rules.unconditional:
            return
        raise _must_be_specified(call)
    try:
        revision = parse_revision(given)
    except ValueError as error:
        raise ApiError(500, "", str(error)) from None
    if not revision and not call.resource.rules.unconditional:
        raise _must_be_specified(call)
    if revision and revision != entry.revision:
        raise conflict(call.resource.kind, call.api_path.name, MODIFIED)


def _must_be_specified(call: Call) -> ApiError:
    """Build the error for an update without a resourceVersion.

    Its message and details name the resource. All other errors 422 name the kind.
    """
    kind, name = call.resource.kind, call.api_path.name
    cause = invalid_field("metadata.resourceVersion", 0, "must be specified for an update")
    group = {"group": kind.group} if kind.group else {}
    details = {"name": name, "kind": kind.plural, "causes": [cause.as_detail]} | group
    text = f'{kind.resource} "{name}" is invalid: {cause.field}: {cause.message}'
    return ApiError(422, "Invalid", text, details=details)


def registry_key(call: Call) -> str:
    """Return the key under which kube-apiserver would store the object in etcd."""
    kind, api_path = call.resource.kind, call.api_path
    group = [kind.group] if kind.custom else []
    return "/".join(
        ["/registry", *group, kind.plural, *filter(None, [api_path.namespace]), api_path.name]
    )


def match_name(call: Call, obj: Object) -> None:
    """Raise an error if the name in the body is not the name in the path."""
    name, wanted = obj["metadata"].get("name") or "", call.api_path.name
    if not name:
        text = f"the name of the object ({wanted} based on URL) was undeterminable: "
        raise bad_request(f"{text}name must be provided")
    if name != wanted:
        text = f"the name of the object ({name}) does not match the name on the URL ({wanted})"
        raise bad_request(text)


def match_namespace(call: Call, obj: Object) -> None:
    metadata = obj["metadata"]
    if not call.resource.kind.namespaced:
        metadata.pop("namespace", None)
        return
    given = metadata.get("namespace") or ""
    if given and given != call.api_path.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    metadata["namespace"] = call.api_path.namespace


_AFTER_ADMISSION = " after mutating admission happens"


def _dedupe_owners(call: Call, obj: Object, when: str = "") -> None:
    owners = obj["metadata"].get("ownerReferences")
    if not owners or len(owners) == 1:
        return
    kept: dict[bytes, Object] = {}
    doubled: list[str] = []
    for owner in owners:
        written = encode_sorted(owner)
        if written in kept:
            doubled.append(owner.get("uid", ""))
        else:
            kept[written] = owner
    if doubled:
        obj["metadata"]["ownerReferences"] = list(kept.values())
        uids = ", ".join(dict.fromkeys(doubled))
        call.warn(
            f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner "
            "references in 1.20+, and may reject such requests as early as 1.24; please fix your "
            f"requests; duplicate UID(s) observed: {uids}"
        )


def _review(
    call: Call, draft: Draft, old: Object | None, options: WriteOptions, subresource: str = ""
) -> AdmissionRequest:
    metadata = draft.obj["metadata"]
    return AdmissionRequest(
        operation="UPDATE" if old else "CREATE",
        kind=call.resource.kind,
        namespace=call.api_path.namespace,
        name=metadata.get("name", ""),
        subresource=subresource,
        object=draft.obj,
        old=old,
        user=call.request.user,
        dry_run=options.dry_run,
        applied=draft.owners is not None,
    )


def _refuse(call: Call, name: str, causes: list[Cause]) -> None:
    if causes:
        raise invalid(call.resource.stored or call.resource.kind, name, causes)


def _warn(call: Call, obj: Object, old: Object | None, review: AdmissionRequest) -> None:
    for text in (*call.resource.rules.warnings(obj, old), *review.warnings):
        call.warn(text)


def _options(call: Call, name: str, *, applied: bool | None = None) -> WriteOptions:
    agent = call.request.headers.get("user-agent", "")
    return WriteOptions.read(call.query, name, agent=agent, applied=applied)
