"""Templates that no prompt needs, told from their syntax tree before anything runs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jinja2 import TemplateError, meta, nodes

from assay.prompty import Prompty
from assay.prompty.check.finding import Collector
from assay.prompty.syntax import parse_jinja

LIMIT = 10_000
"""Rounds of a loop, repetitions of a text or digits of a width that no prompt needs."""

_FROM_FILES = {
    nodes.Include: "include",
    nodes.Import: "import",
    nodes.FromImport: "import",
    nodes.Extends: "extends",
}
_WIDE = re.compile(r"%\D{0,3}\d{6,}|\{[^}]*:\D{0,3}\d{6,}")
_HARMLESS = {"trim", "safe", "string", "defined", "undefined", "none", "join"}
_WIDTHS = {"center", "ljust", "rjust", "zfill", "indent", "wordwrap", "batch", "slice", "lipsum"}


def check_template(prompty: Prompty, found: Collector) -> bool:
    """Report hostile constructs. False where the template must not even be compiled.

    Jinja computes constant expressions while it compiles, so a tower of powers would hang
    before a single value is rendered.
    """
    tree = None if prompty.is_mustache else parse_jinja(prompty.body)
    if tree is None:
        return True
    harmless = True

    def add(code: str, node: nodes.Node, message: str) -> None:
        found.add(code, message, prompty.body_line + node.lineno - 1)

    for node, message in _reaches_out(tree):
        add("hostile-template", node, message)
    for node, message in _costly(tree):
        harmless = False
        add("hostile-template", node, message)
    for loop, rounds in _loops(tree, 1):
        if rounds > LIMIT:
            add("hostile-template", loop, f"loops over constants run {rounds} times")
    for node, message in _block_filters(tree):
        add("block-filter", node, message)
    for node, message in _input_bounds(tree) if harmless else ():
        add("loop-bound", node, message)
    return harmless


def _reaches_out(tree: nodes.Template) -> Iterator[tuple[nodes.Node, str]]:
    for node in tree.find_all((nodes.Getattr, nodes.Getitem, nodes.Filter, nodes.Call)):
        name = ""
        if isinstance(node, nodes.Getattr):
            name = node.attr
        elif isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
            name = str(node.arg.value)
        elif isinstance(node, nodes.Filter) and node.name in ("attr", "map") and node.args:
            name = str(getattr(node.args[0], "value", ""))
        if name.startswith("__") or re.fullmatch(r"mro|func_globals|gi_frame|f_globals", name):
            yield node, f"the template reaches for `{name[:40]}`, which no value of a row has"
    for statement in tree.find_all(tuple(_FROM_FILES)):
        yield statement, f"`{_FROM_FILES[type(statement)]}` cannot be used: a prompt is one file"


def _costly(tree: nodes.Template) -> Iterator[tuple[nodes.Node, str]]:
    """Constants so large that computing with them uses up memory or time."""
    for power in tree.find_all(nodes.Pow):
        exponent = power.right.value if isinstance(power.right, nodes.Const) else None
        nested = isinstance(power.left, nodes.Pow) or power.left.find(nodes.Pow) is not None
        if not isinstance(exponent, int | float) or abs(exponent) > 64 or nested:
            yield power, "a power with a large or unknown exponent"
    for product in tree.find_all(nodes.Mul):
        sides = (product.left, product.right)
        factors = [side for side in sides if not _is_repeatable(side)]
        if len(factors) < 2 and not all(map(_is_small, factors)):
            yield product, "a text or list is repeated very often"
    for use in tree.find_all((nodes.Call, nodes.Filter)):
        name = _name(use)
        for arg in _arguments(use) if name == "range" or name in _WIDTHS else ():
            if isinstance(arg, nodes.Const) and not _is_small(arg):
                yield use, f"`{name}` with {arg.value!r:.20}"
    for const in tree.find_all(nodes.Const):
        if isinstance(const.value, str) and _WIDE.search(const.value):
            yield const, "a format with a very large width"


def _is_repeatable(node: nodes.Node) -> bool:
    is_text = isinstance(node, nodes.Const) and isinstance(node.value, str)
    return is_text or isinstance(node, nodes.List | nodes.Tuple | nodes.TemplateData)


def _is_small(node: nodes.Node) -> bool:
    """A constant within the limit. Whatever is no constant number is not known to be small."""
    value = node.value if isinstance(node, nodes.Const) else None
    if not isinstance(value, int | float):
        return isinstance(node, nodes.Const)
    return abs(value) <= LIMIT


def _name(use: nodes.Node) -> str:
    """What a call or filter calls: `range`, `center`, ..."""
    if isinstance(use, nodes.Filter):
        return use.name
    target = use.node if isinstance(use, nodes.Call) else None
    if isinstance(target, nodes.Name):
        return target.name
    return target.attr if isinstance(target, nodes.Getattr) else ""


def _arguments(use: nodes.Node) -> list[nodes.Expr]:
    """Arguments of a call or filter, named ones too."""
    if not isinstance(use, nodes.Call | nodes.Filter):
        return []
    return [*use.args, *(keyword.value for keyword in use.kwargs)]


def _is_range(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Call) and _name(node) == "range"


def _loops(node: nodes.Node, outer: int) -> Iterator[tuple[nodes.For, int]]:
    """Every loop with how often it runs in all, as far as constants tell."""
    rounds = outer
    if isinstance(node, nodes.For):
        rounds = outer * _rounds(node.iter)
        yield node, rounds
    for child in node.iter_child_nodes():
        yield from _loops(child, rounds)


def _rounds(node: nodes.Node) -> int:
    if isinstance(node, nodes.List | nodes.Tuple):
        return max(len(node.items), 1)
    if not (isinstance(node, nodes.Call) and _is_range(node)):
        return 1
    numbers = [arg.value for arg in node.args if isinstance(arg, nodes.Const)]
    if len(numbers) != len(node.args) or not all(isinstance(n, int) for n in numbers):
        return 1
    try:
        return max(len(range(*numbers)), 1)
    except (TypeError, ValueError, OverflowError):
        return 1


def _block_filters(tree: nodes.Template) -> Iterator[tuple[nodes.Node, str]]:
    """Filters whose operand is printed text, in which placeholders stand for the values."""
    printed: set[str] = set()
    for block in tree.find_all((nodes.FilterBlock, nodes.AssignBlock, nodes.Macro)):
        if not any(_prints_value(child) for child in getattr(block, "body", ())):
            continue
        if isinstance(block, nodes.FilterBlock) or getattr(block, "filter", None) is not None:
            yield block, "a filter over a block would act on placeholders: filter the value itself"
        elif isinstance(block, nodes.Macro):
            printed.add(block.name)
        elif isinstance(block, nodes.AssignBlock) and isinstance(block.target, nodes.Name):
            printed.add(block.target.name)
    for node in tree.find_all((nodes.Filter, nodes.Test, nodes.Compare)):
        operand = getattr(node, "expr", None) or getattr(node, "node", None)
        if isinstance(operand, nodes.Call):
            operand = operand.node
        is_printed = isinstance(operand, nodes.Name) and operand.name in printed
        if is_printed and getattr(node, "name", "") not in _HARMLESS:
            name = getattr(operand, "name", "")
            yield node, f"`{name}` is printed text with placeholders in it: use the values"


def _prints_value(node: nodes.Node) -> bool:
    outputs = [node] if isinstance(node, nodes.Output) else node.find_all(nodes.Output)
    return any(not isinstance(part, nodes.TemplateData) for out in outputs for part in out.nodes)


def _input_bounds(tree: nodes.Template) -> Iterator[tuple[nodes.Node, str]]:
    try:
        outside = meta.find_undeclared_variables(tree)
    except TemplateError:
        return  # an unknown filter, say: compiling tells
    for node in tree.find_all(nodes.Call):
        names: set[str] = set()
        for arg in node.args if _is_range(node) else ():
            counts = {id(name) for part in _lengths(arg) for name in part.find_all(nodes.Name)}
            found = [arg] if isinstance(arg, nodes.Name) else arg.find_all(nodes.Name)
            names |= {name.name for name in found if id(name) not in counts}
        if names & outside:
            yield node, f"the loop runs as often as {', '.join(sorted(names & outside))} says"


def _lengths(node: nodes.Node) -> list[nodes.Node]:
    """Parts of an expression that count what a value holds: that bounds a loop by itself."""
    inside = [part for part in node.find_all(nodes.Filter) if part.name in ("length", "count")]
    is_length = isinstance(node, nodes.Filter) and node.name in ("length", "count")
    return [node, *inside] if is_length else [*inside]
