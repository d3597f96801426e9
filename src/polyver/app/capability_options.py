"""The command-line options that enable and configure the capabilities of a control plane.

`polyver up`, `polyver run` and `polyver install` all have these options. `polyver install` passes
the options to the `polyver run` that it installs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, make_dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from polyver.app.capabilities import BASE, CAPABILITIES, Choices, UnknownCapability, current_name
from polyver.capability.capability import Capability, OptionsOfCapability
from polyver.cli.exit_codes import Misused
from polyver.cli.output import warn
from polyver.core import PolyverError, listed

if TYPE_CHECKING:
    from polyver.controllers.egress import AllowedHttp

__all__ = ["CapabilityOptions"]


@dataclass(frozen=True, kw_only=True)
class _ChosenCapabilities:
    """The options that enable and configure the capabilities of a control plane.

    Attributes
    ----------
    capabilities
        The capabilities to enable, separated by commas. The capabilities are apis, functions,
        definitions and compositions. The empty string enables no capability; only `polyver up`
        accepts it. Default: apis; with --functions or --catalogue, also functions.
    allow_http
        A server to which polyver may send the HTTP requests of rollout checks and notifications:
        [SCHEME://]HOST[:PORT], such as prometheus.monitoring:9090; repeatable. HOST may be
        '*.DOMAIN' for all names below a domain, or '*' for any name. A HOST with '*' does not allow
        servers whose addresses belong to this machine, to the cluster or to a private network: to
        allow such a server, write its HOST without '*'. PORT may be '*'; without PORT, only the
        default port of the scheme is allowed. Default: no server.
    """

    capabilities: str | None = None
    allow_http: Annotated[list[str] | None, Parameter(negative=())] = None

    def choices(self, *, show_traceback: bool = False) -> Choices:
        """Return the enabled capabilities with their settings, such as the loaded functions.

        Raise an error if the options are invalid.
        """
        chosen = self._chosen()
        for name in _names(self.capabilities or ""):
            if (now := current_name(name)) != name:
                warn(f"--capabilities: {name} is deprecated; the capability is now {now}")
        settings = {
            each.name: options.settings(enabled=each.name in chosen, show_traceback=show_traceback)
            for each, options in self._options
        }
        return Choices(chosen, settings, self._allowed_http())

    def on_a_cluster(self, *, show_traceback: bool = False) -> Choices:
        """Return the enabled capabilities with their settings, for `polyver run`.

        Raise an error if the capability apis is not enabled, because `polyver run` requires it.
        """
        choices = self.choices(show_traceback=show_traceback)
        if BASE not in choices.capabilities:
            fact = f"the capability {BASE} is required on a cluster"
            raise Misused(fact, at="--capabilities", hint=f"add {BASE} to --capabilities")
        return choices

    def arguments(self) -> Iterator[str]:
        """Yield the options as command-line arguments, for `polyver run`."""
        chosen = self._chosen()
        if chosen != {BASE}:
            ordered = [each.name for each in CAPABILITIES if each.name in chosen]
            yield from ("--capabilities", ",".join(ordered))
        for pattern in self.allow_http or ():
            yield from ("--allow-http", pattern)
        for _, options in self._options:
            yield from options.arguments()

    def _allowed_http(self) -> AllowedHttp | None:
        if not self.allow_http:
            return None
        from polyver.controllers.egress import AllowedHttp

        try:
            return AllowedHttp.read(self.allow_http)
        except PolyverError as error:
            raise Misused(error.fact, at="--allow-http", hint=error.hint) from None

    @property
    def _options(self) -> list[tuple[Capability, OptionsOfCapability]]:
        """Each capability that has command-line options, with the values of these options."""
        return [(each, getattr(self, f"of_{each.name}")) for each in CAPABILITIES if each.options]

    def _chosen(self) -> frozenset[str]:
        given = [(each, text) for each, options in self._options if (text := options.given)]
        if self.capabilities is None:
            chosen = frozenset({BASE, *(each.name for each, _ in given if each.enabled_by_options)})
        else:
            chosen = _read(self.capabilities)
        for each, text in given:
            if each.name not in chosen:
                raise Misused(f"{text} need the capability {each.name}", at="--capabilities")
        return chosen


def _names(text: str) -> list[str]:
    return [each for each in text.split(",") if each]


def _read(text: str) -> frozenset[str]:
    try:
        names = frozenset(map(current_name, _names(text)))
    except UnknownCapability as error:
        raise Misused(error.fact, at="--capabilities", hint=error.hint) from None
    for each in CAPABILITIES:
        missing = [name for name in each.requires if name not in names]
        if each.name in names and missing:
            fact = f"the capability {each.name} needs the capability {listed(missing)}"
            hint = f"write {','.join([*missing, each.name])}"
            raise Misused(fact, at="--capabilities", hint=hint)
    return names


if TYPE_CHECKING:
    CapabilityOptions = _ChosenCapabilities
else:
    # The class gets one field for each capability. So the options of a new capability are added
    # automatically.
    CapabilityOptions = Parameter(name="*")(
        make_dataclass(
            "CapabilityOptions",
            [
                (f"of_{each.name}", each.options, each.options())
                for each in CAPABILITIES
                if each.options is not None
            ],
            bases=(_ChosenCapabilities,),
            # cyclopts reads only the fields of users' classes, and their types from this module.
            namespace={"__module__": __name__},
            frozen=True,
            kw_only=True,
        )
    )
