"""Reviews: requests about permissions or identities, which are answered but not stored."""

from __future__ import annotations

from polyver.core.plain import Object
from polyver.kube.objects.status import bad_request
from polyver.kube.server.answers import data_answer
from polyver.kube.server.bodies import read_object
from polyver.kube.server.call import Call
from polyver.kube.server.http import HttpResponse, User
from polyver.kube.server.identity import access_review, rules_review, self_review
from polyver.kube.server.managed_fields import own
from polyver.kube.server.options import WriteOptions
from polyver.kube.server.rules import WholeObjectView

__all__ = ["review"]

_OWNED = ("SelfSubjectAccessReview", "TokenReview")
"""The kinds of reviews whose answers contain managedFields."""


async def review(call: Call) -> HttpResponse:
    """Answer a review: return the review with the answer in its status."""
    agent = call.request.headers.get("user-agent", "")
    options = WriteOptions.read(call.query, "CreateOptions", agent=agent)
    submitted = await call.run(lambda: read_object(call, options.validation))
    if call.resource.kind.kind in _OWNED:
        await own(call, WholeObjectView(call.resource.rules), submitted, None, options.manager)
    answered = {"kind": submitted["kind"], "apiVersion": submitted["apiVersion"], "metadata": {}}
    return await data_answer(call, answered | _answered(call, submitted), 201)


def _answered(call: Call, submitted: Object) -> Object:
    user, spec = call.request.user, submitted.get("spec") or {}
    match call.resource.kind.kind:
        case "SelfSubjectAccessReview":
            owned = {"metadata": submitted["metadata"]}
            return owned | {"spec": spec, "status": access_review(user, spec)}
        case "SelfSubjectRulesReview":
            return {"spec": {}, "status": rules_review(user, spec.get("namespace", ""))}
        case "SelfSubjectReview":
            created = {"creationTimestamp": call.server.timestamp()}
            return {"metadata": created, "status": self_review(user)}
        case "TokenReview":
            owned = {"metadata": submitted["metadata"]}
            return owned | {"spec": spec, "status": _authenticated(call, spec)}
    other = User(str(spec.get("user") or ""), tuple(map(str, spec.get("groups") or ())))
    return {"spec": spec, "status": access_review(other, spec)}


def _authenticated(call: Call, spec: Object) -> Object:
    """Build the status of a TokenReview: the user of a token, or an error."""
    token = spec.get("token") or ""
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    found = call.server.authenticate(token, spec.get("audiences") or ())
    if found.user is None:
        problem = "invalid bearer token"
        problem = f"[{problem}, {found.problem}]" if found.problem else problem
        return {"user": {}, "error": problem}
    user = self_review(found.user)["userInfo"]
    return {"authenticated": True, "user": user, "audiences": list(found.audiences)}
