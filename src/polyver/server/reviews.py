"""Questions that are answered and not stored: what may I, who am I."""

from __future__ import annotations

from polyver.server._http import Response, User
from polyver.server.answers import data_answer
from polyver.server.bodies import read_object
from polyver.server.call import Call
from polyver.server.identity import access_review, rules_review, self_review
from polyver.server.options import WriteOptions
from polyver.server.owning import own
from polyver.server.parts import Whole
from polyver.server.rules import Object

__all__ = ["review"]


async def review(call: Call) -> Response:
    """The question with its answer as the status."""
    agent = call.request.headers.get("user-agent", "")
    options = WriteOptions.read(call.query, "CreateOptions", agent=agent)
    asked = read_object(call, options.validation)
    if call.resource.kind.kind == "SelfSubjectAccessReview":
        await own(call, Whole(call.resource.rules), asked, None, options.manager)
    answered = {"kind": asked["kind"], "apiVersion": asked["apiVersion"], "metadata": {}}
    return data_answer(call, answered | _answered(call, asked), 201)


def _answered(call: Call, asked: Object) -> Object:
    user, spec = call.request.user, asked.get("spec") or {}
    match call.resource.kind.kind:
        case "SelfSubjectAccessReview":
            owned = {"metadata": asked["metadata"]}
            return owned | {"spec": spec, "status": access_review(user, spec)}
        case "SelfSubjectRulesReview":
            return {"spec": {}, "status": rules_review(user, spec.get("namespace", ""))}
        case "SelfSubjectReview":
            created = {"creationTimestamp": call.server.timestamp()}
            return {"metadata": created, "status": self_review(user)}
        case "TokenReview":
            return {"spec": spec, "status": _authenticated(call, str(spec.get("token") or ""))}
    other = User(str(spec.get("user") or ""), tuple(map(str, spec.get("groups") or ())))
    return {"spec": spec, "status": access_review(other, spec)}


def _authenticated(call: Call, token: str) -> Object:
    """Whose token it is."""
    user = call.server.authenticate(token)
    if user is None:
        return {"user": {}, "error": "[invalid bearer token, unknown]"}
    return {"authenticated": True, "user": self_review(user)["userInfo"]}
