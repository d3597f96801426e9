"""Templates: what they refuse and where, what they may take, what they can reach."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.core import PolyverError
from polyver.languages.gotemplate import (
    FUNCTIONS,
    InvalidData,
    InvalidTemplate,
    RenderFailed,
    RenderLimits,
    TemplateError,
    compile_template,
    render_value,
)

BLUEPRINT: dict[str, Any] = {
    "Phases": {"dump": {"Output": {"path": "s3://b/k", "size": "12"}}},
    "Options": {},
    "Object": {"spec": None},
}


def render(text: str, data: object = None) -> str:
    return compile_template(text).render(data)


def refusal(text: str, data: object = None) -> TemplateError:
    with pytest.raises(TemplateError) as found:
        compile_template(text, name="bp").render(data)
    return found.value


# Mistakes and their places


def test_a_missing_field_is_told_with_the_part_that_lacks_it() -> None:
    problem = refusal("a\nb {{ .Phases.dump.Output.pth }}", BLUEPRINT)
    assert (problem.line, problem.column) == (2, 25)
    assert str(problem) == (
        '.Phases.dump.Output has no entry for key "pth" '
        "(bp:2:25, near {{ .Phases.dump.Output.pth }}); did you mean path?"
    )


def test_without_a_near_one_the_known_fields_are_listed() -> None:
    assert refusal("{{ .Phases.restore.Output }}", BLUEPRINT).hint == "known: dump"
    assert refusal("{{ .Options.x }}", BLUEPRINT).hint == "it is empty"


def test_a_field_of_nothing_is_told_as_such() -> None:
    problem = refusal("{{ .Object.spec.replicas }}", BLUEPRINT)
    assert problem.fact == '.Object.spec is null, so it has no "replicas"'


def test_fields_of_variables_and_parentheses_are_told_with_them() -> None:
    assert refusal("{{ $o := .Options }}{{ $o.x }}", BLUEPRINT).fact.startswith("$o has no entry")
    assert refusal('{{ (dict "a" 1).b }}').fact.startswith('(dict "a" 1) has no entry')


def test_an_unknown_function_is_refused_before_anything_is_rendered() -> None:
    with pytest.raises(InvalidTemplate) as found:
        compile_template("{{ .a }}\n{{ .b | uper }}", name="bp")
    assert (found.value.line, found.value.column) == (2, 9)
    assert found.value.hint == "did you mean upper?"


@pytest.mark.parametrize("name", ["now", "env", "uuidv4", "getHostByName", "genPrivateKey"])
def test_what_reaches_outside_is_not_there_and_the_hint_says_why(name: str) -> None:
    problem = refusal(f'{{{{ {name} "X" }}}}')
    assert problem.fact == f'function "{name}" not defined'
    assert problem.hint.startswith("templates ")


def test_a_block_without_an_end_is_told_where_it_began() -> None:
    problem = refusal("x\n{{ if true }}\ny\n")
    assert (problem.line, problem.column) == (2, 4)


def test_a_near_text_that_is_long_is_cut_around_the_place() -> None:
    problem = refusal('{{ print "' + "x" * 500 + '" (nope) "' + "y" * 500 + '" }}')
    assert "nope" in problem.near
    assert len(problem.near) < 70


def test_a_number_of_another_kind_is_refused_with_what_to_write() -> None:
    problem = refusal("{{ range until .n }}{{ end }}", {"n": 3})
    assert problem.fact == "wrong type for value; expected int; got int64"
    assert problem.hint == "convert it: (int …)"
    assert render("{{ range until (int .n) }}{{ . }}{{ end }}", {"n": 3}) == "012"


def test_whole_numbers_and_floats_are_not_compared() -> None:
    problem = refusal("{{ eq .n 3 }}", {"n": 3.0})
    assert "float64 and int" in problem.fact
    assert "(int …)" in problem.hint


def test_what_a_template_fails_with_on_purpose_is_told() -> None:
    assert refusal('{{ fail "no image" }}').fact == "error calling fail: no image"
    assert refusal('{{ required "no image" .i }}', {"i": ""}).fact.endswith("no image")


def test_the_date_of_a_text_is_the_moment_that_it_names() -> None:
    """Where Go would take the present time, unasked."""
    assert render('{{ .t | date "2006-01-02" }}', {"t": "2024-03-01T10:20:30.5Z"}) == "2024-03-01"
    assert "does not match the layout" in refusal('{{ date "2006" "soon" }}').fact
    assert refusal('{{ date "2006" 1.5 }}').hint == "convert it: (toDate …)"


def test_moments_before_and_behind_the_calendar_are_refused() -> None:
    assert refusal('{{ toDate "2006" "x" | dateModify "-1h" }}').fact.endswith("out of range")


# Data


def test_data_stays_as_it_is() -> None:
    data = {"m": {"a": 1}, "l": [1]}
    render('{{ $_ := set .m "b" 2 }}{{ $_ := unset .m "a" }}{{ .m }}', data)
    assert data == {"m": {"a": 1}, "l": [1]}


def test_moments_may_be_data() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert render('{{ .at }}|{{ date "15:04" .at }}', {"at": moment}) == (
        "2026-01-02 03:04:05 +0000 UTC|03:04"
    )


@pytest.mark.parametrize(
    ("data", "place"),
    [({"a": [object()]}, "a[0]"), ({"a": {1: 2}}, "a"), ({"a": {"b": {1, 2}}}, "a.b")],
)
def test_data_that_is_not_plain_is_refused_with_its_place(data: object, place: str) -> None:
    with pytest.raises(InvalidData) as found:
        render("x", data)
    assert found.value.at == place


def test_data_that_holds_itself_is_refused() -> None:
    data: dict[str, Any] = {}
    data["self"] = data
    with pytest.raises(InvalidData, match="100 levels"):
        render("x", data)


def test_numbers_past_64_bits_are_floats() -> None:
    assert render("{{ .n }} {{ typeOf .n }}", {"n": 2**70}) == "1.1805916207174113e+21 float64"


def test_what_is_no_utf_8_is_replaced_in_the_end_only() -> None:
    assert render('{{ b64dec "/w==" }}') == "\ufffd"
    assert render('{{ b64dec "/w==" | b64enc }}') == "/w=="
    assert render('{{ substr 0 1 "ä" }}{{ substr 1 2 "ä" }}') == "ä"


# What is given


def test_functions_may_be_given() -> None:
    made = compile_template(
        "{{ now | date `2006` }} {{ lookup .name `x` }}",
        functions={
            "now": lambda: datetime(2026, 1, 2, tzinfo=UTC),
            "lookup": lambda name, key: {"name": name, "key": key},
        },
    )
    assert made.render({"name": "a"}) == "2026 map[key:x name:a]"


def test_what_a_given_function_refuses_is_told_with_the_place() -> None:
    def lookup(_: object) -> object:
        raise PolyverError("there is no such secret")

    made = compile_template("a\n{{ lookup 1 }}", functions={"lookup": lookup})
    with pytest.raises(RenderFailed, match="no such secret") as found:
        made.render(None)
    assert found.value.line == 2
    with pytest.raises(RenderFailed, match="argument"):
        compile_template("{{ lookup }}", functions={"lookup": lookup}).render(None)


def test_templates_are_rendered_again_and_again() -> None:
    made = compile_template('{{ $d := dict }}{{ $_ := set $d "n" . }}{{ $d.n }}')
    assert [made.render(number) for number in range(3)] == ["0", "1", "2"]


# Values full of templates


def test_texts_inside_of_a_value_are_rendered_and_the_rest_stays() -> None:
    value = {"pod": "{{ .p }}", "n": 3, "none": None, "args": ["-c", "{{ .p }}", {"{{ .p }}": 1.5}]}
    assert render_value(value, {"p": "a"}) == {
        "pod": "a",
        "n": 3,
        "none": None,
        "args": ["-c", "a", {"a": 1.5}],
    }


def test_a_mistake_inside_of_a_value_names_the_field() -> None:
    with pytest.raises(RenderFailed) as found:
        render_value({"command": ["x", "{{ .nope }}"]}, {}, name="phases[0].args")
    assert found.value.at == "phases[0].args.command[1]:1:4, near {{ .nope }}"


def test_all_texts_of_a_value_share_the_limits() -> None:
    value = ["{{ range until 100 }}x{{ end }}"] * 100
    assert render_value(value[:2], None, limits=RenderLimits(steps=2000)) == ["x" * 100] * 2
    with pytest.raises(RenderFailed, match="2000 steps"):
        render_value(value, None, limits=RenderLimits(steps=2000))


# What they may take

DOUBLED = "{{ $x := list 1 }}{{ range until 60 }}{{ $x = list $x $x }}{{ end }}"
CYCLE = '{{ $d := dict }}{{ $_ := set $d "d" $d }}'


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("{{ range until 1000000000 }}x{{ end }}", "steps"),
        ("{{ range 9223372036854775807 }}{{ end }}", "steps"),
        ("{{ untilStep -9223372036854775808 9223372036854775807 1 }}", "steps"),
        ("{{ seq 1000000000 }}", "steps"),
        ("{{ range until 9999 }}{{ range until 9999 }}x{{ end }}{{ end }}", "steps"),
        ('{{ repeat 1000000000 "x" }}', "characters"),
        ('{{ indent 1000000 (repeat 1000 "a\\n") }}', "characters"),
        ('{{ replace "" (repeat 10000 "y") (repeat 10000 "x") }}', "characters"),
        ('{{ $s := repeat 1000000 "x" }}{{ print $s $s $s }}', "steps"),
        ('{{ printf "%999999999d" 1 }}', "width"),
        ('{{ regexReplaceAll ".*" (repeat 9999 "a") (repeat 999 "${0}") }}', "characters"),
        ('{{ regexFindAll "(a{1,100}){1,10}b" (repeat 99999 "a") -1 }}', "steps"),
        ('{{ regexMatch (repeat 10000 "(a)") "a" }}', "1000 characters"),
        ('{{ split "" (repeat 2000000 "x") }}', "steps"),
        (f"{DOUBLED}{{{{ $x }}}}", "steps"),
        (f"{DOUBLED}{{{{ toJson $x }}}}", "steps"),
        (f"{DOUBLED}{{{{ deepCopy $x }}}}", "steps"),
        (f"{DOUBLED}{{{{ deepEqual $x (list) }}}}{{{{ toYaml $x }}}}", "steps"),
        (f"{CYCLE}{{{{ $d }}}}", "100 levels"),
        (f"{CYCLE}{{{{ toPrettyJson $d }}}}", "100 levels"),
        (f'{CYCLE}{{{{ printf "%#v" $d }}}}', "100 levels"),
        (f'{CYCLE}{{{{ merge $d (dict "d" (deepCopy $d)) }}}}', "100 levels"),
        ('{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}', "100 levels"),
        ('{{ define "a" }}{{ include "a" . }}{{ end }}{{ template "a" }}', "100 levels"),
        ('{{ fromYaml (repeat 1000 "[") }}', "levels"),
        ('{{ mustFromJson (repeat 1000 "[") }}', "levels"),
    ],
)
def test_no_template_takes_more_than_it_may(text: str, fact: str) -> None:
    problem = refusal(text)
    assert isinstance(problem, RenderFailed)
    assert fact in problem.fact


@pytest.mark.parametrize("text", ["{{ if 1 }}" * 500, "{{ " + "(" * 500, "{{ if 1 }}" * 99])
def test_actions_may_not_nest_without_an_end(text: str) -> None:
    with pytest.raises(InvalidTemplate):
        compile_template(text)


def test_limits_may_be_narrower() -> None:
    made = compile_template("{{ range until 10 }}abc{{ end }}")
    assert len(made.render(None)) == 30
    with pytest.raises(RenderFailed, match="past 20 characters"):
        made.render(None, limits=RenderLimits(size=20))


def test_a_bad_pattern_that_nobody_can_win_ends_soon() -> None:
    assert render('{{ regexMatch "(a+)+$" (print (repeat 3000 "a") "b") }}') == "false"


# What they can reach


@pytest.mark.parametrize(
    "text",
    [
        "{{ .__class__ }}",
        "{{ .s.__class__ }}",
        '{{ ("").__class__.__mro__ }}',
        "{{ (list).append }}",
        "{{ (dict).keys }}",
        '{{ (toDate "2006" "2020").strftime "%Y" }}',
        '{{ (semver "1.2.3").numbers }}',
        '{{ index .s "__class__" }}',
        '{{ get (dict) "__class__" | first }}',
        '{{ call (index .m "get") }}',
    ],
)
def test_nothing_of_python_can_be_reached(text: str) -> None:
    refusal(text, {"s": "x", "m": {}})


def test_formats_are_those_of_go() -> None:
    assert render('{{ printf "{0.__class__} %s" "x" }}') == "{0.__class__} x"


def test_zones_are_names_and_no_paths() -> None:
    assert render('{{ dateInZone "MST" 0 "../../etc/passwd" }}') == "UTC"


# Laws

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=8),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=4), inside),
    max_leaves=8,
)
WORDS = st.sampled_from(
    [
        *'{{ }} {{- -}} ( ) | . $ $x := = , "a" `b` 1 1.5 nil true if end else range with'.split(),
        *("define template block break x {{/* */}} .a .m.k 'c'".split()),
        *("\n", " ", *sorted(FUNCTIONS)),
    ]
)


@given(st.text().filter(lambda text: "{{" not in text))
def test_a_text_without_actions_is_itself(text: str) -> None:
    assert render(text) == "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)


def problem_with(text: str, data: object) -> TemplateError | None:
    try:
        compile_template(text).render(data)
    except TemplateError as problem:
        return problem
    return None


@given(st.lists(WORDS, max_size=12).map(" ".join))
def test_whatever_is_written_is_rendered_or_refused_with_its_place(text: str) -> None:
    problem = problem_with(text, {"a": 1, "m": {"k": [1, "x"]}})
    if problem is not None:
        assert 1 <= problem.line <= text.count("\n") + 1
        assert problem.column >= 1
        assert problem.fact


@given(st.text())
def test_what_is_quoted_is_read_back(text: str) -> None:
    written = render("{{ quote .t }}", {"t": text})
    assert render(f"{{{{ {written} }}}}") == render("{{ .t }}", {"t": text})


@given(st.text())
def test_base64_and_base32_are_read_back(text: str) -> None:
    data = {"t": text}
    assert render("{{ .t | b64enc | b64dec }}|{{ .t | b32enc | b32dec }}", data) == render(
        "{{ .t }}|{{ .t }}", data
    )


@given(PLAIN)
def test_json_is_read_back(value: object) -> None:
    whole = json.loads(json.dumps(value), parse_int=float)
    assert json.loads(render("{{ toJson . }}", value), parse_int=float) == whole
    assert render("{{ toJson . | fromJson | toJson }}", whole) == render("{{ toJson . }}", whole)


@given(st.dictionaries(st.text("abxy01 :#'\"-\n", max_size=6), PLAIN, max_size=4))
def test_yaml_is_read_back(value: dict[str, object]) -> None:
    assert render("{{ toYaml . | fromYaml | toJson }}", value) == render("{{ toJson . }}", value)


@given(st.lists(st.integers(-5, 5), max_size=6))
def test_lists_keep_their_laws(values: list[int]) -> None:
    text = "{{ toJson (reverse (reverse .)) }}|{{ toJson (uniq (uniq .)) }}|{{ len (concat . .) }}"
    unique = list(dict.fromkeys(values))
    listed = [json.dumps(each, separators=(",", ":")) for each in (values, unique)]
    assert render(text, values) == f"{listed[0]}|{listed[1]}|{2 * len(values)}"
