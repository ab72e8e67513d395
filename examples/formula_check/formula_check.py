"""A metric of our own: is a spreadsheet formula well formed, with functions we allow?

    assay run similarity formula_check.py:formula_ok formulas.jsonl --judge azure:gpt-4o

Two models can word the same formula differently, so similarity alone does not see a missing
bracket; and a formula that is well formed can compute the wrong thing. Together they tell.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import assay

FUNCTIONS = Path(__file__).with_name("functions.txt")
DEEPEST = 64

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<text>"(?:[^"]|"")*")
    |(?P<error>\#(?:N/A|REF!|VALUE!|DIV/0!|NAME\?|NUM!|NULL!))
    |(?P<cell>(?:(?:'(?:[^']|'')+'|[A-Za-z_]\w*)!)?
        (?:\$?[A-Za-z]{1,3}\$?\d{1,7}(?::\$?[A-Za-z]{1,3}\$?\d{1,7})?
          |\$?[A-Za-z]{1,3}:\$?[A-Za-z]{1,3})(?![\w(.]))
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?!\w))
    |(?P<name>[A-Za-z_][\w.]*)
    |(?P<operator><>|<=|>=|[-+*/^&=<>%(),;])""",
    re.VERBOSE,
)
_BINARY = {"+", "-", "*", "/", "^", "&", "=", "<>", "<", ">", "<=", ">="}
_CONSTANTS = {"TRUE", "FALSE"}


class Wrong(Exception):
    """What is wrong with a formula, in words."""


@assay.metric(
    outputs={
        "formula_ok": {"type": "boolean", "is_primary": True},
        "reason": {"type": "string"},
    }
)
def formula_ok(response: str) -> dict[str, Any]:
    """Whether the response is one well-formed formula that only uses the functions of the list."""
    try:
        used = check(response)
    except Wrong as error:
        return {"formula_ok": False, "reason": str(error)}
    return {"formula_ok": True, "reason": f"well formed; uses {', '.join(used) or 'no function'}"}


def check(formula: str) -> list[str]:
    """The functions a formula uses. Raises Wrong that says what is wrong, and where."""
    text = formula.strip()
    if not text.startswith("="):
        raise Wrong("no formula: it does not start with =")
    parser = _Parser(_tokens(text[1:]))
    parser.expression(0)
    if parser.kind != "end":
        raise Wrong(f"{parser.said} is not expected here")
    return list(dict.fromkeys(parser.used))


def _tokens(text: str) -> list[tuple[str, str, int]]:
    """(kind, text, column from 1 in the formula) of each token, and an end."""
    found: list[tuple[str, str, int]] = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            what = "a text without its closing quote" if text[place] == '"' else repr(text[place])
            raise Wrong(f"column {place + 2}: {what}")
        if match.lastgroup != "space":
            found.append((str(match.lastgroup), match.group(), place + 2))
        place = match.end()
    return [*found, ("end", "", len(text) + 2)]


class _Parser:
    """Reads an expression: operands with operators between, calls, brackets, signs, percents."""

    def __init__(self, tokens: list[tuple[str, str, int]]) -> None:
        self.tokens = tokens
        self.place = 0
        self.used: list[str] = []

    @property
    def kind(self) -> str:
        return self.tokens[self.place][0]

    @property
    def text(self) -> str:
        return self.tokens[self.place][1]

    @property
    def said(self) -> str:
        kind, text, column = self.tokens[self.place]
        return f"column {column}: " + ("the end" if kind == "end" else text)

    def expression(self, depth: int) -> None:
        self.operand(depth)
        while self.text in _BINARY and self.kind == "operator":
            self.place += 1
            self.operand(depth)

    def operand(self, depth: int) -> None:
        if depth > DEEPEST:
            raise Wrong(f"nested deeper than {DEEPEST} levels")
        while self.kind == "operator" and self.text in ("+", "-"):
            self.place += 1
        if self.kind == "name":
            self.named(depth)
        elif self.kind == "operator" and self.text == "(":
            self.place += 1
            self.expression(depth + 1)
            self.closing()
        elif self.kind in ("text", "error", "cell", "number"):
            self.place += 1
        else:
            raise Wrong(f"{self.said} where a value belongs")
        while self.kind == "operator" and self.text == "%":
            self.place += 1

    def named(self, depth: int) -> None:
        name = self.text.upper()
        self.place += 1
        if self.text != "(":
            if name not in _CONSTANTS:
                raise Wrong(f"{name} is neither a cell nor a call")
            return
        if name not in allowed():
            raise Wrong(f"{name} is not a function of the list")
        self.place += 1
        count = self.arguments(depth)
        fewest, most = allowed()[name]
        if count < fewest or (most is not None and count > most):
            raise Wrong(f"{name} takes {_range(fewest, most)} arguments, not {count}")
        self.used.append(name)

    def arguments(self, depth: int) -> int:
        """The arguments up to the closing bracket; one may be left out between separators."""
        if self.text == ")":
            self.place += 1
            return 0
        count = 1
        while True:
            if self.text not in (",", ";", ")"):
                self.expression(depth + 1)
            if self.kind != "operator" or self.text not in (",", ";"):
                self.closing()
                return count
            self.place += 1
            count += 1

    def closing(self) -> None:
        if self.text != ")":
            raise Wrong(f"{self.said} where a closing bracket belongs")
        self.place += 1


@cache
def allowed() -> dict[str, tuple[int, int | None]]:
    """Function to its fewest and most arguments."""
    lines = FUNCTIONS.read_text("utf-8").splitlines()
    entries = [line.split() for line in lines if line and not line.startswith("#")]
    return {name: (int(low), None if high == "*" else int(high)) for name, low, high in entries}


def _range(fewest: int, most: int | None) -> str:
    if most is None:
        return f"{fewest} or more"
    return str(fewest) if fewest == most else f"{fewest} to {most}"
