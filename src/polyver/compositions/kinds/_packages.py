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
    """A reference to a Secret."""

    name: str | None
    """Its name."""


@part
class RuntimeConfigReference:
    """A reference to the runtime configuration of a package."""

    apiVersion: str = "pkg.crossplane.io/v1beta1"
    """Its API version."""
    kind: str = "DeploymentRuntimeConfig"
    """Its kind."""
    name: str
    """Its name."""


@part
class ControllerConfigReference:
    """A reference to the runtime configuration of a package, in the old format."""

    name: str
    """Its name."""


@part
class PackageCondition:
    """A condition."""

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
    """When to check the content of the package for changes."""
    packagePullSecrets: list[PullSecret] | None
    """Secrets for private registries."""
    ignoreCrossplaneConstraints: bool = False
    """Ignore the version constraints for Crossplane."""
    skipDependencyResolution: bool = False
    """Do not install dependencies."""
    commonLabels: dict[str, str] | None
    """Labels for all objects of the package."""


class _Run:
    """Fields of packages that are run."""

    runtimeConfigRef: RuntimeConfigReference | None
    """The runtime configuration."""
    controllerConfigRef: ControllerConfigReference | None
    """The runtime configuration, in the old format."""


class _Package(_Pulled):
    """Fields of every kind of package."""

    package: Annotated[str, MinLength(1)]
    """The reference of the package."""
    revisionActivationPolicy: Literal["Automatic", "Manual"] = "Automatic"
    """Automatic activates the revisions with the highest numbers; Manual leaves it to users."""
    revisionHistoryLimit: Annotated[Number, Ge(0)] = 1
    """The number of revisions to keep, including active ones (never deleted); 0 for all."""
    activeRevisionLimit: Annotated[Number, Ge(1)] = 1
    """The number of active revisions with Automatic activation; 1 except for functions."""


@part
class FunctionSpec(_Package, _Run):
    """The package, and the policy for its revisions."""

    strictReferences: bool = True
    """Keep a revision as long as compositions select it."""


@part
class ProviderSpec(_Package, _Run):
    """The package."""


@part
class ConfigurationSpec(_Package):
    """The package."""


@part
class FunctionRevisionSpec(_Pulled, _Run):
    """One content of the package, immutable, with its number and desired state."""

    desiredState: Literal["Active", "Inactive"]
    """The desired state."""
    image: Annotated[str, MinLength(1)]
    """The reference of the package."""
    revision: Annotated[Number, Ge(1)]
    """The serial number; the highest so far, also if the content is the same as before."""
    digest: str | None
    """The digest of the content of the package."""
    tlsServerSecretName: str | None
    """The Secret with its server certificate."""
    tlsClientSecretName: str | None
    """The Secret with its client certificate."""


@part
class PackageStatus:
    """The observed state."""

    conditions: Conditions | None
    """Installed, Healthy, and of functions Postponed."""
    currentRevision: str | None
    """The revision of the requested package, active or not."""
    currentIdentifier: str | None
    """The reference of that content."""
    resolvedPackage: str | None
    """The resolved reference."""


@part
class FunctionRevisionStatus:
    """The observed state."""

    conditions: Conditions | None
    """Healthy, and RuntimeHealthy with the state of its runtime."""
    endpoint: str | None
    """The endpoint: HOST:PORT."""
    foundDependencies: Number | None
    """Packages that it depends on; always empty."""
    installedDependencies: Number | None
    """Installed dependencies; always empty."""
    invalidDependencies: Number | None
    """Invalid dependencies; always empty."""
    resolvedImage: str | None
    """The resolved reference."""


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
    """A function that compositions call, with its revisions."""

    spec: FunctionSpec
    status: PackageStatus | None


@FUNCTION_REVISIONS.version(STORED, storage=True, columns=_REVISION_COLUMNS)
class FunctionRevision:
    """One revision of the package of a function."""

    spec: FunctionRevisionSpec
    status: FunctionRevisionStatus | None


@FUNCTIONS.version(OLDER, columns=_COLUMNS)
class FunctionV1Beta1:
    """A function that compositions call, with its revisions."""

    spec: FunctionSpec
    status: PackageStatus | None


@FUNCTION_REVISIONS.version(OLDER, columns=_REVISION_COLUMNS)
class FunctionRevisionV1Beta1:
    """One revision of the package of a function."""

    spec: FunctionRevisionSpec
    status: FunctionRevisionStatus | None


def _checked(kind: Kind, about: str, spec: Any) -> None:
    described: Any = Annotated
    fields = {
        "spec": described[spec, Description("The package.")],
        "status": described[PackageStatus | None, Description("The observed state.")],
    }
    made = {"__doc__": about, "__annotations__": fields, "__module__": __name__}
    kind.version(STORED, columns=_COLUMNS)(type(kind.kind, (), made))


_checked(
    PROVIDERS,
    "A package of kinds and their controllers; it is validated, but not installed.",
    ProviderSpec,
)
_checked(
    CONFIGURATIONS,
    "A package of compositions; it is validated, but not installed.",
    ConfigurationSpec,
)
