"""Rules for writes of Namespaces, and the check that an object's namespace can get new objects."""

from __future__ import annotations

from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError, Cause, forbidden, not_found
from polyver.kube.server.admission import AdmissionRequest
from polyver.kube.server.call import ServerContext
from polyver.kube.server.rules import KindRules
from polyver.languages.values.names import dns_label_problems

__all__ = ["NamespaceLifecycle", "NamespaceRules"]

_FINALIZER = "kubernetes"
_NAME_LABEL = "kubernetes.io/metadata.name"
_UNDELETABLE = ("default", "kube-system", "kube-public")


class NamespaceRules(KindRules):
    """Rules for writes and deletions of Namespaces.

    After a DELETE, a Namespace stays until the namespace controller has deleted all objects in it.
    """

    name_problems = staticmethod(dns_label_problems)
    answers_deletion = True
    has_status = True
    status_keeps = ()

    def prepare_create(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        finalizers = spec.get("finalizers") or []
        if _FINALIZER not in finalizers:
            finalizers = [*finalizers, _FINALIZER]
        spec["finalizers"] = finalizers
        obj["status"] = {"phase": "Active"}
        self.default(obj)  # again, because a generated name was not known before

    def prepare_update(self, obj: Object, old: Object) -> None:
        # Only the finalize subresource changes spec.finalizers.
        obj["spec"] = dict(old.get("spec", {}))

    def default(self, obj: Object) -> None:
        metadata = obj["metadata"]
        if metadata.get("name"):
            labels = metadata.get("labels") or {}
            metadata["labels"] = labels | {_NAME_LABEL: metadata["name"]}

    def held(self, obj: Object) -> bool:
        return bool(obj.get("spec", {}).get("finalizers")) or super().held(obj)

    def begin_deletion(self, obj: Object, now: str) -> None:
        obj["metadata"]["deletionTimestamp"] = now
        obj["status"] = obj.get("status", {}) | {"phase": "Terminating"}


class NamespaceLifecycle:
    """The admission link that refuses new objects in missing or terminating namespaces."""

    def __init__(self, server: ServerContext, namespaces: ResourceKind) -> None:
        self._server = server
        self._kind = namespaces

    def handles(self, kind: ResourceKind, operation: str) -> bool:
        if operation == "CREATE":
            return kind.namespaced
        return operation == "DELETE" and kind is self._kind

    async def mutate(self, review: AdmissionRequest) -> None:
        if review.operation == "DELETE":
            if review.name in _UNDELETABLE:
                raise forbidden(review.kind, review.name, "this namespace may not be deleted")
            return
        self.check(review)

    def check(self, review: AdmissionRequest) -> None:
        """Raise an error if the namespace is missing or being deleted.

        The server calls this method once more right before it stores a new object, because the
        namespace may have been deleted while the request was processed.
        """
        if not review.kind.namespaced:
            return
        name = review.namespace
        entry = self._server.store.get(f"/{self._kind.group}/{self._kind.plural}/{name}")
        if entry is None:
            raise not_found(self._kind, name)
        if name in self._server.terminating or b'"deletionTimestamp":"' in entry.value:
            raise _terminating(review)

    async def validate(self, review: AdmissionRequest) -> None:
        """Do nothing: `mutate` has checked the namespace already."""


def _terminating(review: AdmissionRequest) -> ApiError:
    namespace = review.namespace
    cause = Cause(
        "metadata.namespace", f"namespace {namespace} is being terminated", "NamespaceTerminating"
    )
    text = f"unable to create new content in namespace {namespace} because it is being terminated"
    return forbidden(review.kind, review.name, text, [cause])
