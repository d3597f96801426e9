"""Calls the admission webhooks that match a write, and uses their answers.

Mutating webhooks are called one after the other. If one of them changed the object, earlier
webhooks with the reinvocation policy IfNeeded are called again. Validating webhooks are called
concurrently.
"""

from __future__ import annotations

import asyncio
import unicodedata
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from polyver.core.plain import Object
from polyver.kube.http.logs import Log
from polyver.kube.http.worker_threads import off_loop
from polyver.kube.objects.codec import is_larger
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.selection import selects
from polyver.kube.objects.status import ApiError, bad_request, forbidden, internal, not_found
from polyver.kube.server.conversion.reviews import WebhookCallFailed
from polyver.kube.server.http import User
from polyver.kube.server.identity import AuthorizationAttributes, account_user, may
from polyver.kube.server.resource import ResourceCatalogue, ServedResource
from polyver.kube.server.webhooks.calls import WebhookCaller
from polyver.kube.server.webhooks.configuration import (
    MUTATING,
    VALIDATING,
    AdmissionWebhook,
    Configurations,
    RequestCondition,
)
from polyver.kube.server.webhooks.reviews import (
    AdmissionResponse,
    denied,
    patched,
    read_patch,
    read_verdict,
    request_of,
    review_body,
    review_version,
)
from polyver.kube.server.webhooks.subjects import AdmissionAttributes, VersionedAttributes
from polyver.kube.store import Store
from polyver.languages import cel
from polyver.languages.values.step_budget import OverAllowance, limited
from polyver.languages.values.strings import quoted, same

__all__ = ["Webhooks"]

_SMALL = 4096
_FEW_STEPS = 10_000
_SAFE = ("None", "NoneOnDryRun")
_decode = msgspec.json.Decoder(dict[str, object]).decode


@dataclass(frozen=True, slots=True)
class _Invocation:
    """A webhook to call, with the resource and the kind in which it gets the object."""

    hook: AdmissionWebhook
    resource: ServedResource
    kind: ResourceKind


@dataclass(slots=True)
class _Rounds:
    """The webhooks that may be called a second time, because a later webhook changed the object.

    `called` has the webhooks with the reinvocation policy IfNeeded that were called since the last
    change of the object. If a webhook changes the object, they move to `again`, for the second
    round.
    """

    called: list[AdmissionWebhook] = field(default_factory=list)
    again: list[AdmissionWebhook] = field(default_factory=list)
    changed: bool = False

    def note(self, hook: AdmissionWebhook, *, changed: bool) -> None:
        if changed:
            self.again += self.called
            self.called = []
            self.changed = True
        if hook.again:
            self.called.append(hook)


class Webhooks:
    """Calls the admission webhooks of an API server."""

    def __init__(self, store: Store, catalogue: ResourceCatalogue) -> None:
        self._store = store
        self._catalogue = catalogue
        self._configurations = Configurations(store)
        self._calls = WebhookCaller()

    @property
    def idle(self) -> bool:
        """True if it is certain that no webhook is configured.

        After a change of a configuration, it is False until the configurations are read again.
        """
        return not self._configurations.stale and not self._configurations.found

    async def any(self) -> bool:
        """Report whether at least one webhook is configured."""
        if self._configurations.stale:
            await self._refresh()
        return self._configurations.found

    def _hooks(self, plural: str) -> Sequence[AdmissionWebhook]:
        return self._configurations.of(plural)

    async def _refresh(self) -> None:
        await self._configurations.refresh()
        await self._calls.keep((*self._hooks(MUTATING), *self._hooks(VALIDATING)))

    async def close(self) -> None:
        """Close all connections to webhooks."""
        self._configurations.close()
        await self._calls.keep(())

    async def mutate(self, subject: AdmissionAttributes) -> None:
        """Call the mutating webhooks one after the other, and apply their changes."""
        hooks = self._hooks(MUTATING)
        if not hooks or subject.exempt:
            return
        versions, rounds = VersionedAttributes(subject, _unshown_twice), _Rounds()
        await self._round(subject, versions, hooks, rounds)
        if rounds.changed:
            await self._round(subject, versions, hooks, rounds, again=True)
        await versions.settle()

    async def _round(
        self,
        subject: AdmissionAttributes,
        versions: VersionedAttributes,
        hooks: Sequence[AdmissionWebhook],
        rounds: _Rounds,
        *,
        again: bool = False,
    ) -> None:
        for hook in hooks:
            found = await self._match(subject, versions, hook)
            # The second round calls only webhooks that were called in the first round.
            if found is None or (again and not any(hook is each for each in rounds.again)):
                continue
            changed = False
            try:
                changed = await self._change(subject, versions, found)
            except WebhookCallFailed as error:
                _passed_over(hook, error)
            rounds.note(hook, changed=changed)

    async def _change(
        self, subject: AdmissionAttributes, versions: VersionedAttributes, found: _Invocation
    ) -> bool:
        """Call one mutating webhook; return True if it changed the object."""
        verdict = await self._verdict(subject, versions, found, mutating=True)
        operations = read_patch(verdict.patch, verdict.patch_type)
        if not operations:
            return False
        before = (await versions.show(found.kind)).object
        if before is None:
            message = "attempted to modify the object, which is not supported for this operation"
            raise internal(f"admission webhook {quoted(found.hook.name)} {message}")

        def change() -> tuple[Object, bool]:
            after = patched(before, operations, found.resource, found.kind)
            changed = not same(before, after)
            if found.kind is found.resource.kind:
                found.resource.rules.default(after)
            return after, changed

        large = len(verdict.patch) > _SMALL or is_larger(before, _SMALL)
        after, changed = await off_loop(change) if large else change()
        versions.change(found.kind, after)
        return changed

    async def validate(self, subject: AdmissionAttributes) -> None:
        """Call the validating webhooks concurrently; raise an error if one refuses the write."""
        hooks = self._hooks(VALIDATING)
        if not hooks or subject.exempt:
            return
        versions = VersionedAttributes(subject, _unshown)
        found = [await self._match(subject, versions, hook) for hook in hooks]
        matching = [each for each in found if each is not None]
        for each in matching:
            await versions.show(each.kind)
        outcomes = await asyncio.gather(
            *(self._accept(subject, versions, each) for each in matching), return_exceptions=True
        )
        for outcome in outcomes:
            if outcome is not None:
                raise outcome

    async def _accept(
        self, subject: AdmissionAttributes, versions: VersionedAttributes, found: _Invocation
    ) -> None:
        try:
            await self._verdict(subject, versions, found, mutating=False)
        except WebhookCallFailed as error:
            _passed_over(found.hook, error)

    async def _verdict(
        self,
        subject: AdmissionAttributes,
        versions: VersionedAttributes,
        found: _Invocation,
        *,
        mutating: bool,
    ) -> AdmissionResponse:
        """Call a webhook and return its answer; if it refuses the write, raise `ApiError`."""
        hook = found.hook
        if subject.dry_run and hook.side_effects not in _SAFE:
            raise bad_request(f"admission webhook {quoted(hook.name)} does not support dry run")
        version, uid = review_version(hook.versions), str(uuid.uuid4())
        shown = await versions.show(found.kind)
        request = request_of(subject, found.kind, found.resource.kind, shown)
        answer = await self._calls.call(hook, review_body(request, uid, version))
        verdict = read_verdict(answer, uid=uid, version=version, mutating=mutating)
        for text in verdict.warnings:
            if _fits_header(text):
                subject.warn(text)
        if not verdict.allowed:
            raise denied(hook.name, verdict.status)
        return verdict

    async def _match(
        self, subject: AdmissionAttributes, versions: VersionedAttributes, hook: AdmissionWebhook
    ) -> _Invocation | None:
        """Return how to call a webhook for the write; None if it is not called for this write."""
        try:
            if not self._selected(subject, versions, hook):
                return None
            problem = None
        except ApiError as error:
            problem = error  # raised below, but only if the rules of the webhook match
        found = self._invocation(subject, hook)
        if found is None:
            return None
        if problem is not None:
            raise problem
        if hook.conditions and not await self._conditions_hold(subject, versions, found):
            return None
        return found

    def _selected(
        self, subject: AdmissionAttributes, versions: VersionedAttributes, hook: AdmissionWebhook
    ) -> bool:
        if _selects_some(hook.namespaces) and (subject.namespace or subject.is_namespace):
            labels = self._namespace_labels(subject, versions)
            if not selects(hook.namespaces, labels):
                return False
        if not _selects_some(hook.objects):
            return True
        objects = (versions.current, subject.old)
        return any(selects(hook.objects, _labels(each)) for each in objects if each is not None)

    def _namespace_labels(
        self, subject: AdmissionAttributes, versions: VersionedAttributes
    ) -> Mapping[str, str]:
        current = versions.current
        if subject.is_namespace and not subject.subresource and current is not None:
            return _labels(current)
        namespaces = self._catalogue.get("", "v1", "namespaces")
        assert namespaces is not None
        entry = self._store.get(namespaces.key("", subject.namespace))
        if entry is None:
            raise not_found(namespaces.kind, subject.namespace)
        return _labels(_decode(entry.value))

    def _invocation(
        self, subject: AdmissionAttributes, hook: AdmissionWebhook
    ) -> _Invocation | None:
        namespaced = bool(subject.namespace) and not subject.is_namespace

        def matches(rule_kind: ResourceKind) -> bool:
            return any(
                rule.matches(
                    rule_kind, subject.operation, subject.subresource, namespaced=namespaced
                )
                for rule in hook.rules
            )

        if matches(subject.resource.kind):
            return _Invocation(hook, subject.resource, subject.kind)
        if hook.exact:
            return None
        for resource in self._equivalents(subject.resource):
            if matches(resource.kind):
                return _Invocation(hook, resource, subject.other_kind or resource.kind)
        return None

    def _equivalents(self, resource: ServedResource) -> Sequence[ServedResource]:
        """Return the resources that serve the same stored objects in another version or group."""
        return [
            each
            for each in self._catalogue
            if each.prefix == resource.prefix and each.kind != resource.kind
        ]

    async def _conditions_hold(
        self, subject: AdmissionAttributes, versions: VersionedAttributes, found: _Invocation
    ) -> bool:
        shown = await versions.show(found.kind)
        request = request_of(subject, found.kind, found.resource.kind, shown)
        variables = cel.ConditionVariables(request, _answers(subject.user), _question(subject))
        problems: list[str] = []
        for condition in found.hook.conditions:
            try:
                if not await _holds(condition, variables):
                    return False
            except cel.ConditionFailed as error:
                problems.append(str(error))
        if not problems or found.hook.ignored:
            return not problems
        messages = list(dict.fromkeys(problems))
        text = messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"
        raise forbidden(subject.resource.kind, subject.name, text)


async def _holds(condition: RequestCondition, variables: cel.ConditionVariables) -> bool:
    """Report whether a condition holds.

    It is evaluated on the event loop or, if this takes many steps, in a worker thread.
    """
    try:
        with limited(_FEW_STEPS):
            return condition.holds(variables)
    except OverAllowance:
        return await off_loop(lambda: condition.holds(variables))


def _unshown(problem: ApiError) -> ApiError:
    """Build the error for an object that cannot be converted to the version of a webhook."""
    return internal(problem.message)


def _unshown_twice(problem: ApiError) -> ApiError:
    """Build the error of `_unshown` for a mutating webhook.

    kube-apiserver wraps the error of the conversion twice if the webhook is mutating.
    """
    return internal(internal(problem.message).message)


def _passed_over(hook: AdmissionWebhook, error: WebhookCallFailed) -> None:
    """Log a failed call of a webhook if its failure policy is Ignore; otherwise raise an error."""
    message = f"failed calling webhook {quoted(hook.name)}: {error}"
    if not hook.ignored:
        raise internal(message) from None
    Log().warning("a failed webhook was ignored", webhook=hook.name, problem=str(error))


def _fits_header(text: str) -> bool:
    """Report whether a warning can be sent in a header.

    As in kube-apiserver, a warning with control characters is dropped.
    """
    return not any(unicodedata.category(char) == "Cc" for char in text)


def _selects_some(selector: Mapping[str, object]) -> bool:
    return bool(selector.get("matchLabels") or selector.get("matchExpressions"))


def _labels(obj: Mapping[str, object]) -> Mapping[str, str]:
    metadata = obj.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return labels if isinstance(labels, dict) else {}


def _question(subject: AdmissionAttributes) -> cel.AuthorizationQuery:
    kind = subject.resource.kind
    return cel.AuthorizationQuery(
        group=kind.group,
        resource=kind.plural,
        subresource=subject.subresource,
        namespace=subject.namespace,
        name=subject.name,
    )


def _answers(user: User) -> Callable[[cel.AuthorizationQuery], bool]:
    def answer(query: cel.AuthorizationQuery) -> bool:
        who = account_user(*query.account, "", {}) if query.account else user
        wanted = AuthorizationAttributes(
            query.verb,
            group=query.group,
            resource=query.resource,
            subresource=query.subresource,
            namespace=query.namespace,
            name=query.name,
            path=query.path,
        )
        return may(who, wanted)

    return answer
