"""kill -9 in each phase of an action: what was completed is never done again.

By default one kill meets five actions, each in another phase; with POLYVER_KILLS=5 there is a
kill for each phase in turn.
"""

from __future__ import annotations

import os
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.walks.support import eventually
from tests.walks.test_killed import Server

GROUP = "/apis/cr.kanister.io/v1alpha1/namespaces/default"
PHASES = 5
IN_TURN = int(os.environ.get("POLYVER_KILLS", "0")) >= PHASES
TURNS = [[n] for n in range(PHASES)] if IN_TURN else [[*range(PHASES)]]
CODE = """
    import time
    from pathlib import Path
    from polyver import functions

    def told(ctx, said, gate):
        with open(said, "a") as file:
            file.write(f"{ctx.params['Options']['run']} {ctx.phase}\\n")
        while not Path(gate).exists():
            time.sleep(0.005)
        return {"phase": ctx.phase}

    @functions.register("Again", idempotent=True)
    def again(ctx, said: str, gate: str):
        return told(ctx, said, gate)

    @functions.register("Once")
    async def once(ctx, said: str, gate: str):
        return told(ctx, said, gate)
"""


class Actions:
    """Servers, one after the other, on the same data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said = folder / "said"
        self.said.touch()
        (folder / "code.py").write_text(textwrap.dedent(CODE))
        self.server = self.start()

    def start(self) -> Server:
        code = str(self.folder / "code.py")
        return Server(self.folder / "data", "--functions", code)

    def make(self, plural: str, kind: str, name: str, **content: Any) -> None:
        body = {"apiVersion": "cr.kanister.io/v1alpha1", "kind": kind}
        connection = self.server.connect()
        path, metadata = f"{GROUP}/{plural}", {"metadata": {"name": name}}
        status, made = self.server.ask(connection, "POST", path, body | metadata | content)
        connection.close()
        assert status == 201, made

    def blueprint(self, function: str) -> None:
        said = {"said": str(self.said)}
        gate = f"{self.folder}/{{{{ .Options.run }}}}-"
        phases = [
            {"func": function, "name": f"p{n}", "args": said | {"gate": f"{gate}p{n}"}}
            for n in range(PHASES)
        ]
        last = {"func": function, "name": "last", "args": said | {"gate": f"{gate}last"}}
        action = {"phases": phases, "deferPhase": last}
        self.make("blueprints", "Blueprint", function.lower(), actions={"go": action})

    def run(self, function: str, phase: int) -> str:
        """Begin an action that goes on to a phase, and stays there."""
        name = f"{function.lower()}-{phase}"
        for other in (*(f"p{n}" for n in range(PHASES)), "last"):
            if other != f"p{phase}":
                (self.folder / f"{name}-{other}").touch()
        action = {"name": "go", "blueprint": function.lower(), "options": {"run": name}}
        self.make("actionsets", "ActionSet", name, spec={"actions": [action]})
        eventually(lambda: f"{name} p{phase}" in self.lines())
        return name

    def lines(self) -> list[str]:
        return self.said.read_text().splitlines()

    def end(self, name: str) -> Any:
        def ended() -> Any:
            status = self.server.get(f"{GROUP}/actionsets/{name}").get("status") or {}
            return status if status.get("state") in ("complete", "failed") else None

        return eventually(ended)


@pytest.fixture
def actions(tmp_path: Path) -> Iterator[Actions]:
    found = Actions(tmp_path)
    yield found
    found.server.kill()


def test_a_kill_in_any_phase_costs_at_most_that_phase(actions: Actions) -> None:
    for function in ("Again", "Once"):
        actions.blueprint(function)
    for phases in TURNS:
        for phase in phases:
            for function in ("Again", "Once"):
                actions.run(function, phase)
        actions.server.kill()
        for phase in phases:
            for function in ("again", "once"):
                (actions.folder / f"{function}-{phase}-p{phase}").touch()
        actions.server = actions.start()
        for phase in phases:
            check_repeated(actions, phase)
            check_given_up(actions, phase)


def check_repeated(actions: Actions, phase: int) -> None:
    """What is idempotent was done again, and all else once."""
    name = f"again-{phase}"
    assert actions.end(name)["state"] == "complete"
    counts = Counter(actions.lines())
    assert [counts[f"{name} p{n}"] for n in range(PHASES)] == [
        2 if n == phase else 1 for n in range(PHASES)
    ]
    assert counts[f"{name} last"] == 1


def check_given_up(actions: Actions, phase: int) -> None:
    """What is not idempotent was done once, failed with that reason, and ended its action."""
    name = f"once-{phase}"
    failed = actions.end(name)
    [action] = failed["actions"]
    left = PHASES - phase - 1
    states = [each["state"] for each in action["phases"]]
    assert states == ["complete"] * phase + ["failed"] + ["pending"] * left
    assert action["deferPhase"]["state"] == "complete"
    reason = action["phases"][phase]["reason"]
    assert "Once v0.0.0 was running" in reason
    assert "not idempotent" in reason
    assert reason in failed["error"]["message"]
    counts = Counter(actions.lines())
    done = [counts[f"{name} p{n}"] for n in range(PHASES)]
    assert done == [1] * (phase + 1) + [0] * left
    assert counts[f"{name} last"] == 1
