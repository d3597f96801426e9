"""Certificates in a Secret that several replicas share and that the leader rotates.

Every step of the rotation is a write to the Secret. The write fails if another replica has written
since the Secret was read. So replicas agree on each step even if two of them act as the leader.
Each replica records in an annotation of the Secret which certificate it serves. The leader drops an
old CA when all replicas serve a certificate of the new CA, or after a day.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import datetime
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from polyver.client import Change, Client, Clock, GroupVersionResource, Informer, SystemClock, find
from polyver.client.field_managers import POLYVER
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.kube.http.logs import Log
from polyver.kube.objects.status import ApiError
from polyver.webhook.bundles import Bundles
from polyver.webhook.certificate_state import CertificateDocument
from polyver.webhook.rotation import SETTLED_AFTER, Observe, Publish, Step, plan
from polyver.webhook.served_certificate import OLD_PAIR, LoadedPair, PairUnusable, load_pair

__all__ = ["SecretDocument", "SharedPairs", "StoredDocument"]

SECRETS = GroupVersionResource("", "v1", "secrets")
SEEN = "seen.polyver.dev/"
"""The prefix of the annotations in which replicas record the certificate that they serve.

Each replica has its own annotation. The value is the serial number of the certificate, and the
time.
"""
NOTED_FOR = datetime.timedelta(days=2)
"""The age up to which a replica's annotation counts. A running replica renews it earlier."""
_NOTED_AGAIN = NOTED_FOR / 4
_DOCUMENT = "certificates.json"
_MOST_STEPS = 16
_MOST_RACES = 64
_LOOK_EVERY = 60.0
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """The document with the CAs and the certificate, and the Secret from which it was read."""

    kept: CertificateDocument
    secret: Object

    @property
    def revision(self) -> int:
        """The resourceVersion as a number, to compare states: a watch may report an older state."""
        return int(self.secret["metadata"]["resourceVersion"])

    @property
    def notes(self) -> Mapping[str, str]:
        annotations = self.secret["metadata"].get("annotations") or {}
        return {key: value for key, value in annotations.items() if key.startswith(SEEN)}

    def shown(self, now: datetime.datetime) -> bool:
        """Report whether all replicas with a recent annotation serve this certificate."""
        serials = [serial for serial, at in map(_note, self.notes.values()) if now - at < NOTED_FOR]
        leaf = self.kept.leaf
        return leaf is not None and bool(serials) and set(serials) == {leaf.pair.serial}

    def outdated(self, now: datetime.datetime) -> list[str]:
        """Return the names of annotations that are so old that their replicas must be gone."""
        return [key for key, each in self.notes.items() if now - _note(each)[1] >= NOTED_FOR]


def _note(text: str) -> tuple[str, datetime.datetime]:
    serial, _, time = text.partition(" ")
    try:
        return serial, datetime.datetime.fromisoformat(time).astimezone(datetime.UTC)
    except ValueError:  # not written by polyver; removed soon
        return serial, datetime.datetime.min.replace(tzinfo=datetime.UTC)


class SecretDocument:
    """Reads and writes the document in one Secret; callers handle conflicts between replicas."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self._client = client
        self.namespace = namespace
        self.name = name

    def __str__(self) -> str:
        return f"Secret {self.namespace}/{self.name}"

    async def read(self) -> StoredDocument | None:
        secret = await find(self._client, SECRETS, self.name, self.namespace)
        return None if secret is None else self.held(secret)

    def held(self, secret: Object) -> StoredDocument:
        try:
            content = (secret.get("data") or {})[_DOCUMENT]
            return StoredDocument(CertificateDocument.decode(base64.b64decode(content)), secret)
        except (KeyError, ValueError):
            raise PairUnusable(
                f"{self} has unexpected content",
                hint="choose another name, or delete it to create a new one",
            ) from None

    async def bundle(self) -> bytes:
        """Return the current CA bundle."""
        held = await self.read()
        if held is None:
            raise PairUnusable(f"there is no {self}")
        return held.kept.bundle

    async def create(self, kept: CertificateDocument) -> None:
        made = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "type": "Opaque",
            "data": _data(kept),
        }
        await self._client.create(SECRETS, made, manager=POLYVER)

    async def replace(self, held: StoredDocument, kept: CertificateDocument) -> None:
        """Write the document `kept`; fail if the Secret has changed since `held` was read."""
        await self._client.update(SECRETS, held.secret | {"data": _data(kept)}, manager=POLYVER)

    async def annotate(self, notes: Mapping[str, str | None]) -> None:
        change = {"metadata": {"annotations": dict(notes)}}
        await self._client.patch(SECRETS, self.name, self.namespace, change=change, manager=POLYVER)

    def informer(
        self, on_change: Callable[[Object | None], None], clock: Clock
    ) -> Informer[Object]:
        """Build an informer that calls `on_change` with the Secret (None if it was deleted)."""

        async def handle(change: Change[Object]) -> None:
            on_change(change.after)

        return Informer(
            self._client,
            SECRETS,
            keep=lambda obj: obj,
            handler=handle,
            namespace=self.namespace,
            fields=f"metadata.name={self.name}",
            clock=clock,
        )


def _data(kept: CertificateDocument) -> dict[str, str]:
    contents = {_DOCUMENT: kept.encode(), "ca.crt": kept.bundle}
    if kept.leaf is not None:
        contents["tls.crt"] = kept.leaf.pair.certificate.encode()
        contents["tls.key"] = kept.leaf.pair.key.encode()
    return {name: base64.b64encode(content).decode() for name, content in contents.items()}


class SharedPairs:
    """Serves the shared certificate in one replica; in the leader, also rotates it."""

    def __init__(
        self,
        document: SecretDocument,
        bundles: Bundles,
        names: Sequence[str],
        *,
        replica: str,
        leads: Callable[[], bool],
        clock: Clock | None = None,
    ) -> None:
        """Create the source of one replica; `leads` reports whether this replica is the leader."""
        self._document = document
        self._bundles = bundles
        self._names = names
        self._key = SEEN + (replica if _QUALIFIED.fullmatch(replica) else _digest(replica))
        self._leads = leads
        self._clock = clock or SystemClock()
        self._wake = asyncio.Event()
        self._held: StoredDocument | None = None
        self._loaded: LoadedPair | None = None

    @property
    def shown(self) -> LoadedPair:
        assert self._loaded is not None
        return self._loaded

    @property
    def trust(self) -> str:
        return f"CA bundle in {self._document}"

    async def start(self) -> None:
        """Load the certificate.

        If the Secret does not exist yet, this replica creates it with a certificate, even if it is
        not the leader: no client trusts an older certificate.
        """
        held = await self._document.read()
        if held is None or held.kept.leaf is None:
            await self.advance(self._clock.now())
            held = await self._document.read()
        if held is None or held.kept.leaf is None:
            raise PairUnusable(f"{self._document} could not be created")
        self._take(held)
        await self.note(self._clock.now())

    async def follow(self, log: Log) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._document.informer(self._secret_changed, self._clock).run())
            group.create_task(self._bundles.watch(self._wake.set, clock=self._clock))
            group.create_task(self._keep_on(log))

    # Serving.

    def _secret_changed(self, secret: Object | None) -> None:
        with contextlib.suppress(PairUnusable):  # the next look reports it
            if secret is not None:
                self._take(self._document.held(secret))
        self._wake.set()

    def _take(self, held: StoredDocument) -> None:
        leaf = held.kept.leaf
        if leaf is None or (self._held is not None and held.revision < self._held.revision):
            return
        content = leaf.pair.certificate.encode(), leaf.pair.key.encode()
        if self._loaded is None or self._loaded.content != content:
            self._loaded = load_pair(*content, source=str(self._document))
        self._held = held

    async def note(self, now: datetime.datetime) -> None:
        """Record in the Secret which certificate this replica serves.

        Do nothing if a recent annotation already states it.
        """
        held = self._held
        if held is None or held.kept.leaf is None:
            return
        serial, at = _note(held.notes.get(self._key, ""))
        if serial != held.kept.leaf.pair.serial or now - at >= _NOTED_AGAIN:
            seen = f"{held.kept.leaf.pair.serial} {now.astimezone(datetime.UTC).isoformat()}"
            await self._document.annotate({self._key: seen})

    # Rotation.

    async def _keep_on(self, log: Log) -> None:
        """Call `look` at regular intervals and after changes.

        These are changes of the Secret, of CRDs, or of webhook configurations.
        """
        reported = ""
        while True:
            try:
                await self.look(log)
                reported = ""
            except PolyverError as error:
                if str(error) != reported:
                    log.warning(OLD_PAIR, reason=str(error))
                reported = str(error)
            except Exception as error:
                log.failure(OLD_PAIR, error)
            timer = self._clock.call_later(_LOOK_EVERY, self._wake.set)
            await self._wake.wait()
            self._wake.clear()
            timer.cancel()

    async def look(self, log: Log) -> None:
        """Load the current certificate, and record in the Secret that this replica serves it.

        If this replica is the leader, it first takes the steps of the rotation that are due.
        """
        now = self._clock.now()
        if self._leads():
            for step in await self.advance(now):
                log.info("certificates rotated", step=type(step).__name__.lower())
            if repaired := await self._bundles.publish():
                log.info("CA bundle changed", objects=repaired)
            await self._tidy(now)
        if (held := await self._document.read()) is not None:
            self._take(held)
            await self.note(now)

    async def advance(self, now: datetime.datetime) -> list[Step]:
        """Take all steps of the rotation that are due; return the steps that this replica took."""
        taken: list[Step] = []
        for _ in range(_MOST_RACES):
            try:
                step = await self._step(now)
            except ApiError as error:
                if error.code != 409:
                    raise
                continue  # another replica wrote, so the next step may differ
            if step is None or len(taken) == _MOST_STEPS:
                break
            taken.append(step)
        return taken

    async def _step(self, now: datetime.datetime) -> Step | None:
        held = await self._document.read()
        if held is None and self._held is not None:
            # The Secret was deleted. This replica still has the document, and restores the Secret.
            await self._document.create(self._held.kept)
            return await self._step(now)
        kept = held.kept if held else CertificateDocument()
        await self._doubt(kept)
        step = plan(kept.state(shown=held is not None and held.shown(now)), self._names, now)
        if step is None or not await self._act(kept, step, now):
            return None
        kept.take(step, self._names, now)
        await (self._document.replace(held, kept) if held else self._document.create(kept))
        return step

    async def _doubt(self, kept: CertificateDocument) -> None:
        """Let the rotation publish the bundle again, if an object needs the bundle and lacks it."""
        if kept.observed and kept.is_to_switch and not await self._bundles.observed(kept.bundle):
            kept.published, kept.observed = [], False

    async def _act(self, kept: CertificateDocument, step: Step, now: datetime.datetime) -> bool:
        """Do the work of a step that is not a change of the document, such as to publish a bundle.

        Return False if the rotation must wait before this step.
        """
        match step:
            case Publish():
                await self._bundles.publish()
            case Observe():
                settled = kept.lasting(now) >= SETTLED_AFTER
                return settled and await self._bundles.observed(kept.bundle)
        return True

    async def _tidy(self, now: datetime.datetime) -> None:
        held = await self._document.read()
        if held is not None and (gone := held.outdated(now)):
            await self._document.annotate(dict.fromkeys(gone))


def _digest(replica: str) -> str:
    return hashlib.sha256(replica.encode()).hexdigest()[:32]
