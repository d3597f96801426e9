"""Ask the Go libraries that Kubernetes uses about our corpora, and keep what they say.

`make record` runs this; tests compare with the recording and need no Go.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from itertools import product
from pathlib import Path

HERE = Path(__file__).parent

SCALARS = """
y Y yes Yes YES n N no No NO on On ON off Off OFF true True TRUE tRue false False FALSE null
Null NULL ~ nil None 0 -0 +0 1 -1 +1 00 007 0644 -0644 +0644 08 09 0o17 0O17 -0o17 0o8 0o
0x1F 0X1f -0x1F +0x1 0x 0xg 0b101 0B101 -0b1 0b 0b2 1_000 1__0 _1 1_ 0_7 0x_1 0b_1 1e3 1E3
1e+3 1e-3 12e03 1e 1e+ e1 .5 +.5 -.5 1. 1.0 1.5 -1.5 1.10 0.1 0. -0.0 . .. ... 1.2.3
685_230.15 1e21 1e20 1e-7 1E-7 1e400 -1e400 .inf .Inf .INF +.inf -.inf .nan .NaN .NAN inf
nan infinity 1:30 190:20:30 2026-01-02 0.0.0 2026-01-02T03:04:05Z = <<x 9223372036854775807
9223372036854775808 -9223372036854775808 -9223372036854775809 18446744073709551615
18446744073709551616 123456789012345678901234567890 +9223372036854775808
0777777777777777777777 01777777777777777777777 0777777777777777777777777 0xFFFFFFFFFFFFFFFF
0xFFFFFFFFFFFFFFFFF
""".split()

DOCUMENTS = [
    "a: 1\nb: 2",
    "a: 1\na: 2",
    "'a': 1\na: 2",
    "1: a",
    "1: a\n2: b",
    "true: a",
    "y: a",
    "null: b",
    "~: 1",
    "1.5: c",
    "0644: x",
    "1e3: x",
    "? [a]\n: b",
    "? {a: 1}\n: b",
    "? a\n? b",
    "2026-01-02: x",
    "&x a",
    "[*x]",
    "a: &x {b: 1}\nc: *x",
    "a: &x {b: 1}\nc: {<<: *x, d: 2}",
    "<<: {a: 1}",
    "'<<': {a: 1}",
    "<<: 1",
    "<<: [1]",
    "a: *nope",
    "a:\tb",
    "a: b: c",
    "{",
    "[",
    "a: 'x",
    'a: "x',
    '"\\x41"',
    '"\\ud83d"',
    '"a\\/b"',
    "'it''s'",
    "a: |\n  x\n  y\n",
    "a: >\n  x\n  y\n",
    "a: |-\n  x\n\n",
    "a: |+\n  x\n\n",
    "- 1\n-  2",
    "- - - 1",
    "{a, b}",
    "{a: }",
    "[a, b: c]",
    "[1, 2,]",
    "a:\n- b\n- c",
    "a: # nothing\nb: x # y",
    "@a",
    "`a",
    "%a",
    "a: @b",
    "%YAML 1.1\n--- x",
    "%YAML 1.2\n--- x",
    "a: 1\r\nb: 2",
    "!!str 1",
    "!!str",
    "!!int '3'",
    "!!int y",
    "!!float 1",
    "!!float 1.5",
    "!!bool yes",
    "!!bool y",
    "!!null x",
    "!!null ''",
    "!!binary aGk=",
    "!!map {a: 1}",
    "!!seq [1]",
    "!!set {a, b}",
    "!!omap [a: 1]",
    "!!timestamp 2026-01-02",
    "!foo bar",
    "! 1",
    "'1'",
    '"1"',
    "'y'",
    "é: ü",
    "a: 😀",
    "\t",
    "",
    "# nothing",
    "--- a",
]


def kube_corpus() -> list[str]:
    numbers = ["0", "1", "01", "2", "10", "11", "100", "9223372036854775807", "9223372036854775808"]
    named = [f"v{a}{s}{b}" for a, s, b in product(numbers, ("alpha", "beta"), numbers[:6])]
    others = [
        "v",
        "v1b",
        "v1beta",
        "v1beta1x",
        "v1gamma1",
        "1",
        "V1",
        "va",
        "foo1",
        "foo10",
        "foo2",
        "foo",
        "v1-beta1",
        "v1.2",
        "v１",
        "z",
        "a",
    ]
    return shuffled([*(f"v{number}" for number in numbers), *named, *others])


def semver_corpus() -> list[str]:
    cores = ["0.0.0", "0.0.1", "0.1.0", "1.0.0", "1.2.3", "1.2.10", "1.10.0", "10.0.0"]
    tails = """
-0 -1 -2 -10 -alpha -alpha.1 -alpha.2 -alpha.10 -alpha.beta -beta -beta.2 -beta.11 -rc.1
-rc.1.0 -RC.1 -a-b --1 --- -x.7.z.92 -0a -1a -a.-.b -alpha+build +build +build.1 +001
""".split()
    wrong = """
1 1.2 v1.2.3.4 1.2.3.4 01.2.3 1.02.3 1.2.03 1.2.3- 1.2.3-01 1.2.3-a..b 1.2.3-.a 1.2.3+
1.2.3-a_b 1.2.3+a+b a.b.c 1.2.x -1.2.3 1.-2.3 1.2.3-é 1.2.3-a. ~1.2.3 >1.2.3 =1.2.3 1,2,3
""".split()
    return shuffled([*cores, *(core + tail for core, tail in product(cores, tails)), *wrong])


def shuffled(texts: list[str]) -> list[str]:
    return random.Random(1).sample(texts, len(texts))


def main() -> int:
    questions = {
        "yaml": [*SCALARS, *DOCUMENTS],
        "kube": kube_corpus(),
        "semver": semver_corpus(),
    }
    command = ["go", "run", "."]
    try:
        asked = subprocess.run(
            command, cwd=HERE, input=json.dumps(questions), text=True, stdout=-1, check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"the peers could not be asked: {error}; Go is needed\n")
        return 1
    (HERE / "recorded.json").write_text(asked.stdout)
    # A process of its own: it needs the product's own list of kinds, and this one needs nothing.
    objects = [sys.executable, "-m", "tests.peers.kubeobjects.record"]
    return subprocess.run(objects, cwd=HERE.parents[1], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
