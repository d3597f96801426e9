"""Service accounts as users: creates their tokens (TokenRequest), and checks these tokens.

A token is valid only while its service account exists and, if the token is bound to an object,
while this object exists. The account and the object must still have the uids that the token states.
The server reads the store for each request with a token, so a deletion takes effect immediately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec

from polyver.core.plain import Object
from polyver.kube.objects.builtin import shape_of
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import (
    Cause,
    bad_request,
    conflict,
    invalid,
    invalid_field,
    not_found,
)
from polyver.kube.objects.tables import builtin_printer
from polyver.kube.server.answers import data_answer
from polyver.kube.server.bodies import read_object
from polyver.kube.server.call import Call, ServerContext
from polyver.kube.server.http import HttpResponse, User
from polyver.kube.server.identity import (
    AUDIENCE,
    AuthenticationResult,
    account_user,
    shared_audiences,
)
from polyver.kube.server.managed_fields import own
from polyver.kube.server.options import WriteOptions
from polyver.kube.server.resource import ServedResource
from polyver.kube.server.rules import KindRules, WholeObjectView
from polyver.kube.server.tokens import BadToken, ClaimReference, Claims, PrivateClaims, TokenSigner
from polyver.kube.server.webhook_admission import mutate_create, subject_of, validate
from polyver.kube.server.write import match_namespace
from polyver.languages.values.strings import quoted

__all__ = ["Accounts"]

_SHORTEST, _LONGEST, _USUAL = 600, 1 << 32, 3600
_GRACE = 60.0
"""An object still counts as existing for this number of seconds after its deletion began."""
_BOUND = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}
_GONE = "service account token has been invalidated"
_KIND = ResourceKind(
    "authentication.k8s.io", "v1", "TokenRequest", "TokenRequest", "tokenrequest", namespaced=True
)
_decoder = msgspec.json.Decoder()


class _RequestRules(KindRules):
    def default(self, obj: Object) -> None:
        if obj["spec"].get("expirationSeconds") is None:
            obj["spec"]["expirationSeconds"] = _USUAL

    def check_create(self, obj: Object) -> list[Cause]:
        return list(_check(obj["spec"]))


def _check(spec: Object) -> Iterator[Cause]:
    if found := spec.get("attestations"):
        text = "attestations may only be specified with a webhook bound object reference"
        yield invalid_field("spec.attestations", found, text)
        return
    seconds, field = spec["expirationSeconds"], "spec.expirationSeconds"
    if seconds < _SHORTEST:
        yield invalid_field(field, seconds, "may not specify a duration less than 10 minutes")
    if seconds > _LONGEST:
        yield invalid_field(field, seconds, "may not specify a duration larger than 2^32 seconds")


class Accounts:
    """Creates tokens for service accounts, and checks these tokens."""

    def __init__(self, server: ServerContext, key: Callable[[], bytes]) -> None:
        self._server = server
        self._signer = TokenSigner(key)
        shape = shape_of(_KIND.group, _KIND.version, _KIND.kind)
        self._requests = ServedResource(
            _KIND,
            _RequestRules(),
            builtin_printer(_KIND.group, _KIND.kind),
            shape=shape,
            shapes={_KIND.api_version: shape},
        )

    async def request(self, call: Call) -> HttpResponse:
        """Answer a TokenRequest: create a token for the service account in the path."""
        subject = await subject_of(
            call, "CREATE", name=call.api_path.name, subresource="token", other_kind=_KIND
        )
        call = replace(call, resource=self._requests)
        agent = call.request.headers.get("user-agent", "")
        options = WriteOptions.read(call.query, "CreateOptions", agent=agent)
        token_request = await call.run(lambda: read_object(call, options.validation))
        match_namespace(call, token_request)
        account = self._account(call, token_request)
        await own(
            call,
            WholeObjectView(self._requests.rules, "token"),
            token_request,
            None,
            options.manager,
        )
        if subject is not None:
            token_request = await mutate_create(call, subject, token_request)
        metadata, spec = token_request["metadata"], token_request["spec"]
        metadata |= {"name": call.api_path.name, "uid": account["metadata"]["uid"]}
        metadata["creationTimestamp"] = self._server.timestamp()
        spec["audiences"] = spec.get("audiences") or [AUDIENCE]
        if causes := self._requests.rules.check_create(token_request):
            raise invalid(_KIND, "", causes)
        if subject is not None:
            await validate(
                call, subject, WholeObjectView(self._requests.rules), token_request, None
            )
        claims = self._claims(account, spec)
        until = self._server.timestamp(ahead=spec["expirationSeconds"])
        status = {"token": self._signer.sign(claims), "expirationTimestamp": until}
        return await data_answer(call, token_request | {"status": status}, 201)

    def _account(self, call: Call, token_request: Object) -> Object:
        name, metadata = call.api_path.name, token_request["metadata"]
        if metadata.get("name", name) != name:
            text = "must match the service account name if specified"
            cause = invalid_field("metadata.name", metadata["name"], text)
            raise invalid(_KIND, name, [cause])
        account = self._needed("serviceaccounts", call.api_path.namespace, name)
        own_uid = account["metadata"]["uid"]
        if (uid := metadata.get("uid", own_uid)) != own_uid:
            text = f"the UID in the token request ({uid}) does not match"
            raise conflict(_KIND, name, f"{text} the UID of the service account ({own_uid})")
        return account

    def _claims(self, account: Object, spec: Object) -> Claims:
        metadata, now = account["metadata"], int(self._server.now().timestamp())
        name, namespace = metadata["name"], metadata["namespace"]
        return Claims(
            aud=tuple(spec["audiences"]),
            exp=now + spec["expirationSeconds"],
            iat=now,
            jti=self._server.new_uid(),
            about=PrivateClaims(
                namespace=namespace,
                serviceaccount=ClaimReference(name, metadata["uid"]),
                **self._bound(namespace, name, spec.get("boundObjectRef")),
            ),
            nbf=now,
            sub=f"system:serviceaccount:{namespace}:{name}",
        )

    def _bound(self, namespace: str, account: str, ref: Object | None) -> dict[str, ClaimReference]:
        """Build the claims about the object to which a token will be bound; empty if `ref` is None.

        Raise an error if this object does not exist.
        """
        if ref is None:
            return {}
        kind, (group, _, version) = ref.get("kind", ""), ref.get("apiVersion", "").rpartition("/")
        if group or kind not in _BOUND:
            text = f"{group}/{version}, Kind={kind}"
            raise bad_request(f"cannot bind token to object of type {text}")
        name = ref.get("name", "")
        found = self._needed(_BOUND[kind], "" if kind == "Node" else namespace, name)
        bound = {kind.lower(): _named(found)}
        if kind == "Pod":
            bound |= self._node_of(found, account)
        if (uid := ref.get("uid")) and uid != found["metadata"]["uid"]:
            text = f"the UID in the bound object reference ({uid}) does not match the UID in record"
            problem = f"{text}. The object might have been deleted and then recreated"
            raise conflict(ResourceKind("", "", kind, kind, "", namespaced=True), name, problem)
        return bound

    def _node_of(self, pod: Object, account: str) -> dict[str, ClaimReference]:
        if pod["spec"].get("serviceAccountName") != account:
            text = f"cannot bind token for serviceaccount {quoted(account)} to pod"
            raise bad_request(f"{text} running with different serviceaccount name.")
        if not (name := pod["spec"].get("nodeName")):
            return {}
        node = self._find("nodes", "", name)
        return {"node": _named(node) if node else ClaimReference(name)}

    def _needed(self, plural: str, namespace: str, name: str) -> Object:
        found = self._find(plural, namespace, name)
        if found is None:
            raise not_found(ResourceKind("", "v1", "", plural, "", namespaced=True), name)
        return found

    def _find(self, plural: str, namespace: str, name: str) -> Object | None:
        resource = self._server.catalogue.get("", "v1", plural)
        assert resource is not None
        entry = self._server.store.get(resource.key(namespace, name))
        found: Object | None = _decoder.decode(entry.value) if entry else None
        return found

    def verify(self, token: str, audiences: Sequence[str]) -> AuthenticationResult:
        """Find the user of a token. The token must be meant for at least one of the audiences."""
        try:
            claims = self._signer.read(token)
            shared = _shared(audiences, claims.aud)
            self._check(claims)
        except BadToken as error:
            return AuthenticationResult(problem=str(error))
        return AuthenticationResult(_user(claims), shared)

    def _check(self, claims: Claims) -> None:
        now = self._server.now().timestamp()
        if now > claims.exp:
            raise BadToken("service account token has expired")
        if now < claims.nbf:
            raise BadToken("service account token is not valid yet")
        about = claims.about
        self._check_account(about)
        if about.secret:
            self._check_bound("secret", "secrets", about.namespace, about.secret)
        if about.pod:
            self._check_bound("pod", "pods", about.namespace, about.pod)
        elif about.node:
            self._check_bound("node", "nodes", "", about.node)

    def _check_account(self, about: PrivateClaims) -> None:
        name, claimed = about.serviceaccount.name, about.serviceaccount.uid
        found = self._find("serviceaccounts", about.namespace, name)
        if found is None:
            raise BadToken(f"serviceaccounts {quoted(name)} not found")
        if self._is_gone(found):
            raise BadToken(f"service account {about.namespace}/{name} has been deleted")
        if (uid := found["metadata"]["uid"]) != claimed:
            raise BadToken(f"service account UID ({uid}) does not match claim ({claimed})")

    def _check_bound(self, kind: str, plural: str, namespace: str, bound: ClaimReference) -> None:
        found = self._find(plural, namespace, bound.name)
        if found is None or self._is_gone(found):
            raise BadToken(_GONE)
        if (uid := found["metadata"]["uid"]) != bound.uid:
            text = f"{kind} UID ({uid}) does not match service account {kind} ref claim"
            raise BadToken(f"{text} ({bound.uid})")

    def _is_gone(self, obj: Object) -> bool:
        """Report whether the deletion of an object began more than 60 seconds ago (`_GRACE`)."""
        since = obj["metadata"].get("deletionTimestamp")
        return bool(since) and since < self._server.timestamp(ahead=-_GRACE)


def _named(obj: Mapping[str, Mapping[str, str]]) -> ClaimReference:
    return ClaimReference(obj["metadata"]["name"], obj["metadata"]["uid"])


def _user(claims: Claims) -> User:
    about = claims.about
    extra = {"credential-id": f"JTI={claims.jti}"}
    for kind, named in (("pod", about.pod), ("node", about.node)):
        if named:
            extra |= {f"{kind}-name": named.name} | (
                {f"{kind}-uid": named.uid} if named.uid else {}
            )
    return account_user(about.namespace, about.serviceaccount.name, about.serviceaccount.uid, extra)


def _shared(requested: Sequence[str], meant: Sequence[str]) -> tuple[str, ...]:
    if shared := shared_audiences(requested, meant):
        return shared
    text = f"token audiences [{_listed(meant)}] is invalid"
    raise BadToken(f"{text} for the target audiences [{_listed(requested or (AUDIENCE,))}]")


def _listed(audiences: Sequence[str]) -> str:
    return " ".join(map(quoted, audiences))
