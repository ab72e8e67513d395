"""Expressions of metric.yaml: Jinja2's own, in its sandbox, over a closed set of functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import StrictUndefined, TemplateSyntaxError, meta, nodes
from jinja2.exceptions import SecurityError, UndefinedError
from jinja2.parser import Parser

from assay.errors import PromptyError
from assay.metric.functions import FUNCTIONS, Undefined
from assay.prompty.sandbox import Sandbox


class ExpressionError(ValueError):
    """An expression that has no value for this row."""


@dataclass(frozen=True)
class Expression:
    """A compiled expression. `names` are the values it takes from its surroundings."""

    text: str
    names: frozenset[str]
    _run: Callable[..., Any]

    def __call__(self, scope: Mapping[str, Any]) -> Any:
        """The value. Raises ExpressionError where it has none: a share of nothing, a name
        that is not there, a text where a number belongs."""
        try:
            value = self._run(**scope)
            if isinstance(value, StrictUndefined):
                str(value)
            return value
        except Undefined as error:
            raise ExpressionError(str(error)) from None
        except (UndefinedError, SecurityError, TypeError, ValueError, ArithmeticError) as error:
            raise ExpressionError(f"`{self.text}`: {error}") from None


def compile_expression(text: Any) -> Expression:
    """Compile an expression. Raises PromptyError for what is none; numbers stand for themselves."""
    source = text if isinstance(text, str) else repr(text)
    env = _environment()
    try:
        run = env.compile_expression(source, undefined_to_none=False)
        tree = _parse(source)
    except TemplateSyntaxError as error:
        raise PromptyError(
            f"not an expression: {source!r}: {error.message}", code="expression"
        ) from None
    return Expression(source, _names(tree), run)


def divisors(expression: Expression) -> list[frozenset[str]]:
    """For each share or mean in an expression, the names of the list whose length divides."""
    found = []
    for call in nodes.Output([_parse(expression.text)]).find_all(nodes.Call):
        name = _function(call)
        if name not in _DIVIDES or _DIVIDES[name] >= len(call.args):
            continue
        argument = call.args[_DIVIDES[name]]
        if name != "ratio" or _function(argument) == "len":
            found.append(_names(argument))
    return found


def _function(node: nodes.Node) -> str:
    """The name of the function that is called; "" where none is."""
    called = node.node if isinstance(node, nodes.Call) else None
    return called.name if isinstance(called, nodes.Name) else ""


_DIVIDES = {"ratio": 1, "mean": 0, "median": 0, "majority": 0, "cosine_mean": 1, "recall_sets": 1}
"""Functions that have no value for an empty list, and which argument that is."""


def _parse(source: str) -> nodes.Expr:
    return Parser(_environment(), source, state="variable").parse_expression()


def _names(tree: nodes.Node) -> frozenset[str]:
    env = _environment()
    template = nodes.Template([nodes.Output([tree])])
    names = meta.find_undeclared_variables(template.set_environment(env))  # type: ignore[arg-type]
    return frozenset(names - env.globals.keys())


@cache
def _environment() -> Sandbox:
    env = Sandbox(undefined=StrictUndefined)
    env.globals = dict(FUNCTIONS)
    return env
