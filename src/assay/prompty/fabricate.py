"""Values made up for a template: shaped as it uses them, with the file's own where it has some.

The shapes come from the syntax: a variable whose attributes are read is an object, one that is
iterated is a list, one that is compared with numbers is a number, anything else is text.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jinja2 import nodes

from assay.errors import PromptyError
from assay.prompty.fields import MISSING, Input
from assay.prompty.model import Prompty
from assay.prompty.syntax import parse_jinja

MakeText = Callable[[str], str]
"""Text for a place such as `documents.title`."""

_TEXT_METHODS = {name for name in dir(str) if not name.startswith("_")}
_MAP_METHODS = {"items", "keys", "values", "get"}
_LIST_FILTERS = {"join", "first", "last", "map", "select", "selectattr", "sort", "batch", "sum"}
_NUMBER_FILTERS = {"round", "abs", "float", "int"}
_SECTION = re.compile(r"\{\{\{?\s*([#^/&]?)\s*([\w.-]+)\s*\}?\}\}")


@dataclass(slots=True)
class Shape:
    """How a template uses a value."""

    members: dict[str, Shape] = field(default_factory=dict)
    element: Shape | None = None
    number: bool = False
    mapping: bool = False

    def member(self, name: str) -> Shape:
        return self.members.setdefault(name, Shape())

    def item(self) -> Shape:
        if self.element is None:
            self.element = Shape()
        return self.element


def fabricate(prompty: Prompty, text: MakeText | None = None) -> dict[str, Any]:
    """A value for every input: the file's sample, else its default, else one made up.

    `text` makes the texts that are made up; without it they say what they stand for. A sample
    that the template cannot print gives way to a made-up value.
    """
    found = shapes(prompty)
    make = text or (lambda place: f"text of {place}")
    own = own_values(prompty)
    made = {
        name: build(found.get(name, Shape()), name, item, make)
        for name, item in prompty.inputs.items()
    }
    values = {name: own.get(name, made[name]) for name in made}
    if text is None and not _renders(prompty, values):
        return made
    return values


def own_values(prompty: Prompty) -> dict[str, Any]:
    """Samples and defaults that the file brings; none where they cannot be read."""
    try:
        sample = dict(prompty.sample)
    except PromptyError:
        sample = {}
    defaults = {
        name: item.default
        for name, item in prompty.inputs.items()
        if item.default is not MISSING and item.default is not None
    }
    return copy.deepcopy(defaults | {k: v for k, v in sample.items() if v is not None})


def build(shape: Shape, place: str, item: Input | None, text: MakeText) -> Any:
    """A value of a shape. Where the template tells nothing, the declared type does."""
    if shape.element is not None and not shape.mapping:
        return [build(shape.element, f"{place}.item", None, text)]
    if shape.members or shape.mapping:
        made = {
            name: "user" if name == "role" else build(member, f"{place}.{name}", None, text)
            for name, member in shape.members.items()
        }
        return made or {"key": text(f"{place}.key")}
    if shape.number:
        return 1
    kind = item.type if item else "any"
    if kind == "thread":
        return [{"role": "user", "content": text(place)}]
    by_type: dict[str, Any] = {"integer": 1, "number": 1.5, "boolean": True}
    by_type |= {"image": "https://example.org/picture.png"}
    if kind in ("array", "object"):
        return [text(place)] if kind == "array" else {"key": text(place)}
    return by_type[kind] if kind in by_type else text(place)


def shapes(prompty: Prompty) -> Mapping[str, Shape]:
    """The shape of every variable that the body uses."""
    root = Shape()
    if prompty.is_mustache:
        _mustache(prompty.body, root)
    else:
        tree = parse_jinja(prompty.body)
        if tree is not None:
            _Walk(root).visit(tree, {})
    return root.members


class _Walk:
    """One pass over the tree, with what loop variables stand for."""

    def __init__(self, root: Shape) -> None:
        self.root = root

    def visit(self, node: nodes.Node, scope: Mapping[str, Shape]) -> None:
        if isinstance(node, nodes.For):
            self._loop(node, scope)
            return
        if isinstance(node, nodes.Assign) and isinstance(node.target, nodes.Name):
            alias = self.shape(node.node, scope)
            self.visit(node.node, scope)
            if isinstance(scope, dict):
                scope[node.target.name] = alias or Shape()
            return
        self._observe(node, scope)
        for child in node.iter_child_nodes():
            self.visit(child, scope)

    def _loop(self, node: nodes.For, scope: Mapping[str, Shape]) -> None:
        self.visit(node.iter, scope)
        inner = dict(scope) | {"loop": Shape()}
        source = self.shape(node.iter, scope)
        call = node.iter if isinstance(node.iter, nodes.Call) else None
        over_map = call is not None and isinstance(call.node, nodes.Getattr)
        if over_map and call is not None and isinstance(call.node, nodes.Getattr):
            holder = self.shape(call.node.node, scope)
            if holder is not None and call.node.attr in _MAP_METHODS:
                holder.mapping = True
            source = None
        element = source.item() if source is not None else Shape()
        if isinstance(node.target, nodes.Name):
            inner[node.target.name] = element
        elif isinstance(node.target, nodes.Tuple):
            inner |= {t.name: Shape() for t in node.target.items if isinstance(t, nodes.Name)}
        for child in [*node.body, *node.else_, *([node.test] if node.test else [])]:
            self.visit(child, inner)

    def _observe(self, node: nodes.Node, scope: Mapping[str, Shape]) -> None:
        self.shape(node, scope)
        if isinstance(node, nodes.Compare):
            sides = [node.expr, *(operand.expr for operand in node.ops)]
            in_list = any(operand.op in ("in", "notin") for operand in node.ops)
            if not in_list and any(_is_number(side) for side in sides):
                self._numbers(sides, scope)
        elif isinstance(node, nodes.Add | nodes.Sub | nodes.Mul | nodes.Div | nodes.Mod):
            if _is_number(node.left) or _is_number(node.right):
                self._numbers([node.left, node.right], scope)
        elif isinstance(node, nodes.Call) and isinstance(node.node, nodes.Name):
            if node.node.name == "range":
                self._numbers(node.args, scope)
        elif isinstance(node, nodes.Filter) and node.node is not None:
            operand = self.shape(node.node, scope)
            if operand is not None and node.name in _LIST_FILTERS:
                operand.item()
            if operand is not None and node.name in _NUMBER_FILTERS:
                operand.number = True

    def _numbers(self, parts: list[nodes.Expr], scope: Mapping[str, Shape]) -> None:
        for part in parts:
            found = self.shape(part, scope) if not isinstance(part, nodes.Filter) else None
            if found is not None:
                found.number = True

    def shape(self, node: nodes.Node, scope: Mapping[str, Shape]) -> Shape | None:
        """What an expression stands for, as far as it leads back to a variable."""
        if isinstance(node, nodes.Name):
            return scope[node.name] if node.name in scope else self.root.member(node.name)
        if isinstance(node, nodes.Getattr):
            if node.attr in _TEXT_METHODS and node.attr not in (
                "title",
                "index",
                "count",
                "format",
            ):
                self.shape(node.node, scope)
                return None
            holder = self.shape(node.node, scope)
            return None if holder is None or node.attr in _MAP_METHODS else holder.member(node.attr)
        if isinstance(node, nodes.Getitem):
            holder = self.shape(node.node, scope)
            if holder is None:
                return None
            if isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, str):
                return holder.member(node.arg.value)
            return holder.item()
        if isinstance(node, nodes.Filter) and node.node is not None:
            inner = self.shape(node.node, scope)
            passes = node.name in (
                "list",
                "sort",
                "reverse",
                "unique",
                "default",
                "d",
                "selectattr",
            )
            if node.name in ("first", "last") and inner is not None:
                return inner.item()
            return inner if passes else None
        return None


def _is_number(node: nodes.Node) -> bool:
    value = node.value if isinstance(node, nodes.Const) else None
    return isinstance(value, int | float) and not isinstance(value, bool)


def _mustache(body: str, root: Shape) -> None:
    """Sections are lists of objects that have the names inside them."""
    stack = [root]
    for sign, name in _SECTION.findall(body):
        if sign == "/":
            stack = stack[:-1] or [root]
            continue
        target = stack[-1]
        for part in name.split(".") if name != "." else ():
            target = target.member(part)
        if sign == "#":
            stack.append(target.item())
        elif sign == "^":
            stack.append(stack[-1])


def _renders(prompty: Prompty, values: Mapping[str, Any]) -> bool:
    try:
        prompty.render(values)
    except PromptyError:
        return False
    return True
