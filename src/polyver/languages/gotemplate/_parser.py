"""Parser of templates; an error has the position of the token that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches

from polyver.languages.gotemplate._budget import DEEPEST
from polyver.languages.gotemplate._errors import InvalidTemplate, located
from polyver.languages.gotemplate._nodes import (
    TemplateAction,
    TemplateBranch,
    TemplateChain,
    TemplateCommand,
    TemplateConstant,
    TemplateDot,
    TemplateField,
    TemplateFieldName,
    TemplateIdentifier,
    TemplateInvocation,
    TemplateJump,
    TemplateNil,
    TemplateNode,
    TemplatePipeline,
    TemplateRange,
    TemplateText,
    TemplateVariable,
)
from polyver.languages.gotemplate._tokens import (
    InvalidTemplateLiteral,
    TemplateToken,
    read_number,
    read_tokens,
    unquoted,
)

__all__ = ["parse"]

_OPERANDS = frozenset(
    "bool char complex dot field name number nil raw string variable (".split(),
)
_SHOWN = {"end": "the end of the template", "}}": "}}", "space": "a space"}


def parse(
    source: str, name: str, functions: frozenset[str], absent: Callable[[str], str]
) -> dict[str, list[TemplateNode]]:
    """Parse a source; return its nodes, and the nodes of each template that it defines, by name.

    `absent` is called with the name of an unknown function. It returns a hint for the error
    message, or an empty string.
    """
    return _Parser(source, name, functions, absent).parse()


class _Ended(TemplateNode):
    """An `end` or `else`.

    The parser uses this node to find the end of a block, and then drops it.
    """

    __slots__ = ("chained", "word")

    def __init__(self, word: str, at: int, chained: str = "") -> None:
        super().__init__(at, at)
        self.word = word
        self.chained = chained


class _Parser:
    """Reads the tokens of a template from left to right, and builds the nodes."""

    def __init__(
        self, source: str, name: str, functions: frozenset[str], absent: Callable[[str], str]
    ) -> None:
        self._source = source
        self._name = name
        self._functions = functions
        self._absent = absent
        self._tokens = read_tokens(source)
        self._next = 0
        self._depth = 0
        self._loops = 0
        self._variables = ["$"]
        self._found: dict[str, list[TemplateNode]] = {}

    def parse(self) -> dict[str, list[TemplateNode]]:
        root: list[TemplateNode] = []
        while self._peek().kind != "end":
            if self._peek().kind == "{{" and self._ahead(1).kind == "define":
                self._define()
                continue
            node = self._node()
            if isinstance(node, _Ended):
                raise self._wrong(f"unexpected {{{{{node.word}}}}}", node.at)
            root.append(node)
        self._add(self._name, root, 0)
        return self._found

    # Tokens

    def _peek(self) -> TemplateToken:
        return self._tokens[min(self._next, len(self._tokens) - 1)]

    def _ahead(self, count: int) -> TemplateToken:
        """Return a later token without taking it: 0 means the next token.

        Spaces are not counted.
        """
        at = self._next
        while True:
            while self._token(at).kind == "space":
                at += 1
            if count == 0:
                return self._token(at)
            at, count = at + 1, count - 1

    def _token(self, at: int) -> TemplateToken:
        return self._tokens[min(at, len(self._tokens) - 1)]

    def _take(self) -> TemplateToken:
        token = self._peek()
        self._next += 1
        return token

    def _skip(self) -> TemplateToken:
        """Skip spaces; return the token after them, which stays the next token."""
        while self._peek().kind == "space":
            self._next += 1
        return self._peek()

    def _take_word(self) -> TemplateToken:
        self._skip()
        return self._take()

    def _expect(self, kind: str, context: str) -> TemplateToken:
        token = self._take_word()
        if token.kind != kind:
            raise self._unexpected(token, context)
        return token

    # Errors

    def _wrong(self, fact: str, at: int, hint: str = "") -> InvalidTemplate:
        line, column, near = located(self._source, at)
        return InvalidTemplate(
            fact, name=self._name, line=line, column=column, near=near, hint=hint
        )

    def _unexpected(self, token: TemplateToken, context: str) -> InvalidTemplate:
        if token.kind == "error":
            return self._wrong(token.text, token.at)
        shown = _SHOWN.get(token.kind, token.text)
        return self._wrong(f"unexpected {shown} in {context}", token.at)

    def _deeper(self, at: int) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._wrong(f"actions nest more than {DEEPEST} levels deep", at)

    # Templates

    def _add(self, name: str, inside: list[TemplateNode], at: int) -> None:
        known = self._found.get(name)
        if known is None or _is_empty(known):
            self._found[name] = inside
        elif not _is_empty(inside):
            raise self._wrong(f'the template "{name}" is defined twice', at)

    def _define(self) -> None:
        self._take()
        self._take_word()
        at = self._skip().at
        name = self._template_name("define clause")
        self._expect("}}", "define clause")
        self._body(name, "define clause", at)

    def _body(self, name: str, context: str, at: int) -> None:
        """Parse the body of a template that `define` or `block` defines inside another template."""
        variables, loops = self._variables, self._loops
        self._variables, self._loops = ["$"], 0
        inside, ended = self._items(at)
        if ended.word != "end":
            raise self._wrong(f"unexpected {{{{else}}}} in {context}", ended.at)
        self._variables, self._loops = variables, loops
        self._add(name, inside, at)

    def _template_name(self, context: str) -> str:
        token = self._take_word()
        if token.kind not in ("string", "raw"):
            raise self._unexpected(token, context)
        return self._unquoted(token)

    def _unquoted(self, token: TemplateToken) -> str:
        try:
            return unquoted(token.text)
        except InvalidTemplateLiteral as problem:
            raise self._wrong(f"{problem} in {token.text}", token.at) from None

    # Actions

    def _items(self, at: int) -> tuple[list[TemplateNode], _Ended]:
        self._deeper(at)
        found: list[TemplateNode] = []
        while self._peek().kind != "end":
            node = self._node()
            if isinstance(node, _Ended):
                self._depth -= 1
                return found, node
            found.append(node)
        raise self._wrong("an action that began here has no {{end}}", at)

    def _node(self) -> TemplateNode:
        token = self._take()
        if token.kind == "text":
            return TemplateText(token.at, token.at + len(token.text), token.text)
        if token.kind != "{{":
            raise self._unexpected(token, "input")
        word = self._skip()
        known: Mapping[str, Callable[[], TemplateNode]] = {
            "if": self._block,
            "with": self._block,
            "range": self._range,
            "end": self._end,
            "else": self._else,
            "break": self._jump,
            "continue": self._jump,
            "template": self._use,
            "block": self._use,
        }
        if word.kind in known:
            return known[word.kind]()
        pipeline = self._pipeline("command", "}}")
        return TemplateAction(pipeline.at, pipeline.end, pipeline)

    def _end(self) -> TemplateNode:
        word = self._take()
        self._expect("}}", "end")
        return _Ended("end", word.at)

    def _else(self) -> TemplateNode:
        word = self._take()
        if self._skip().kind in ("if", "with"):
            return _Ended("else", word.at, self._peek().kind)
        self._expect("}}", "else")
        return _Ended("else", word.at)

    def _jump(self) -> TemplateNode:
        word = self._take()
        self._expect("}}", f"{{{{{word.text}}}}}")
        if not self._loops:
            raise self._wrong(f"{{{{{word.text}}}}} outside {{{{range}}}}", word.at)
        return TemplateJump(word.at, word.at + len(word.text), word.text)

    def _use(self) -> TemplateNode:
        word = self._take()
        context = f"{word.kind} clause"
        at = self._skip().at
        name = self._template_name(context)
        if word.kind == "template" and self._skip().kind == "}}":
            self._take()
            return TemplateInvocation(word.at, at, name, None)
        pipeline = self._pipeline(context, "}}")
        if word.kind == "block":
            self._body(name, context, at)
        return TemplateInvocation(word.at, pipeline.end, name, pipeline)

    def _block(self) -> TemplateNode:
        word = self._take()
        known = len(self._variables)
        pipeline = self._pipeline(word.kind, "}}")
        inside, ended = self._items(word.at)
        otherwise: list[TemplateNode] | None = None
        if ended.word == "else" and ended.chained == word.kind:
            self._deeper(ended.at)
            otherwise = [self._block()]
            self._depth -= 1
        elif ended.word == "else":
            otherwise = self._otherwise(ended, word)
        del self._variables[known:]
        narrows = word.kind == "with"
        return TemplateBranch(pipeline.at, pipeline.end, narrows, pipeline, inside, otherwise)

    def _range(self) -> TemplateNode:
        word = self._take()
        known = len(self._variables)
        pipeline = self._pipeline("range", "}}")
        self._loops += 1
        inside, ended = self._items(word.at)
        self._loops -= 1
        otherwise = self._otherwise(ended, word) if ended.word == "else" else None
        del self._variables[known:]
        return TemplateRange(pipeline.at, pipeline.end, pipeline, inside, otherwise)

    def _otherwise(self, ended: _Ended, word: TemplateToken) -> list[TemplateNode]:
        if ended.chained:
            raise self._wrong(
                f"unexpected {ended.chained} in {{{{else}}}} of {word.kind}", ended.at
            )
        otherwise, last = self._items(word.at)
        if last.word != "end":
            raise self._wrong("expected {{end}}; found {{else}}", last.at)
        return otherwise

    # Pipelines

    def _pipeline(self, context: str, end: str) -> TemplatePipeline:
        first = self._skip()
        variables, assigns = self._declared(context)
        commands: list[TemplateCommand] = []
        while True:
            token = self._skip()
            if token.kind == end:
                self._take()
                break
            if token.kind not in _OPERANDS:
                raise self._unexpected(token, context)
            commands.append(self._command())
        if not commands:
            raise self._wrong(f"missing value for {context}", token.at)
        for stage, command in enumerate(commands[1:], 2):
            if isinstance(command.words[0], TemplateConstant | TemplateDot | TemplateNil):
                fact = f"non executable command in pipeline stage {stage}"
                raise self._wrong(fact, command.at, "only a function takes a value from a pipe")
        return TemplatePipeline(first.at, token.at, commands, variables, assigns)

    def _declared(self, context: str) -> tuple[list[str], bool]:
        """Parse the variables at the beginning of a pipeline, such as `$x :=`.

        Return their names, and True if they are assigned by `=` and not declared by `:=`.
        """
        names: list[str] = []
        while self._skip().kind == "variable":
            after = self._ahead(1)
            if after.kind not in (":=", "=") and after.text != ",":
                break
            names.append(self._take().text)
            self._variables.append(names[-1])
            self._take_word()
            if after.kind in (":=", "="):
                return names, after.kind == "="
            if context != "range" or len(names) > 1:
                raise self._wrong(f"too many declarations in {context}", after.at)
            if self._skip().kind not in ("variable", "}}", ")"):
                raise self._wrong("range can only initialize variables", self._peek().at)
        return names, False

    def _command(self) -> TemplateCommand:
        at = self._skip().at
        words: list[TemplateNode] = []
        while True:
            self._skip()
            operand = self._operand()
            if operand is not None:
                words.append(operand)
            token = self._take()
            if token.kind == "space":
                continue
            if token.kind in ("}}", ")"):
                self._next -= 1
            elif token.kind != "|":
                raise self._unexpected(token, "operand")
            break
        if not words:
            raise self._wrong("empty command", at)
        return TemplateCommand(at, words[-1].end, words)

    def _operand(self) -> TemplateNode | None:
        if self._skip().kind not in _OPERANDS:
            return None
        node = self._read(self._take())
        if self._peek().kind != "field":
            return node
        parts: list[TemplateFieldName] = []
        while self._peek().kind == "field":
            token = self._take()
            parts.append(TemplateFieldName(token.text[1:], token.at))
            end = token.at + len(token.text)
        match node:
            case TemplateField():
                return TemplateField(node.at, end, node.parts + parts)
            case TemplateVariable():
                return TemplateVariable(node.at, end, node.name, node.parts + parts)
            case TemplateConstant() | TemplateNil() | TemplateDot():
                term = self._source[node.at : node.end]
                raise self._wrong(f"unexpected . after term {term}", parts[0].at)
        return TemplateChain(node.at, end, node, parts)

    def _read(self, token: TemplateToken) -> TemplateNode:
        at, end = token.at, token.at + len(token.text)
        match token.kind:
            case "(":
                return self._parenthesized(at)
            case "name":
                self._check_function(token)
                return TemplateIdentifier(at, end, token.text)
            case "variable":
                self._check_variable(token)
                return TemplateVariable(at, end, token.text, [])
            case "field":
                return TemplateField(at, end, [TemplateFieldName(token.text[1:], at)])
        return self._constant(token, end)

    def _constant(self, token: TemplateToken, end: int) -> TemplateNode:
        if token.kind in ("dot", "nil"):
            return TemplateDot(token.at, end) if token.kind == "dot" else TemplateNil(token.at, end)
        if token.kind == "bool":
            return TemplateConstant(token.at, end, token.text == "true")
        if token.kind in ("string", "raw"):
            return TemplateConstant(token.at, end, self._unquoted(token))
        try:
            return TemplateConstant(token.at, end, read_number(token.text, token.kind))
        except InvalidTemplateLiteral as problem:
            raise self._wrong(str(problem), token.at) from None

    def _parenthesized(self, at: int) -> TemplateNode:
        self._deeper(at)
        inside = self._pipeline("parenthesized pipeline", ")")
        self._depth -= 1
        inside.at, inside.end = at, inside.end + 1
        return inside

    def _check_function(self, token: TemplateToken) -> None:
        if token.text in self._functions:
            return
        hint = self._absent(token.text) or _near(token.text, sorted(self._functions))
        raise self._wrong(f'function "{token.text}" not defined', token.at, hint)

    def _check_variable(self, token: TemplateToken) -> None:
        if token.text in self._variables:
            return
        hint = _near(token.text, self._variables)
        raise self._wrong(f'undefined variable "{token.text}"', token.at, hint)


def _near(name: str, known: list[str]) -> str:
    found = get_close_matches(name, known, 1)
    return f"did you mean {found[0]}?" if found else ""


def _is_empty(nodes: list[TemplateNode]) -> bool:
    return all(isinstance(node, TemplateText) and not node.text.strip() for node in nodes)
