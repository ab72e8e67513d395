"""Templates that cannot be steered by what they print.

Every printed value leaves the template as an opaque token. Messages are cut out of the text
with tokens in it, and values are put back afterwards: a value can never open a message, close
one, name a file or be rendered again. Conditions, loops and filters see the real values.
"""

from __future__ import annotations

import json
import math
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined, TemplateSyntaxError, Undefined, meta, nodes, pass_context
from jinja2 import Template as JinjaTemplate
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.runtime import Context

from assay.errors import PromptyError, RenderError
from assay.prompty.sandbox import Sandbox

TOKEN = re.compile("\ue000([0-9]{16}):([0-9]+)\ue001")
_SINK = "\0sink"


class RoleName(str):
    """A role that the template itself prints inside a loop: `{{m.role}}:`."""


class Thread(list[Any]):
    """The value of an input declared as a thread: messages, not text."""


class Image(str):
    """The value of an input declared as an image."""


@dataclass(slots=True)
class Rendered:
    """Text with tokens, and the values behind them."""

    nonce: str = field(default_factory=lambda: f"{secrets.randbelow(10**16):016}")
    values: list[Any] = field(default_factory=list)
    text: str = ""
    has_threads: bool = False
    has_images: bool = False
    has_roles: bool = False

    def token(self, value: Any) -> str:
        """Keep `value` and return what stands for it in the text."""
        self.values.append(value)
        self.has_threads |= isinstance(value, Thread)
        self.has_images |= isinstance(value, Image)
        self.has_roles |= isinstance(value, RoleName)
        return f"\ue000{self.nonce}:{len(self.values) - 1}\ue001"

    def value_of(self, match: re.Match[str]) -> Any:
        """The value behind a token; None for text that only looks like one."""
        return self.values[int(match[2])] if match[1] == self.nonce else None

    def restore(self, text: str) -> str:
        """`text` with its values put back; a value made by the template may hold tokens."""

        def one(match: re.Match[str]) -> str:
            if match[1] != self.nonce:
                return match[0]
            return self.restore(as_text(self.values[int(match[2])]))

        return TOKEN.sub(one, text) if "\ue000" in text else text


def as_text(value: Any) -> str:
    """A value as it stands in a prompt: text as it is, anything else as JSON.

    Raises ValueError for None, NaN and infinities: an absent value is never printed.
    """
    if isinstance(value, str):
        return str(value)
    if value is None:
        raise ValueError("a null value would be printed into the prompt")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} would be printed into the prompt")
    try:
        return json.dumps(value, ensure_ascii=False, default=str, allow_nan=False)
    except RecursionError:
        raise ValueError("a value nested too deeply would be printed into the prompt") from None


@dataclass(frozen=True, slots=True)
class Template:
    """A compiled body. `variables` are the names it takes from outside."""

    variables: frozenset[str]
    render: Callable[[Mapping[str, Any]], Rendered]


def compile_jinja(body: str, first_line: int, path: Path | None) -> Template:
    """Compile a Jinja body. Raises PromptyError with the line where it is no template."""
    env = _environment()
    try:
        tree = env.parse(body)
        _mark_roles(tree)
        names = meta.find_undeclared_variables(tree) - env.globals.keys()
        code = env.compile(tree)
    except TemplateSyntaxError as error:
        raise PromptyError(
            f"template: {error.message}",
            path=path,
            line=first_line + error.lineno - 1,
            code="template",
        ) from None
    except (RecursionError, OverflowError, SyntaxError, TemplateError) as error:
        raise PromptyError(
            f"template cannot be compiled: {type(error).__name__}",
            path=path,
            line=first_line,
            code="template",
        ) from None
    template = JinjaTemplate.from_code(env, code, dict(env.globals))

    def render(values: Mapping[str, Any]) -> Rendered:
        sink = Rendered()
        context = template.new_context({**values, _SINK: sink})
        try:
            sink.text = "".join(template.root_render_func(context))
        except Exception as error:
            raise RenderError(
                _why(error), path=path, line=_line(error, template, first_line), code="render"
            ) from None
        return sink

    return Template(frozenset(names), render)


@cache
def _environment() -> Sandbox:
    env = Sandbox(
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        finalize=_finalize,
        autoescape=False,
    )
    env.filters["\0role"] = RoleName
    return env


@pass_context
def _finalize(context: Context, value: Any) -> str:
    if isinstance(value, Undefined):
        return str(value)
    if not isinstance(value, str):
        as_text(value)
    sink: Rendered = context.parent[_SINK]
    return sink.token(value)


def _mark_roles(tree: nodes.Template) -> None:
    """Have roles printed inside loops arrive as RoleName; everywhere else they are text."""
    for loop in tree.find_all(nodes.For):
        for output in loop.find_all(nodes.Output):
            output.nodes = [
                nodes.Filter(node, "\0role", [], [], None, None, lineno=node.lineno)
                if _prints_role(node)
                else node
                for node in output.nodes
            ]


def _prints_role(node: nodes.Node) -> bool:
    if isinstance(node, nodes.Filter):
        return node.name != "\0role" and node.node is not None and _prints_role(node.node)
    if isinstance(node, nodes.Getattr):
        return node.attr == "role"
    if isinstance(node, nodes.Getitem):
        return isinstance(node.arg, nodes.Const) and node.arg.value == "role"
    return False


def _why(error: Exception) -> str:
    if isinstance(error, SecurityError):
        return f"the template does what a prompt may not do: {error}"
    if isinstance(error, TemplateError | ValueError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _line(error: Exception, template: JinjaTemplate, first_line: int) -> int | None:
    """Line in the file of the innermost template frame of a traceback."""
    found = None
    for frame, lineno in _frames(error):
        if frame.f_globals.get("__jinja_template__") is template or (
            frame.f_code is template.root_render_func.__code__
            or frame.f_code.co_filename == "<template>"
        ):
            found = template.get_corresponding_lineno(lineno)
    return None if found is None else first_line + found - 1


def _frames(error: Exception) -> Iterator[tuple[Any, int]]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next
