"""The kind Workload of Kueue, with a pair of functions for the one value that rules cannot convert.

v1beta1 lists the domains of an assignment, with the number of pods in each. v1beta2 compresses the
list: it writes values that all domains share once, and the same with common prefixes and suffixes.
"""

from typing import Annotated, Any, Literal

from polyver import apis

workload = apis.Kind("Workload", group="kueue.x-k8s.io", short_names=["wl"])


@apis.part
class PodSet(apis.Fields):
    """Pods of one shape."""

    name: str
    count: int
    minCount: int | None = None


@apis.part
class Condition(apis.Fields):
    """A condition of the status."""

    type: str
    status: str
    reason: str | None = None
    message: str | None = None


@apis.part
class Domain(apis.Fields):
    """A place for pods: one value for each level, and the number of pods."""

    values: list[str]
    count: int


@apis.part
class Individual(apis.Fields):
    """The parts in which the values of the domains differ."""

    prefix: str | None = None
    suffix: str | None = None
    roots: list[str] | None = None


@apis.part
class LevelValues(apis.Fields):
    """The values of one level: the same for all domains, or one for each."""

    universal: str | None = None
    individual: Individual | None = None


@apis.part
class PodCounts(apis.Fields):
    """The numbers of pods: the same for all domains, or one for each."""

    universal: int | None = None
    individual: list[int] | None = None


@apis.part
class Slice(apis.Fields):
    """Several domains."""

    domainCount: Annotated[int, apis.Ge(1)]
    valuesPerLevel: list[LevelValues] | None = None
    podCounts: PodCounts | None = None


@workload.version("v1beta1")
class WorkloadV1beta1(apis.Fields):
    """A request to run pods, which waits in a queue."""

    class Spec(apis.Fields):
        queueName: str | None = None
        priority: int | None = None
        priorityClassName: str | None = None
        priorityClassSource: (
            Literal["kueue.x-k8s.io/workloadpriorityclass", "scheduling.k8s.io/priorityclass"]
            | None
        ) = None
        active: bool | None = None
        podSets: list[PodSet] | None = None

    class Status(apis.Fields):
        class Admission(apis.Fields):
            class Assignment(apis.Fields):
                class Topology(apis.Fields):
                    levels: list[str] | None = None
                    domains: list[Domain] | None = None

                name: str
                flavors: dict[str, str] | None = None
                count: int | None = None
                topologyAssignment: Topology | None = None

            clusterQueue: str
            podSetAssignments: Annotated[list[Assignment], apis.ListMap("name")] | None = None

        conditions: list[Condition] | None = None
        admission: Admission | None = None
        accumulatedPastExexcutionTimeSeconds: int | None = None

    metadata: dict[str, Any]
    spec: Spec | None = None
    status: Status | None = None


@workload.version("v1beta2", storage=True)
class WorkloadV1beta2(apis.Fields):
    """A request to run pods, which waits in a queue."""

    class Spec(apis.Fields):
        class PriorityClass(apis.Fields):
            group: Literal["kueue.x-k8s.io", "scheduling.k8s.io"] | None = None
            kind: Literal["WorkloadPriorityClass", "PriorityClass"] | None = None
            name: str | None = None

        queueName: str | None = None
        priority: int | None = None
        priorityClassRef: PriorityClass | None = None
        active: bool | None = None
        podSets: list[PodSet] | None = None

    class Status(apis.Fields):
        class Admission(apis.Fields):
            class Assignment(apis.Fields):
                class Topology(apis.Fields):
                    levels: list[str] | None = None
                    slices: list[Slice] | None = None

                name: str
                flavors: dict[str, str] | None = None
                count: int | None = None
                topologyAssignment: Topology | None = None

            clusterQueue: str
            podSetAssignments: Annotated[list[Assignment], apis.ListMap("name")] | None = None

        conditions: list[Condition] | None = None
        admission: Admission | None = None
        accumulatedPastExecutionTimeSeconds: int | None = None

    metadata: dict[str, Any]
    spec: Spec | None = None
    status: Status | None = None


Data = dict[str, Any]


def compressed(topology: Data) -> Data:
    """Return a topology in which one slice has all domains."""
    levels, domains = topology.get("levels", []), topology.get("domains", [])
    if not domains:
        return {"levels": levels, "slices": []}
    if any(len(domain["values"]) != len(levels) for domain in domains):
        return {"levels": levels}
    columns = [[domain["values"][level] for domain in domains] for level in range(len(levels))]
    counts = [domain["count"] for domain in domains]
    pods: Data = {"individual": counts} if len({*counts}) > 1 else {"universal": counts[0]}
    one = {
        "domainCount": len(domains),
        "valuesPerLevel": [*map(shared, columns)],
        "podCounts": pods,
    }
    return {"levels": levels, "slices": [one]}


def shared(values: list[str]) -> Data:
    """Return the values of one level, without their common prefix and suffix."""
    prefix = common_prefix(values)
    if all(value == prefix for value in values):
        return {"universal": prefix}
    suffix = common_prefix([value[::-1] for value in values])[::-1]
    prefix = prefix[: min(map(len, values)) - len(suffix)]
    roots = [value[len(prefix) : len(value) - len(suffix)] for value in values]
    found = {"prefix": prefix, "suffix": suffix}
    return {"individual": {name: text for name, text in found.items() if text} | {"roots": roots}}


def common_prefix(values: list[str]) -> str:
    first, last = min(values), max(values)
    same = [one == other for one, other in zip(first, last, strict=False)]
    return first[: [*same, False].index(False)]


def expanded(topology: Data) -> Data | None:
    """Return a topology with a list of domains; None if its slices do not fit together."""
    try:
        domains = [each for one in topology.get("slices", []) for each in domains_of(one)]
    except (KeyError, IndexError):
        return None
    return {"levels": topology.get("levels", []), "domains": domains}


def domains_of(one: Data) -> list[Data]:
    count, levels, pods = one["domainCount"], one.get("valuesPerLevel", []), one["podCounts"]
    # Domains differ in the values of a level. Without this check, a small object could state a
    # large number of domains.
    if count > 1 and not any(len(individual_of(level)) == count for level in levels):
        raise IndexError("no level has a value for each domain")
    columns = [values_of(level, count) for level in levels]
    counts = [pods["universal"]] * count if "universal" in pods else pods["individual"]
    return [
        {"values": [column[index] for column in columns], "count": counts[index]}
        for index in range(count)
    ]


def individual_of(level: Data) -> list[str]:
    found: list[str] = level.get("individual", {}).get("roots", [])
    return found


def values_of(level: Data, count: int) -> list[str]:
    if "universal" in level:
        return [level["universal"]] * count
    found = level["individual"]
    prefix, suffix = found.get("prefix", ""), found.get("suffix", "")
    return [f"{prefix}{root}{suffix}" for root in found["roots"]]


@workload.edge("v1beta1", "v1beta2")
def v1beta1_v1beta2(e: apis.Rules) -> None:
    e.move(
        "status.accumulatedPastExexcutionTimeSeconds", "status.accumulatedPastExecutionTimeSeconds"
    )
    source = e.when("spec.priorityClassSource", to="spec.priorityClassRef.kind")
    for value, group, kind in (
        ("kueue.x-k8s.io/workloadpriorityclass", "kueue.x-k8s.io", "WorkloadPriorityClass"),
        ("scheduling.k8s.io/priorityclass", "scheduling.k8s.io", "PriorityClass"),
    ):
        rules = source.case(value, to=kind)
        rules.const("spec.priorityClassRef.group", group)
        rules.move("spec.priorityClassName", "spec.priorityClassRef.name")
    source.otherwise()
    e.each("status.admission.podSetAssignments", key="name").convert(
        "topologyAssignment", "topologyAssignment", forward=compressed, back=expanded
    )
