"""Expressions of metric.yaml: Jinja2's own, in its sandbox, over a closed set of functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import StrictUndefined, TemplateSyntaxError, meta, nodes
from jinja2.exceptions import SecurityError, UndefinedError
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from assay.errors import PromptyError
from assay.metric.functions import FUNCTIONS, Undefined


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
        tree = Parser(env, source, state="variable").parse_expression()
        output = nodes.Template([nodes.Output([tree])]).set_environment(env)
    except TemplateSyntaxError as error:
        raise PromptyError(
            f"not an expression: {source!r}: {error.message}", code="expression"
        ) from None
    names = meta.find_undeclared_variables(output)  # type: ignore[arg-type]
    return Expression(source, frozenset(names - env.globals.keys()), run)


@cache
def _environment() -> ImmutableSandboxedEnvironment:
    env = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
    env.globals = dict(FUNCTIONS)
    return env
