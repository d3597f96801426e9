"""Functions for blueprints that keep backups."""

from __future__ import annotations

from typing import Annotated

from polyver import functions


@functions.register("Expired", idempotent=True)
def expired(_ctx: object, backups: list[str], keep: int) -> dict[str, object]:
    """Return the backups to delete: all but the newest, by name."""
    return {"expired": sorted(backups)[: max(len(backups) - keep, 0)]}


@functions.register("Expired", version="v0.1.0", idempotent=True)
def expired_v010(
    _ctx: object,
    backups: list[str],
    keep: Annotated[int, functions.Description("How many to keep.")] = 7,
    only_prefix: Annotated[str, functions.Alias("only-prefix")] = "",
) -> dict[str, object]:
    """Return the backups to delete, among those with a prefix."""
    own = sorted(name for name in backups if name.startswith(only_prefix))
    return {"expired": own[: max(len(own) - keep, 0)], "kept": own[max(len(own) - keep, 0) :]}
