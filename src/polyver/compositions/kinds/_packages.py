"""Kinds of Functions and their revisions, and of Provider and Configuration.

Provider and Configuration are validated only. Functions and FunctionRevisions are also served as
v1beta1, which has the same fields.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from polyver.apis.declaring import Description, Format, Ge, Kind, ListMap, MinLength, part
from polyver.apis.definition import Column

__all__ = [
    "CONFIGURATIONS",
    "FUNCTIONS",
    "FUNCTION_REVISIONS",
    "GROUP",
    "PACKAGES",
    "PROVIDERS",
    "STORED",
    "CompositionFunction",
    "FunctionRevision",
]

GROUP: Final = "pkg.crossplane.io"
STORED: Final = "v1"
OLDER: Final = "v1beta1"

Number = Annotated[int, Format("int64")]
Time = Annotated[str, Format("date-time")]


@part
class PullSecret:
    """Names a secret."""

    name: str | None
    """Its name."""


@part
class RuntimeConfigReference:
    """Names how a package is to be run, where Deployments run it."""

    apiVersion: str = "pkg.crossplane.io/v1beta1"
    """Its API version."""
    kind: str = "DeploymentRuntimeConfig"
    """Its kind."""
    name: str
    """Its name."""


@part
class ControllerConfigReference:
    """Names how a package is to be run, in an older way."""

    name: str
    """Its name."""


@part
class PackageCondition:
    """One fact, and since when."""

    type: str
    status: str
    lastTransitionTime: Time
    reason: str
    message: str | None
    observedGeneration: Number | None


Conditions = Annotated[list[PackageCondition], ListMap("type")]


class _Pulled:
    """Fields that packages and their revisions share."""

    packagePullPolicy: Literal["IfNotPresent", "Always", "Never"] = "IfNotPresent"
    """When to look whether the content of the package is another one by now."""
    packagePullSecrets: list[PullSecret] | None
    """Secrets for private registries."""
    ignoreCrossplaneConstraints: bool = False
    """Whether to install what is meant for another release of Crossplane."""
    skipDependencyResolution: bool = False
    """Whether to leave packages alone that this one depends on."""
    commonLabels: dict[str, str] | None
    """Labels for everything that is made for the package."""


class _Run:
    """Fields of packages that are run."""

    runtimeConfigRef: RuntimeConfigReference | None
    """How it is to be run, where Deployments run it."""
    controllerConfigRef: ControllerConfigReference | None
    """The same in an older way."""


class _Package(_Pulled):
    """Fields of every kind of package."""

    package: Annotated[str, MinLength(1)]
    """The reference of the package."""
    revisionActivationPolicy: Literal["Automatic", "Manual"] = "Automatic"
    """Whether revisions are activated and deactivated by number, or by users."""
    revisionHistoryLimit: Annotated[Number, Ge(0)] = 1
    """How many revisions are kept, active ones included, which are never collected; 0 for all."""
    activeRevisionLimit: Annotated[Number, Ge(1)] = 1
    """How many of them are active at once, unless users decide that; 1 for all but functions."""


@part
class FunctionSpec(_Package, _Run):
    """The package, and how its revisions come and go."""

    strictReferences: bool = True
    """Whether a revision that compositions select stays until they do not."""


@part
class ProviderSpec(_Package, _Run):
    """The package."""


@part
class ConfigurationSpec(_Package):
    """The package."""


@part
class FunctionRevisionSpec(_Pulled, _Run):
    """The package as it was, which never changes, its number and its state."""

    desiredState: Literal["Active", "Inactive"]
    """Whether it is to be served."""
    image: Annotated[str, MinLength(1)]
    """The reference of the package."""
    revision: Annotated[Number, Ge(1)]
    """The number that it was given: the highest yet, also when its content comes back."""
    digest: str | None
    """Of the content of the package."""
    tlsServerSecretName: str | None
    """The secret with the certificate that it shows."""
    tlsClientSecretName: str | None
    """The secret with the certificate that it calls others with."""


@part
class PackageStatus:
    """What has become of the package."""

    conditions: Conditions | None
    """Installed, Healthy, and of functions Postponed."""
    currentRevision: str | None
    """The revision of the package that is asked for now, active or not."""
    currentIdentifier: str | None
    """The reference whose content that is."""
    resolvedPackage: str | None
    """The reference that was looked up."""


@part
class FunctionRevisionStatus:
    """What has become of the revision."""

    conditions: Conditions | None
    """Healthy, and RuntimeHealthy with what its runtime says."""
    endpoint: str | None
    """Where it answers: HOST:PORT."""
    foundDependencies: Number | None
    """Packages that it depends on, which are not looked for."""
    installedDependencies: Number | None
    """Those of them that are installed."""
    invalidDependencies: Number | None
    """Those of them that are not as they should be."""
    resolvedImage: str | None
    """The reference that was looked up."""


_HEALTHY = Column("HEALTHY", ".status.conditions[?(@.type=='Healthy')].status")
_AGE = Column("AGE", ".metadata.creationTimestamp", "date")
_COLUMNS = (
    Column("INSTALLED", ".status.conditions[?(@.type=='Installed')].status"),
    _HEALTHY,
    Column("PACKAGE", ".spec.package"),
    _AGE,
)
_REVISION_COLUMNS = (
    _HEALTHY,
    Column("REVISION", ".spec.revision"),
    Column("IMAGE", ".spec.image"),
    Column("STATE", ".spec.desiredState"),
    # Always empty here; kept because readers of Crossplane's output expect these columns.
    Column("DEP-FOUND", ".status.foundDependencies"),
    Column("DEP-INSTALLED", ".status.installedDependencies"),
    _AGE,
    Column("ENDPOINT", ".status.endpoint", priority=1),
)


def _packages(name: str, *categories: str, several: bool = False) -> Kind:
    # All versions have the same fields, so conversion only changes the apiVersion.
    strategy: Literal["None"] | None = "None" if several else None
    categories = ("crossplane", *categories)
    return Kind(name, group=GROUP, scope="Cluster", categories=categories, strategy=strategy)


FUNCTIONS: Final = _packages("Function", "pkg", several=True)
FUNCTION_REVISIONS: Final = _packages("FunctionRevision", "pkgrev", several=True)
PROVIDERS: Final = _packages("Provider", "pkg")
CONFIGURATIONS: Final = _packages("Configuration", "pkg")
PACKAGES: Final = (FUNCTIONS, PROVIDERS, CONFIGURATIONS)


@FUNCTIONS.version(STORED, storage=True, columns=_COLUMNS)
class CompositionFunction:
    """A function that compositions call, in several revisions."""

    spec: FunctionSpec
    status: PackageStatus | None


@FUNCTION_REVISIONS.version(STORED, storage=True, columns=_REVISION_COLUMNS)
class FunctionRevision:
    """One content of a function's package."""

    spec: FunctionRevisionSpec
    status: FunctionRevisionStatus | None


@FUNCTIONS.version(OLDER, columns=_COLUMNS)
class FunctionV1Beta1:
    """A function that compositions call, in several revisions."""

    spec: FunctionSpec
    status: PackageStatus | None


@FUNCTION_REVISIONS.version(OLDER, columns=_REVISION_COLUMNS)
class FunctionRevisionV1Beta1:
    """One content of a function's package."""

    spec: FunctionRevisionSpec
    status: FunctionRevisionStatus | None


def _checked(kind: Kind, about: str, spec: Any) -> None:
    described: Any = Annotated
    fields = {
        "spec": described[spec, Description("The package.")],
        "status": described[PackageStatus | None, Description("What has become of it.")],
    }
    made = {"__doc__": about, "__annotations__": fields, "__module__": __name__}
    kind.version(STORED, columns=_COLUMNS)(type(kind.kind, (), made))


_checked(
    PROVIDERS, "A package of kinds and their controllers; it is checked, no more.", ProviderSpec
)
_checked(CONFIGURATIONS, "A package of compositions; it is checked, no more.", ConfigurationSpec)
