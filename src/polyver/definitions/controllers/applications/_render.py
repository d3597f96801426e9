"""Rendering of applications in worker threads, with a deadline and a concurrency limit."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final

from polyver.client import Client, Clock, GroupVersionResource, find
from polyver.core import PolyverError
from polyver.core.plain import Object, ReadOnlyObject
from polyver.definitions.kinds import GROUP, REVISIONS, STORED
from polyver.definitions.publishing import known_revision
from polyver.definitions.rendering import Engines, Rendered, cluster_version, render, revisions_of
from polyver.kube.http.worker_threads import DaemonThreadPool

__all__ = ["DEADLINE", "Renderer", "RenderingTimeout"]

DEADLINE: Final = 20.0
"""Maximum seconds for rendering a component with its traits."""
_PAUSE: Final = 60.0
"""After a template timed out, polyver does not render it again for this number of seconds."""
_REVISIONS = GroupVersionResource(GROUP, STORED, REVISIONS.names.plural)
_KEPT: Final = 1000
_HERE, _PROGRAMS = 2, 4
"""Maximum numbers of concurrent renderings, for two groups of templates.

The first number is for templates whose engines all run in this process. The second number is for
templates with an engine that starts programs.
"""
_BUILT_IN: Final = frozenset({"gotemplate"})
_LONGEST: Final = 500
_HINT: Final = "it is retried in a minute; simplify the template"

_Name = tuple[str, str]
"""Namespace and name of a DefinitionRevision."""


class RenderingTimeout(PolyverError):
    """A rendering took too long, or was not started because its template timed out before."""

    reason = "TookTooLong"


class EngineBroke(PolyverError):
    """A template engine raised an unexpected exception."""

    reason = "EngineBroke"


class _Stopwatch:
    """Measures how long the templates of the current component take.

    The rendering thread records the times, and another thread reads them.
    """

    def __init__(self) -> None:
        # The tuple is replaced as a whole for each component. So the other thread never reads
        # values of two components.
        self._now: tuple[str, float, list[tuple[ReadOnlyObject, float]]] = ("", math.inf, [])

    def component(self, at: str) -> None:
        self._now = at, time.monotonic(), []

    def template(self, resolution: ReadOnlyObject) -> None:
        self._now[2].append((resolution, time.monotonic()))

    @property
    def seconds(self) -> float:
        """Seconds since the current component's rendering started; 0 before the first component."""
        return max(time.monotonic() - self._now[1], 0.0)

    def slowest(self) -> tuple[str, ReadOnlyObject | None]:
        """Return the path of the current component, and the resolution whose template took longest.

        The resolution is None if no template of the component was started.
        """
        at, _, begun = self._now
        ends = [*(started for _, started in begun[1:]), time.monotonic()]
        spent = [(end - started, each) for (each, started), end in zip(begun, ends, strict=False)]
        return at, max(spent, key=itemgetter(0))[1] if spent else None


class Renderer:
    """Renders applications. It caches DefinitionRevisions, whose content never changes."""

    def __init__(
        self, client: Client, engines: Engines, clock: Clock, *, deadline: float = DEADLINE
    ) -> None:
        self._client = client
        self._engines = engines
        self._clock = clock
        self._deadline = deadline
        self._here, self._programs = DaemonThreadPool(_HERE), DaemonThreadPool(_PROGRAMS)
        self._kept: OrderedDict[tuple[str, str, str], Object] = OrderedDict()
        self._slow: dict[_Name, tuple[float, str]] = {}
        """Templates that timed out, with the time of the next attempt and the error message.

        Until that time, polyver renders no application that uses such a template: each attempt
        would occupy a thread until the deadline.
        """
        self._cluster: Mapping[str, Object] = {}
        self.count = 0
        """Number of renderings so far."""

    async def render(
        self, application: Object, resolutions: Sequence[Object], *, revision: str
    ) -> Rendered:
        """Render the objects of an application.

        Problems and timeouts are in the field `errors` of the result.
        """
        if slow := [*self._slow_of(resolutions)]:
            return Rendered(errors=tuple(slow))
        revisions = await self._revisions(resolutions)
        if not self._cluster:
            self._cluster = {"clusterVersion": cluster_version(await self._client.release())}
        self.count += 1
        stopwatch = _Stopwatch()

        def work() -> Rendered:
            try:
                return render(
                    application,
                    resolutions,
                    revisions,
                    self._engines,
                    app_revision=revision,
                    context=self._cluster,
                    progress=stopwatch,
                )
            except BaseException as error:  # SystemExit of an engine must not end the thread
                said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
                return Rendered(errors=(EngineBroke(f"rendering ended with {said[:_LONGEST]}"),))

        aside = self._here if _BUILT_IN.issuperset(_engines(revisions)) else self._programs
        try:
            return await aside.run(work, left=lambda: self._deadline - stopwatch.seconds)
        except TimeoutError:
            return Rendered(errors=(self._too_long(application, *stopwatch.slowest()),))

    def _too_long(
        self, application: Object, at: str, resolution: ReadOnlyObject | None
    ) -> RenderingTimeout:
        """Build the error for a timeout, and record the slowest template in `_slow`.

        `resolution` is the slowest template; `at` is the path of its component.
        """
        limit = f"took longer than {self._deadline:g} seconds to render"
        if resolution is None:
            return RenderingTimeout(f"the component {limit}", at=at, hint=_HINT)
        namespace, _, name = resolution["definition"].rpartition("/")
        label = f"{name} {resolution['version']}"
        metadata = application["metadata"]
        user = f"Application {metadata['namespace']}/{metadata['name']}"
        measured = f"{label} {limit} a moment ago, for {at} of {user}"
        until = self._clock.time() + _PAUSE
        self._slow[namespace, resolution["revision"]] = until, measured
        return RenderingTimeout(f"the component {limit}, most of it {label}", at=at, hint=_HINT)

    def _slow_of(self, resolutions: Sequence[Object]) -> Iterator[RenderingTimeout]:
        """Yield an error for each reference whose template recently timed out."""
        if not self._slow:
            return
        now = self._clock.time()
        self._slow = {name: known for name, known in self._slow.items() if now < known[0]}
        for each in resolutions:
            for name in revisions_of([each]) & self._slow.keys():
                yield RenderingTimeout(self._slow[name][1], at=each["at"], hint=_HINT)

    async def _revisions(self, resolutions: Sequence[Object]) -> dict[_Name, Object]:
        digests = {each["revision"]: each["digest"] for each in resolutions}
        found: dict[_Name, Object] = {}
        for namespace, name in revisions_of(resolutions):
            key = namespace, name, digests[name]
            read = self._kept.get(key)
            if read is not None:
                self._kept.move_to_end(key)
                found[namespace, name] = read
                continue
            read = await find(self._client, _REVISIONS, name, namespace)
            if read is None:
                continue
            found[namespace, name] = read
            # Do not cache a revision with a wrong digest, because the user may replace this
            # revision.
            if (read.get("spec") or {}).get("digest") == digests[name]:
                self._kept[key] = read
                if len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
        return found


def _engines(revisions: Mapping[_Name, Object]) -> Iterable[str]:
    """Yield the name of the engine for each template in these revisions, such as `gotemplate`."""
    for each in revisions.values():
        known = known_revision(each)
        yield from (known.content.get("schematic") or ()) if known is not None else ()
