"""Kinds of Functions and FunctionRevisions, and of Providers and Configurations.

Providers and Configurations are only validated and stored. Functions and FunctionRevisions are also
served as v1beta1, which has the same fields.
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
    """The name of the Secret."""


@part
class RuntimeConfigReference:
    """A reference to the runtime configuration of a package."""

    apiVersion: str = "pkg.crossplane.io/v1beta1"
    """The API version of the runtime configuration."""
    kind: str = "DeploymentRuntimeConfig"
    """The kind of the runtime configuration."""
    name: str
    """The name of the runtime configuration."""


@part
class ControllerConfigReference:
    """A reference to the runtime configuration of a package, in the old format."""

    name: str
    """The name of the runtime configuration."""


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
    """Fields that packages and their revisions have in common."""

    packagePullPolicy: Literal["IfNotPresent", "Always", "Never"] = "IfNotPresent"
    """When to check whether the package content has changed. Never has the same effect as
    IfNotPresent.
    """
    packagePullSecrets: list[PullSecret] | None
    """Secrets for private registries; not used."""
    ignoreCrossplaneConstraints: bool = False
    """Ignore the version constraints for Crossplane; not used."""
    skipDependencyResolution: bool = False
    """Not used, because polyver never installs dependencies."""
    commonLabels: dict[str, str] | None
    """Labels for all objects of the package; not used."""


class _Run:
    """Fields of packages that are run."""

    runtimeConfigRef: RuntimeConfigReference | None
    """The runtime configuration; not used."""
    controllerConfigRef: ControllerConfigReference | None
    """The runtime configuration in the old format; not used."""


class _Package(_Pulled):
    """Fields that all kinds of packages have."""

    package: Annotated[str, MinLength(1)]
    """The reference of the package."""
    revisionActivationPolicy: Literal["Automatic", "Manual"] = "Automatic"
    """Automatic: polyver activates the highest-numbered revisions. Manual: users activate them."""
    revisionHistoryLimit: Annotated[Number, Ge(0)] = 1
    """The number of revisions to keep; 0 keeps all. Active revisions count, but are never deleted.
    """
    activeRevisionLimit: Annotated[Number, Ge(1)] = 1
    """The number of revisions that Automatic keeps active. Only Functions may have more than 1."""


@part
class FunctionSpec(_Package, _Run):
    """The package of a Function, and the policy for its revisions."""

    strictReferences: bool = True
    """Do not deactivate or delete a revision while a step of a composition selects it."""


@part
class ProviderSpec(_Package, _Run):
    """The package."""


@part
class ConfigurationSpec(_Package):
    """The package."""


@part
class FunctionRevisionSpec(_Pulled, _Run):
    """One content of the package, with its number and its desired state.

    The content never changes.
    """

    desiredState: Literal["Active", "Inactive"]
    """The desired state: polyver serves an Active revision."""
    image: Annotated[str, MinLength(1)]
    """The reference of the package."""
    revision: Annotated[Number, Ge(1)]
    """The number of the revision. The revision with the current content of the package has the
    highest number.
    """
    digest: str | None
    """The digest of the content of the package."""
    tlsServerSecretName: str | None
    """The Secret with the server certificate; not used."""
    tlsClientSecretName: str | None
    """The Secret with the client certificate; not used."""


@part
class PackageStatus:
    """The observed state."""

    conditions: Conditions | None
    """The conditions Installed and Healthy, and for Functions Postponed."""
    currentRevision: str | None
    """The revision with the content of the requested package. It may be inactive."""
    currentIdentifier: str | None
    """The package reference of the current revision."""
    resolvedPackage: str | None
    """The package reference after its resolution."""


@part
class FunctionRevisionStatus:
    """The observed state."""

    conditions: Conditions | None
    """Healthy, and RuntimeHealthy with the state in the runtime."""
    endpoint: str | None
    """The address at which polyver calls the revision."""
    foundDependencies: Number | None
    """The number of dependencies of the package. It is always empty."""
    installedDependencies: Number | None
    """The number of installed dependencies; always empty."""
    invalidDependencies: Number | None
    """The number of invalid dependencies; always empty."""
    resolvedImage: str | None
    """The package reference after its resolution."""


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
    # These two columns are always empty. They exist because programs that read Crossplane's output
    # expect them.
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
