"""The list of rollouts and their policies, and the page of one rollout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from polyver.kube.objects.tables import age_of
from polyver.web._html import Child, Html, tag
from polyver.web.pages._elements import (
    address,
    counted,
    empty,
    lineage_address,
    paging,
    search,
    share_bar,
    stage,
    table,
    tabs,
)

__all__ = ["rollout_address", "rollout_page", "rollouts_page"]

Data = Mapping[str, Any]
_FILTERS = ("", "active")
_UNFREEZE = "polyver rollout unfreeze"


def rollout_address(name: str) -> str:
    """Return the address of the page of a rollout; `name` is `NAMESPACE/NAME`."""
    return address(f"/rollouts/{name}")


# The list.


def rollouts_page(data: Data, now: datetime) -> tuple[str, Html]:
    """Build the title and content of one page of the list of rollouts."""
    main = tag(
        "div",
        tag("h1", "Rollouts"),
        tag("div", _frozen(data), id="frozen", data_live=True),
        tag("div", _filters(data), id="states", data_live=True),
        search("/rollouts", data["text"], "Find a rollout", state=data["state"]),
        tag("div", _rows(data, now), id="rows", data_live=True),
        tag("h2", "Policies"),
        tag("div", _policies(data["policies"]), id="policies", data_live=True),
    )
    return "Rollouts", main


def _frozen(data: Data) -> Html | None:
    if data["freeze"] is None:
        return None
    reason = f" ({data['freeze']})" if data["freeze"] else ""
    return tag(
        "p",
        f"Rollouts are frozen{reason}: no step starts; checks and rollbacks go on. To continue: ",
        tag("code", _UNFREEZE),
        class_="note",
        role="status",
    )


def _filters(data: Data) -> Html:
    states: Mapping[str, int] = data["states"]
    total = sum(count for name, count in states.items() if name != "active")
    named = [("", "All", total), ("active", "Active", states.get("active", 0))]
    named += [(each, each, states[each]) for each in sorted({*states} - {"active"})]
    return tabs(
        named,
        data["state"],
        about="by state",
        link=lambda state: address("/rollouts", state=state, q=data["text"]),
    )


def _rows(data: Data, now: datetime) -> list[Child]:
    if not data["items"]:
        return [_none(data)]
    rows = [
        (
            [
                tag("a", name, href=rollout_address(each["name"]), class_="name"),
                tag("span", namespace, class_="quiet"),
            ],
            _journey(each),
            stage(each["state"]),
            _step(each),
            _progress(each["counts"]),
            each["reason"],
            _age(each["created"], now),
        )
        for each in data["items"]
        for namespace, _, name in [each["name"].rpartition("/")]
    ]
    columns = ("Rollout", "Moves", "State", "Step", "Progress", "Reason", "Age")
    caption = "Rollouts, active ones first"
    shown = table(columns, rows, caption=caption, of="rollouts")
    return [shown, paging(data, "/rollouts", q=data["text"], state=data["state"])]


def _none(data: Data) -> Html:
    if data["text"] or data["state"]:
        return empty("No rollout matches.")
    told = " polyver starts one when a new version of a target is published."
    return empty(f"There are no rollouts.{told if data['policies'] else ''}")


def _without_policies() -> Html:
    return tag(
        "div",
        tag("p", "There are no policies, so every new version is used at once."),
        tag(
            "p",
            "To bring new versions to their users in steps, create a RolloutPolicy: ",
            tag("code", "kubectl explain rolloutpolicy.spec"),
            " describes its fields, and the folder ",
            tag("code", "examples/rollouts"),
            " and the guide ",
            tag("code", "docs/how-to/roll-out-a-release.md"),
            " show one.",
        ),
        class_="empty",
    )


def _journey(each: Data) -> list[Child]:
    """Build the lineage's name, with a link if the page knows the lineage, and the release."""
    name: Child = each["target"]["name"]
    if each["lineage"]:
        name = tag("a", name, href=lineage_address(each["lineage"]))
    kind = tag("span", each["target"]["kind"], class_="quiet kind")
    return [name, " → ", tag("strong", each["to"]), kind]


def _step(each: Data) -> str:
    return f"{each['step']} of {each['stepsTotal']}" if each["stepsTotal"] else ""


def _age(created: str, now: datetime) -> Html | None:
    if not created:
        return None
    return tag("time", age_of(created, now), datetime=created, title=created)


def _policies(policies: Sequence[Data]) -> Child:
    if not policies:
        return _without_policies()
    rows = [
        (
            [
                tag("span", name, class_="name"),
                tag("span", namespace, class_="quiet"),
            ],
            _ready(each),
            [tag("p", target) for target in each["targets"]],
            each["steps"],
        )
        for each in policies
        for namespace, _, name in [each["name"].rpartition("/")]
    ]
    columns = ("Policy", "Ready", "Targets", "Steps")
    return table(columns, rows, caption="Policies of rollouts", of="policies")


def _ready(each: Data) -> list[Child]:
    if each["ready"] == "True":
        lineages = counted(each["lineages"], "lineage")
        return [stage("Ready"), tag("p", f"applies to {lineages}", class_="quiet")]
    if not each["ready"]:
        return [stage("Pending")]
    return [stage("NotReady"), tag("p", each["message"], class_="bad")]


# Progress.

_PARTS = ("healthy", "moving", "held", "failing")


def _parts(counts: Data) -> dict[str, int]:
    """Return the number of followers of the cohort for each part of the bar."""
    healthy, failing, held = counts["healthy"], counts["failing"], counts["held"]
    moving = max(0, counts["cohort"] - healthy - failing - held - counts["idle"])
    return {"healthy": healthy, "moving": moving, "held": held, "failing": failing}


def _progress(counts: Data) -> list[Child]:
    if not counts["total"]:
        return [tag("span", "no followers", class_="quiet")]
    return [
        tag("span", f"{counts['moved']:,} of {counts['total']:,} moved"),
        _bar(counts),
        _told(counts),
    ]


def _told(counts: Data) -> Html | None:
    """Build the text about failing and held followers; None if there are none."""
    words = [
        tag("span", f"{counts[name]:,} {name}", class_=style)
        for name, style in (("failing", "bad"), ("held", "warn"))
        if counts[name]
    ]
    return tag("p", [[each, " "] for each in words]) if words else None


def _bar(counts: Data, of: str = "share") -> Html:
    """Build a bar of all followers; those outside the cohort are the empty part."""
    parts = _parts(counts)
    outside = max(0, counts["total"] - counts["cohort"])
    words = ", ".join(f"{name}: {number:,}" for name, number in parts.items())
    shown = [(parts[name], name, name) for name in _PARTS]
    return share_bar(shown, counts["total"], f"{words}, not in the cohort: {outside:,}", style=of)


# One rollout.


def rollout_page(data: Data, now: datetime) -> tuple[str, Html]:
    """Build the title and content of the page of one rollout."""
    namespace, _, name = data["name"].rpartition("/")
    back = tag(
        "nav", tag("a", "Rollouts", href="/rollouts"), class_="crumbs", aria_label="breadcrumb"
    )
    main = tag(
        "div",
        back,
        tag("h1", name, " ", tag("small", "Rollout")),
        tag("div", _frozen(data), id="frozen", data_live=True),
        tag("div", _about(data, namespace, now), id="about", data_live=True),
        tag("div", _commands(data), id="commands", data_live=True),
        tag("h2", "Steps"),
        tag("div", _steps(data), id="steps", data_live=True),
        tag("h2", "Checks"),
        tag("div", _checks(data), id="checks", data_live=True),
        tag("h2", "Preflight"),
        tag("div", _preflight(data), id="preflight", data_live=True),
        tag("h2", "History"),
        tag("div", _history(data), id="history", data_live=True),
    )
    return name, main


def _about(data: Data, namespace: str, now: datetime) -> list[Child]:
    facts: list[tuple[str, Child]] = [
        ("moves", _journey(data)),
        ("in", namespace),
        *data["facts"].items(),
        ("windows", "; ".join(data["windows"])),
        ("age", _age(data["created"], now)),
    ]
    shown = [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts if value]
    state = tag("p", stage(data["state"]), " ", data["reason"], class_="state")
    return [state, tag("dl", shown, class_="facts"), _followers(data["counts"])]


def _followers(counts: Data) -> Child:
    if not counts["total"]:
        return empty("No follower would move, or they are not counted yet.")
    parts = _parts(counts)
    legend = [
        tag("li", tag("span", "", class_=f"dot dot-{name}"), f"{parts[name]:,} {name}")
        for name in _PARTS
        if parts[name] or name in ("healthy", "failing")
    ]
    if counts["idle"]:
        legend.append(tag("li", tag("span", "", class_="dot"), f"{counts['idle']:,} not run yet"))
    outside = max(0, counts["total"] - counts["cohort"])
    legend.append(tag("li", tag("span", "", class_="dot"), f"{outside:,} not in the cohort"))
    cohort = f"{counts['cohort']:,} of {counted(counts['total'], 'follower')} may use the release"
    text = f"{cohort}; {counts['moved']:,} moved to it"
    return [tag("p", text), _bar(counts, "share wide"), tag("ul", legend, class_="legend")]


def _commands(data: Data) -> Html | None:
    if not data["commands"]:
        return None
    rows = [
        tag("div", tag("dt", each["effect"]), tag("dd", tag("code", each["command"])))
        for each in data["commands"]
    ]
    return tag("div", tag("h2", "Commands"), tag("dl", rows, class_="facts tall commands"))


def _steps(data: Data) -> Child:
    if not data["steps"]:
        return empty("The steps are not read yet.")
    rows = [
        (f"Step {number}", each["adds"], each["pause"] or _nothing("none"), stage(each["state"]))
        for number, each in enumerate(data["steps"], start=1)
    ]
    columns = ("Step", "Adds", "Pause after", "State")
    return table(columns, rows, caption="Steps of the rollout", of="stairs")


def _nothing(text: str) -> Html:
    return tag("span", text, class_="quiet")


def _checks(data: Data) -> Child:
    if not data["checks"]:
        return empty("No check has been evaluated yet.")
    rows = [
        (
            tag("span", each["name"], class_="name"),
            tag("span", each["rule"]),
            stage(each["result"]) if each["result"] else _nothing("not evaluated yet"),
            each["message"],
        )
        for each in data["checks"]
    ]
    columns = ("Check", "Requires", "Result", "Observed")
    return table(columns, rows, caption="Latest results of the checks", of="checks")


def _preflight(data: Data) -> list[Child]:
    found = data["preflight"]
    if found is None:
        return [empty("The preflight has no result yet.")]
    counts = (
        f"{found['unchanged']:,} unchanged, {found['changed']:,} changed, "
        f"{found['loses']:,} would lose objects, {found['fails']:,} would fail"
    )
    groups = _groups(found["groups"], "Change", "Changes, grouped by their shape")
    failures = _groups(found["failures"], "Failure", "Failures, grouped by their message")
    return [tag("p", counts, class_="counts"), failures, groups]


def _groups(groups: Sequence[Data], column: str, caption: str) -> Html | None:
    if not groups:
        return None
    rows = [
        (_change(each, of), f"{each['dependents']:,}", _names(each, of))
        for number, each in enumerate(groups)
        for of in [f"{column.lower()}-{number}"]
    ]
    return table((column, "Followers", "For example"), rows, caption=caption, of="groups")


def _change(group: Data, of: str) -> list[Child]:
    """Build the text of a group of followers, with the diff of an example, which a click shows."""
    text, example = tag("span", group["text"], class_="change"), group["example"]
    if example is None:
        return [text]
    title = tag("summary", f"{example['object']} of {example['dependent']}")
    return [
        text,
        tag("details", title, tag("pre", example["diff"], class_="diff"), id=f"{of}-example"),
    ]


def _names(group: Data, of: str) -> list[Child]:
    """Build the names of a group of followers. A click shows all names after the first one."""
    first, *others = group["names"] or ("",)
    if not others:
        return [first]
    unknown = group["dependents"] - len(group["names"])
    more = [tag("p", f"and {unknown:,} more", class_="quiet")] if unknown > 0 else []
    title = tag("summary", f"{len(others):,} more names" if others[1:] else "1 more name")
    return [first, tag("details", title, [tag("p", each) for each in others], more, id=of)]


def _history(data: Data) -> Child:
    if not data["history"]:
        return empty("Nothing has happened yet.")
    rows = [
        (
            tag("time", each["time"], datetime=each["time"]),
            stage(each["state"]),
            str(each["step"]) if each["step"] else _nothing("before the first"),
            each["message"],
        )
        for each in data["history"]
    ]
    columns = ("Time", "State", "Step", "Reason")
    return table(columns, rows, caption="History, oldest first", of="history")
