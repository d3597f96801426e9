"""Templates by chance: mostly with arguments of the types that are wanted."""

from __future__ import annotations

import random
import re

__all__ = ["DATA", "drawn"]

DATA = {
    "s": "hello World",
    "e": "",
    "u": "Äb ☃",
    "i": 7,
    "z": 0,
    "neg": -3,
    "f": 2.5,
    "w": 4.5,
    "t": True,
    "no": False,
    "nil": None,
    "l": [3, 1, 2],
    "ws": ["pear", "Apple", "fig"],
    "mix": [1, "a", 2.5, None, [1, 2], {"k": "v"}],
    "none": [],
    "em": {},
    "m": {"b": 2, "a": "x", "c": {"d": 1.5}},
    "os": [{"n": "p", "v": 1}, {"n": "q", "v": 2}],
    "path": "/a/b/../c.tar.gz",
    "multi": "one\ntwo\n  three",
}
_LEAVES = {
    "str": '.s .e .u "abc" "a,b,c" .m.a .path .multi "12" "1.5" (index_.ws_1) "FooBar_baz-1"',
    "int": "1 0 -2 7 3 10 (len_.l) (int_.i) 0x1F",
    "i64": '.i .z .neg (add_1_2) (int64_"5") (index_.l_0)',
    "flt": ".f .w 1.5 -0.25 1e3 0.1",
    "bool": "true false .t .no",
    "list": '.l .ws .mix .none (list_1_"a"_nil) (until_3) (splitList_","_"a,b") .os (list)',
    "map": '.m .em (dict_"a"_1_"b"_"x") (dict) (index_.os_0) .m.c',
    "small": "0 1 2 3",
    "nil": ".nil nil",
}
_SHAPES = {
    "str": (
        "upper $str|lower $str|title $str|trim $str|trimAll $str $str|trimSuffix $str $str|"
        "repeat $small $str|substr $int $int $str|trunc $int $str|abbrev $int $str|quote $any $any|"
        "squote $any|cat $any $any|indent $small $str|nindent $small $str|replace $str $str $str|"
        "plural $str $str $int|sha256sum $str|toString $any|join $str $any|b64enc $str|b64dec $str|"
        "toJson $any|toPrettyJson $any|snakecase $str|camelcase $str|kebabcase $str|wrap $int $str|"
        'printf "%v %v" $any $any|printf "%5d %-5d %05d" $int $i64 $int|printf "%q %s" $str $str|'
        'printf "%T %+v" $any $any|printf "%#v" $any|printf "%d" $any|printf "%s" $any|'
        'printf "%g %e %8.3f" $flt $flt $flt|printf "%6.2v %-8v" $any $any|print $any $any $any|'
        "println $any $any|html $any|js $str|urlquery $any|typeOf $any|kindOf $any|base $str|"
        'dir $str|clean $str|regexFind "[a-z]+" $str|regexReplaceAll "([a-z])(.)" $str "<$2$1>"|'
        "default $str $any|ternary $str $str $bool|toYaml $any|coalesce $any $str|seq $int $int|"
        "first (splitList $str $str)|adler32sum $str"
    ),
    "int": "len $any|int $any|atoi $str|len (splitList $str $str)",
    "i64": (
        "add $any $any|sub $any $any|mul $any $any|div $any $any|mod $any $any|max $any $any|"
        "min $any $any|add1 $any|int64 $any|toDecimal $any"
    ),
    "flt": (
        "addf $any $any|subf $any $any|mulf $any $any|divf $any $any|floor $any|ceil $any|"
        "round $any $small|float64 $any|maxf $any $any"
    ),
    "bool": (
        "eq $any $any|eq $str $str|eq $int $i64|ne $any $any|lt $int $i64|le $str $str|"
        "gt $flt $flt|ge $any $any|not $any|empty $any|contains $str $str|hasPrefix $str $str|"
        "has $any $list|"
        "hasKey $map $str|kindIs $str $any|deepEqual $any $any|regexMatch $str $str|all $any $any|"
        'semverCompare ">=1.0" $str|and $any $bool|or $bool $any|isAbs $str'
    ),
    "list": (
        "list $any $any|append $list $any|prepend $list $any|concat $list $list|rest $list|"
        "initial $list|reverse $list|uniq $list|without $list $any|compact $list|until $small|"
        "splitList $str $str|keys $map|values $map|sortAlpha $any|toStrings $any|slice $list 1|"
        'chunk $small $list|regexFindAll "[a-z]" $str $int|regexSplit "[ ,]" $str $int'
    ),
    "map": (
        'dict $str $any|set (dict "z" 1) $str $any|unset $map $str|pick $map "a" $str|'
        'omit $map "a"|merge (dict "a" $any) $map|mergeOverwrite (dict "a" $any) $map|'
        "deepCopy $map|split $str $str|fromJson (toJson $map)"
    ),
    "any": (
        "default $any $any|coalesce $any $any|first $list|last $list|index $list $int|"
        "index $map $str|get $map $str|and $any $any|or $any $any|index $any $any"
    ),
}
_KINDS = ("str", "int", "i64", "flt", "bool", "list", "map")
_PLACE = re.compile(r"\$(str|int|i64|flt|bool|list|map|any|small)\b")


class _Drawn:
    """One template."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._names: list[tuple[str, str]] = []

    def body(self, depth: int) -> str:
        known = len(self._names)
        text = "".join(self._node(depth) for _ in range(self._chance.randint(1, 3)))
        del self._names[known:]
        return text

    def _node(self, depth: int) -> str:
        kind = self._chance.choice(("write", "write", "text", "keep", "if", "with", "range"))
        if depth <= 0 or kind == "write":
            left, right = self._chance.choice(("{{", "{{-")), self._chance.choice(("}}", "-}}"))
            return f"{left} {self._outer('any', 3)} {right}"
        match kind:
            case "text":
                return self._chance.choice((" ", "text", "\n", "a\n  b", " {{/* c */}} "))
            case "keep":
                return self._keep()
            case "if":
                return f"{{{{ if {self._outer('any', 2)} }}}}{self.body(depth - 1)}{self._else()}"
            case "with":
                return f"{{{{ with {self._outer('any', 2)} }}}}[{{{{ . }}}}]{self._else()}"
        over = self._outer(self._chance.choice(("list", "map")), 2)
        jump = self._chance.choice(
            ("", "{{ break }}", "{{ continue }}", "{{ if $k }}{{ break }}{{ end }}")
        )
        return f"{{{{ range $k, $v := {over} }}}}{{{{ $k }}}}={{{{ $v }}}};{jump}{{{{ end }}}}"

    def _keep(self) -> str:
        kind, name = self._chance.choice(_KINDS), f"$v{len(self._names)}"
        text = f"{{{{ {name} := {self._outer(kind, 2)} }}}}"
        self._names.append((kind, name))
        return text

    def _else(self) -> str:
        return self._chance.choice(("{{ end }}", "{{ else }}E{{ end }}"))

    def _outer(self, kind: str, depth: int) -> str:
        text = self._value(kind, depth)
        return ".nil" if text == "nil" else text

    def _value(self, kind: str, depth: int) -> str:
        if kind == "any" or (kind in _KINDS and self._chance.random() < 0.05):
            kind = self._chance.choice((*_KINDS, "str", "nil", "any"))
        kind = "str" if kind == "any" and depth <= 0 else kind
        if kind not in _SHAPES or (kind != "any" and (depth <= 0 or self._chance.random() < 0.2)):
            return self._leaf(kind)
        shape = self._chance.choice(_SHAPES[kind].split("|"))
        return f"({_PLACE.sub(lambda found: self._value(found[1], depth - 1), shape)})"

    def _leaf(self, kind: str) -> str:
        known = [name for found, name in self._names if found == kind]
        leaf = self._chance.choice([*_LEAVES[kind].split(), *known])
        return leaf.replace("_", " ") if leaf.startswith("(") else leaf


def drawn(count: int) -> list[str]:
    """Some templates, the same each time."""
    return [_Drawn(seed).body(3) for seed in range(count)]
