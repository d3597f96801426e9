"""Kinds of Functions and FunctionRevisions, and of Providers and Configurations.

polyver only validates and stores Providers and Configurations. It serves Functions and
FunctionRevisions also as v1beta1, which has the same fields.
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
    """A reference to a Secret by its name."""

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
    """A condition of a package or a revision."""

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
    """When polyver checks whether the content of the package has changed: only if the package
    reference changes (IfNotPresent, Never), or regularly (Always).
    """
    packagePullSecrets: list[PullSecret] | None
    """Secrets for private registries. polyver does not use this field."""
    ignoreCrossplaneConstraints: bool = False
    """Ignore the version constraints for Crossplane. polyver does not use this field."""
    skipDependencyResolution: bool = False
    """polyver does not use this field, because it never installs dependencies."""
    commonLabels: dict[str, str] | None
    """Labels for all objects of the package. polyver does not use this field."""


class _Run:
    """Fields of packages that contain a program to run."""

    runtimeConfigRef: RuntimeConfigReference | None
    """The runtime configuration. polyver does not use this field."""
    controllerConfigRef: ControllerConfigReference | None
    """The runtime configuration in the old format. polyver does not use this field."""


class _Package(_Pulled):
    """Fields that all kinds of packages have."""

    package: Annotated[str, MinLength(1)]
    """The package reference, such as the name of an image."""
    revisionActivationPolicy: Literal["Automatic", "Manual"] = "Automatic"
    """With Automatic, polyver activates the revisions with the highest numbers. With Manual, users
    activate revisions.
    """
    revisionHistoryLimit: Annotated[Number, Ge(0)] = 1
    """The number of revisions that polyver keeps; 0 means all. Active revisions count too, but
    polyver never deletes them.
    """
    activeRevisionLimit: Annotated[Number, Ge(1)] = 1
    """The number of revisions that are active if the policy is Automatic. Only Functions may have
    more than 1.
    """


@part
class FunctionSpec(_Package, _Run):
    """The package of a Function, and the policies for its revisions."""

    strictReferences: bool = True
    """If true, a revision cannot be deactivated or deleted while a step of a composition selects
    it.
    """


@part
class ProviderSpec(_Package, _Run):
    """The package of a Provider."""


@part
class ConfigurationSpec(_Package):
    """The package of a Configuration."""


@part
class FunctionRevisionSpec(_Pulled, _Run):
    """One content of the package, with its number and desired state. The content never changes."""

    desiredState: Literal["Active", "Inactive"]
    """The desired state. polyver serves only revisions that are Active."""
    image: Annotated[str, MinLength(1)]
    """The package reference, such as the name of an image."""
    revision: Annotated[Number, Ge(1)]
    """The number of the revision. The revision with the current content of the package has the
    highest number.
    """
    digest: str | None
    """The digest of the package content."""
    tlsServerSecretName: str | None
    """The Secret with the server certificate. polyver does not use this field."""
    tlsClientSecretName: str | None
    """The Secret with the client certificate. polyver does not use this field."""


@part
class PackageStatus:
    """The observed state of the package."""

    conditions: Conditions | None
    """The conditions Installed and Healthy. A Function may also have the condition Postponed."""
    currentRevision: str | None
    """The name of the revision with the content of the package in `spec`. It may be inactive."""
    currentIdentifier: str | None
    """The package reference of the current revision."""
    resolvedPackage: str | None
    """The package reference for which the content was read."""


@part
class FunctionRevisionStatus:
    """The observed state of the revision."""

    conditions: Conditions | None
    """The condition Healthy, and RuntimeHealthy with the state that the runtime reports."""
    endpoint: str | None
    """The address at which polyver calls the revision."""
    foundDependencies: Number | None
    """The number of dependencies of the package. polyver never sets it."""
    installedDependencies: Number | None
    """The number of installed dependencies. polyver never sets it."""
    invalidDependencies: Number | None
    """The number of invalid dependencies. polyver never sets it."""
    resolvedImage: str | None
    """The package reference for which the content was read."""


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
