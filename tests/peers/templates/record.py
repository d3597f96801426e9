"""Ask Go's text/template, with the functions of sprig, about our templates; keep the answers.

`make record` runs this; tests compare with the recording and need no Go.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.peers.templates.drawn import DATA, drawn

HERE = Path(__file__).parent
DRAWN = 500
RECORDED = HERE.parent / "recorded_templates.json"


def questions() -> list[dict[str, Any]]:
    """Each template with the data above it, and some by chance."""
    found: list[dict[str, Any]] = []
    context: dict[str, Any] = {}
    for line in (HERE / "templates.txt").read_text().split("\n"):
        if line.startswith("## "):
            first, _, rest = line[3:].partition(" ")
            named = first in ("default", "zero")
            context = {"missing": first} if named else {}
            context["data"] = json.loads((rest if named else line[3:]).replace("⏎", "\\n"))
        elif line and not line.startswith("# "):
            found.append({"template": line.replace("⏎", "\n"), **context})
    return [*found, *({"template": template, "data": DATA} for template in drawn(DRAWN))]


def ask(*arguments: str, given: Any = None) -> Any:
    asked = subprocess.run(
        ["go", "run", ".", *arguments],
        cwd=HERE,
        input=json.dumps(given),
        text=True,
        stdout=-1,
        check=True,
    )
    return json.loads(asked.stdout)


def main() -> int:
    asked = questions()
    try:
        functions, answers = ask("functions"), ask(given=asked)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"Go's templates could not be asked: {error}; Go is needed\n")
        return 1
    groups: list[dict[str, Any]] = []
    for question, answer in zip(asked, answers, strict=True):
        context = {key: value for key, value in question.items() if key != "template"}
        if not groups or groups[-1]["context"] != context:
            groups.append({"context": context, "answers": []})
        groups[-1]["answers"].append({"template": question["template"], **answer})
    text = json.dumps({"functions": functions, "groups": groups}, indent=0, ensure_ascii=False)
    RECORDED.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
