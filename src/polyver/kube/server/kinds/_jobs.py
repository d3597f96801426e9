"""Rules for writes of Jobs and CronJobs.

The schedule of a CronJob has five fields, as in `*/5 * * * *`, or is one word such as `@daily`.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from polyver.core.plain import Object
from polyver.kube.objects.status import Cause, invalid_field, required, unsupported
from polyver.kube.server.kinds._builtin import BuiltinRules
from polyver.kube.server.kinds._checks import (
    IMMUTABLE,
    check_one_of,
    check_selector,
    frozen,
    in_structure,
    not_negative,
    selector_shown,
)
from polyver.kube.server.kinds._pods import check_pod_spec, template_warnings
from polyver.kube.server.kinds._workloads import check_template_labels

__all__ = ["CronJobRules", "JobRules"]

_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_DAYS = "sun mon tue wed thu fri sat".split()
_NAMES: Mapping[int, Mapping[str, int]] = {
    3: {name: number for number, name in enumerate(_MONTHS, 1)},
    4: {name: number for number, name in enumerate(_DAYS)},
}
_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_WORDS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_EVERY = re.compile(r"([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+")


def _schedule_problem(schedule: str) -> str:
    """Return the error message for a schedule in the words of kube-apiserver; "" if it is valid.

    >>> _schedule_problem("*/5 8-17 * * MON-FRI")
    ''
    >>> _schedule_problem("61 * * * *")
    'end of range (61) above maximum (59): 61'
    """
    if schedule.startswith("@"):
        return _word_problem(schedule)
    fields = schedule.split()
    if len(fields) != 5:
        return f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
    for number, field in enumerate(fields):
        for part in filter(None, field.split(",")):
            if problem := _part_problem(part, number):
                return problem
    return ""


def _word_problem(word: str) -> str:
    if word.startswith("@every "):
        span = word.removeprefix("@every ")
        if _EVERY.fullmatch(span):
            return ""
        return f'failed to parse duration {word}: time: invalid duration "{span}"'
    return "" if word in _WORDS else f"unrecognized descriptor: {word}"


def _part_problem(part: str, number: int) -> str:
    span, *steps = part.split("/")
    low, *high = span.split("-")
    try:
        least, most = _RANGES[number]
        begin, end = (least, most) if low in ("*", "?") else (_number(low, number),) * 2
        if low not in ("*", "?") and len(high) == 1:
            end = _number(high[0], number)
        if len(high) > 1:
            return f"too many hyphens: {part}"
        step = _integer(steps[0]) if steps else 1
        if len(steps) > 1:
            return f"too many slashes: {part}"
        end = most if steps and not high and low not in ("*", "?") else end
    except ValueError as error:
        return str(error)
    return _range_problem(part, begin, end, step, _RANGES[number])


def _range_problem(part: str, begin: int, end: int, step: int, span: tuple[int, int]) -> str:
    least, most = span
    if begin < least:
        return f"beginning of range ({begin}) below minimum ({least}): {part}"
    if end > most:
        return f"end of range ({end}) above maximum ({most}): {part}"
    if begin > end:
        return f"beginning of range ({begin}) beyond end of range ({end}): {part}"
    return "" if step else f"step of range should be a positive number: {part}"


def _number(text: str, field: int) -> int:
    named = _NAMES.get(field, {}).get(text.lower())
    return _integer(text) if named is None else named


def _integer(text: str) -> int:
    if not re.fullmatch("[-+]?[0-9]+", text):
        problem = f'strconv.Atoi: parsing "{text}": invalid syntax'
        raise ValueError(f"failed to parse int from {text}: {problem}")
    if text.startswith("-"):
        raise ValueError(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)


_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
)
_UID = "batch.kubernetes.io/controller-uid"
_MOST_LETTERS = 52


class JobRules(BuiltinRules):
    """Rules for writes of Jobs.

    Unless `manualSelector` is set, the server sets the selector, so that a Job selects only pods
    with a label that has the uid of the Job.
    """

    def begin(self, obj: Object) -> None:
        spec, metadata = obj["spec"], obj["metadata"]
        if spec.get("manualSelector"):
            return
        uid, name = metadata["uid"], metadata.get("name", "")
        labels = {_UID: uid, "controller-uid": uid}
        labels |= {"batch.kubernetes.io/job-name": name, "job-name": name}
        template = spec["template"]
        given = template["metadata"].get("labels") or {}
        inner = template["metadata"] | {"labels": given | labels}
        selector = spec.get("selector") or {}
        chosen = (selector.get("matchLabels") or {}) | {_UID: uid}
        obj["spec"] = spec | {
            "selector": selector | {"matchLabels": chosen},
            "template": template | {"metadata": inner},
        }
        # In kube-apiserver, a Job without labels gets the labels of its template.
        if not metadata.get("labels") or metadata["labels"] == given:
            metadata["labels"] = given | labels

    def check_create(self, obj: Object) -> list[Cause]:
        return [*_check_selector(obj), *check_job_spec("spec", obj["spec"])]

    def check_update(self, obj: Object, old: Object) -> list[Cause]:
        return [*check_job_spec("spec", obj["spec"]), *_check_change(obj["spec"], old["spec"])]

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        return (
            () if old else template_warnings("spec.template.spec", obj["spec"]["template"]["spec"])
        )


def _check_selector(obj: Object) -> Iterator[Cause]:
    spec, uid = obj["spec"], obj["metadata"]["uid"]
    selector = spec.get("selector")
    if spec.get("manualSelector"):
        return
    if selector != {"matchLabels": {_UID: uid}}:
        text = "`selector` not auto-generated"
        shown = selector_shown(selector)
        yield in_structure(invalid_field("spec.selector", None, text), shown)


def check_job_spec(path: str, spec: Object, *, template_only: bool = False) -> Iterator[Cause]:
    """Yield the problems of a Job, or of the job template of a CronJob."""
    yield from not_negative(spec, path, *_COUNTS)
    modes = ("NonIndexed", "Indexed")
    yield from check_one_of(f"{path}.completionMode", spec.get("completionMode"), modes)
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        yield required(f"{path}.completions", "when completion mode is Indexed")
    yield from _check_indexes(path, spec)
    if not template_only:
        selector = spec.get("selector")
        if selector is None:
            yield required(f"{path}.selector")
        yield from check_selector(f"{path}.selector", selector)
        yield from check_template_labels(selector, spec["template"])
    pod = spec["template"]["spec"]
    yield from check_pod_spec(f"{path}.template.spec", pod)
    yield from _check_ends(f"{path}.template.spec.restartPolicy", pod.get("restartPolicy"))


def _check_indexes(path: str, spec: Object) -> Iterator[Cause]:
    """Yield the problems of the fields that only Jobs with completionMode Indexed may have."""
    most, indexed = spec.get("maxFailedIndexes"), spec.get("completionMode") == "Indexed"
    if most is not None and spec.get("backoffLimitPerIndex") is None:
        yield required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
        if spec.get(name) is not None and not indexed:
            text = "requires indexed completion mode"
            yield invalid_field(f"{path}.{name}", spec[name], text)
    policy = spec.get("successPolicy")
    if policy is not None and not indexed:
        text = "requires indexed completion mode"
        yield invalid_field(f"{path}.successPolicy", policy, text)


def _check_ends(field: str, policy: object) -> Iterator[Cause]:
    if policy in (None, "", "Always"):
        yield required(field, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield unsupported(field, policy, ["OnFailure", "Never"])


def _check_change(new: Object, old: Object) -> Iterator[Cause]:
    if new.get("completionMode") != "Indexed":
        yield from frozen("spec.completions", new.get("completions"), old.get("completions"))
    selector = new.get("selector")
    shown = selector_shown(selector)
    yield from frozen("spec.selector", selector, old.get("selector"), value=shown)
    yield from _check_template_change(new["template"], old["template"], bool(old.get("suspend")))
    for name in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "successPolicy"):
        yield from frozen(f"spec.{name}", new.get(name), old.get(name))


def _check_template_change(new: Object, old: Object, suspended: bool) -> Iterator[Cause]:
    """Yield a cause for a change of the template that is not allowed.

    If the Job was not suspended, no change is allowed. If it was suspended, these may change: the
    metadata of the template, and in its spec `affinity`, `nodeSelector`, `tolerations`,
    `schedulingGates`, and the `resources` of the containers.
    """
    if not suspended and new != old:
        yield invalid_field("spec.template", new, IMMUTABLE)
    if suspended and _fixed_part(new["spec"]) != _fixed_part(old["spec"]):
        yield invalid_field("spec.template.spec", new["spec"], IMMUTABLE)


def _fixed_part(pod: Object) -> Object:
    free = ("affinity", "nodeSelector", "tolerations", "schedulingGates")
    fixed = {key: value for key, value in pod.items() if key not in free}
    for name in ("containers", "initContainers"):
        fixed[name] = [
            {key: value for key, value in each.items() if key != "resources"}
            for each in pod.get(name) or ()
        ]
    return fixed


class CronJobRules(BuiltinRules):
    """Defaults and checks for writes of CronJobs; the embedded server creates no Jobs from them."""

    def check_create(self, obj: Object) -> list[Cause]:
        causes = [*_check_cron(obj["spec"])]
        name = obj["metadata"].get("name", "")
        if len(name) > _MOST_LETTERS:
            text = f"must be no more than {_MOST_LETTERS} characters"
            causes.append(invalid_field("metadata.name", name, text))
        return causes

    def check_update(self, obj: Object, old: Object) -> list[Cause]:
        del old
        return [*_check_cron(obj["spec"])]

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        path = "spec.jobTemplate.spec.template.spec"
        pod = obj["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        return () if old else template_warnings(path, pod)


def _check_cron(spec: Object) -> Iterator[Cause]:
    schedule = spec.get("schedule") or ""
    zone = spec.get("timeZone")
    if schedule:
        yield from _check_schedule(schedule)
    yield from not_negative(spec, "spec", "startingDeadlineSeconds")
    if zone is not None:
        yield from _check_zone(zone)
    policies = ("Allow", "Forbid", "Replace")
    yield from check_one_of("spec.concurrencyPolicy", spec.get("concurrencyPolicy"), policies)
    yield from _check_job_template("spec.jobTemplate.spec", spec["jobTemplate"]["spec"])
    yield from not_negative(spec, "spec", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    if not schedule:
        yield required("spec.schedule")


def _check_job_template(path: str, spec: Object) -> Iterator[Cause]:
    yield from check_job_spec(path, spec, template_only=True)
    if spec.get("manualSelector"):
        yield unsupported(f"{path}.manualSelector", True, ["nil", "false"])


def _check_schedule(schedule: str) -> Iterator[Cause]:
    if "TZ" in schedule:
        text = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield invalid_field("spec.schedule", schedule, text)
    elif problem := _schedule_problem(schedule):
        yield invalid_field("spec.schedule", schedule, problem)


def _check_zone(zone: str) -> Iterator[Cause]:
    if not zone:
        yield invalid_field("spec.timeZone", zone, "timeZone must be nil or non-empty string")
    elif zone.lower() == "local":
        text = "timeZone must be an explicit time zone as defined in "
        yield invalid_field("spec.timeZone", zone, f"{text}https://www.iana.org/time-zones")
    elif _zones() and zone not in _zones():
        yield invalid_field("spec.timeZone", zone, f"unknown time zone {zone}")


@cache
def _zones() -> frozenset[str]:
    """Return the names of all time zones that this machine knows."""
    return frozenset(zoneinfo.available_timezones())
