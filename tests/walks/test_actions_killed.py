"""kill -9 in each phase of an action in turn: what was completed is never done again."""

from __future__ import annotations

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
    for phase in range(PHASES):
        again, once = actions.run("Again", phase), actions.run("Once", phase)
        actions.server.kill()
        for name in (again, once):
            (actions.folder / f"{name}-p{phase}").touch()
        actions.server = actions.start()
        assert actions.end(again)["state"] == "complete"
        failed = actions.end(once)
        states = [each["state"] for each in failed["actions"][0]["phases"]]
        rest = ["pending"] * (PHASES - phase - 1)
        assert states == ["complete"] * phase + ["failed"] + rest
        assert failed["actions"][0]["deferPhase"]["state"] == "complete"
        reason = failed["actions"][0]["phases"][phase]["reason"]
        assert "Once v0.0.0 was running" in reason
        assert "not idempotent" in reason
        assert reason in failed["error"]["message"]
        counts = Counter(actions.lines())
        assert [counts[f"{again} p{n}"] for n in range(PHASES)] == [
            2 if n == phase else 1 for n in range(PHASES)
        ]
        assert [counts[f"{once} p{n}"] for n in range(PHASES)] == [1] * (phase + 1) + [
            0 for _ in rest
        ]
        assert counts[f"{again} last"] == counts[f"{once} last"] == 1
