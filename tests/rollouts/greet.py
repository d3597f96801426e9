"""The function Greet in three versions, which tests of rollouts load as users do."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from polyver import functions

_UNTIL = "until "


@functions.register("Greet", version="v0.1.0", stable=True)
def greet(ctx: object, name: str = "") -> dict[str, Any]:
    return {"text": f"Hello, {name}"}


@functions.register("Greet", version="v0.2.0")
def greet_v020(ctx: object, name: str = "") -> dict[str, Any]:
    """Fails for the name `bad`; the name `until FILE` waits until the file is there."""
    if name == "bad":
        raise ValueError("this version cannot greet")
    while name.startswith(_UNTIL) and not Path(name.removeprefix(_UNTIL)).exists():
        time.sleep(0.02)
    return {"text": f"Good day, {name}"}


@functions.register("Greet", version="v0.3.0")
def greet_v030(ctx: object, name: str = "", *, language: str) -> dict[str, Any]:
    return {"text": f"{language}: {name}"}


@functions.register("Greet", version="v0.4.0")
def greet_v040(ctx: object, name: str = "") -> dict[str, Any]:
    return {"text": f"Welcome, {name}"}
