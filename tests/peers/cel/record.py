"""Ask the libraries that Kubernetes has for rules in CEL about our expressions; keep the answers.

`make record` runs this; tests compare with the recording and need no Go.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
RECORDED = HERE.parent / "recorded_cel.json"
DRAWN = 600
PLAIN = {"type": "object"}
FIELDS = {
    "type": "object",
    "properties": {
        "i": {"type": "integer"},
        "j": {"type": "integer"},
        "d": {"type": "number"},
        "s": {"type": "string", "maxLength": 8},
        "b": {"type": "boolean"},
        "l": {"type": "array", "maxItems": 4, "items": {"type": "integer"}},
        "w": {"type": "array", "maxItems": 4, "items": {"type": "string", "maxLength": 4}},
        "m": {"type": "object", "maxProperties": 4, "additionalProperties": {"type": "integer"}},
        "x": {"x-kubernetes-int-or-string": True, "maxLength": 4},
    },
}
VALUES = {"i": 3, "j": 0, "d": 2.5, "s": "abc", "b": True, "l": [3, 1, 2], "w": ["b", "a"]}
VALUES |= {"m": {"p": 1, "q": 0}, "x": "7"}


class Drawn:
    """Expressions by chance: mostly of the type that is wanted, now and then of another."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._names: list[tuple[str, str]] = []

    def expression(self, kind: str, depth: int) -> str:
        if self._chance.random() < 0.04:
            kind = self._chance.choice(["int", "string", "bool", "double", "ints", "words"])
        known = [name for name, found in self._names if found == kind]
        options = [*_LEAVES[kind], *known, *known]
        if depth <= 0 or self._chance.random() < 0.15:
            return self._chance.choice(options)
        return self._filled(self._chance.choice(_SHAPES[kind]), depth - 1)

    def _filled(self, shape: str, depth: int) -> str:
        """A shape with its places filled; `@ints:x:bool` is a macro over a list."""
        words = []
        for word in shape.split(" "):
            if word.startswith("@"):
                words.append(self._macro(word[1:], depth))
            elif word.startswith("$"):
                words.append(f"({self.expression(word[1:], depth)})")
            else:
                words.append(word)
        return " ".join(words)

    def _macro(self, text: str, depth: int) -> str:
        over, item, macro, inside = text.split(":")
        name = f"v{len(self._names)}"
        outer = self.expression(over, depth)
        self._names.append((name, item))
        test = self.expression(inside, depth)
        self._names.pop()
        return f"({outer}).{macro}({name}, {test})"


_LEAVES = {
    "int": ["self.i", "self.j", "1", "-2", "0", "9223372036854775807", "self.m.p", "self.l[0]"],
    "double": ["self.d", "1.5", "0.0", "-1e3"],
    "string": ["self.s", "'a'", "''", "'äb'", "self.w[0]", "self.w[5]"],
    "bool": ["self.b", "true", "false", "has(self.s)", "self.m.zzz > 0"],
    "ints": ["self.l", "[1, 2]", "[]", "[0]"],
    "words": ["self.w", "['a', 'b']", "self.s.split('b')"],
}
_SHAPES = {
    "int": [
        *("$int + $int", "$int - $int", "$int * $int", "$int / $int", "$int % $int", "- $int"),
        *("size( $string )", "size( $ints )", "$ints .sum()", "$ints .max()", "int( $double )"),
        *("int( $string )", "$bool ? $int : $int", "$ints [ $int ]", "$string .indexOf( $string )"),
        *("$ints .indexOf( $int )", "self.m[ $string ]", "dyn( $int ) + dyn( $double )"),
        *("self.?m.p.orValue( $int )", "optional.of( $int ).optMap(o, o + $int ).value()"),
    ],
    "double": [
        *("$double + $double", "$double / $double", "double( $int )", "$bool ? $double : $double"),
        *("double( $string )", "- $double"),
    ],
    "string": [
        *("$string + $string", "string( $int )", "string( $double )", "string( $bool )"),
        *("$bool ? $string : $string", "$string .substring( $int )", "$words .join( $string )"),
        *("$string .replace( $string , $string )", "$string .upperAscii()", "$words [ $int ]"),
        *("$string .charAt( $int )", "'%s:%d'.format([ $string , $int ])", "dyn(self.x) + $string"),
    ],
    "bool": [
        *("$int == $int", "$int < $int", "$int >= $double", "$string == $string", "! $bool"),
        *("$string < $string", "$bool && $bool", "$bool || $bool", "$bool ? $bool : $bool"),
        *(
            "$int in $ints",
            "$string in $words",
            "$string in self.m",
            "$string .startsWith( $string )",
        ),
        *("$string .contains( $string )", "$string .matches('^[a-c]+$')", "$ints == $ints"),
        *("@ints:int:all:bool", "@ints:int:exists:bool", "@words:string:exists_one:bool"),
        *(
            "@words:string:all:bool",
            "$ints .isSorted()",
            "type(self.x) == string",
            "self.x == $int",
        ),
        *("sets.contains( $ints , $ints )", "dyn( $int ) == dyn( $double )"),
    ],
    "ints": [
        *("$ints + $ints", "@ints:int:map:int", "@ints:int:filter:bool", "@words:string:map:int"),
        *("$ints .sort()", "$ints .distinct()", "[ $int , $int ]", "$bool ? $ints : $ints"),
        *("$ints .slice( $int , $int )", "$ints .reverse()"),
    ],
    "words": [
        *("$words + $words", "@words:string:map:string", "@words:string:filter:bool"),
        *("$string .split( $string )", "[ $string ]", "@ints:int:map:string", "$words .sort()"),
    ],
}


def drawn() -> list[str]:
    kinds = ["bool", "bool", "int", "string", "double", "ints", "words"]
    return [Drawn(seed).expression(kinds[seed % len(kinds)], 1 + seed % 4) for seed in range(DRAWN)]


def groups() -> list[dict[str, Any]]:
    lines = (HERE / "expressions.txt").read_text().split("\n")
    plain = [line for line in lines if line and not line.startswith("# ") and line[:3] != "## "]
    return [
        {"schema": PLAIN, "self": {}, "rules": plain},
        *yaml.safe_load((HERE / "groups.yaml").read_text()),
        {"schema": FIELDS, "self": VALUES, "rules": drawn()},
    ]


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
    questions = groups()
    try:
        functions, answers = ask("functions"), ask(given=questions)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"the libraries could not be asked: {error}; Go is needed\n")
        return 1
    kept = [
        {key: value for key, value in group.items() if key != "rules"} | {"answers": said}
        for group, said in zip(questions, answers, strict=True)
    ]
    text = json.dumps({"functions": functions, "groups": kept}, indent=0, ensure_ascii=False)
    RECORDED.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
