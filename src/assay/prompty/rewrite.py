"""Replacing blocks of a front matter while everything else stays as it was written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from assay.errors import PromptyError
from assay.prompty.frontmatter import parse, scalar
from assay.prompty.source import split

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_ENDING = re.compile(r"\r\n|\n|\r")


def replace_blocks(
    text: str, blocks: Mapping[str, Any], path: Path | None = None
) -> tuple[str, list[str]]:
    """`text` with the top-level keys in `blocks` given new values, and notes for people.

    The body, the other keys, byte order mark and line endings stay byte for byte. Comments
    inside a replaced block are put above it. Only where blocks cannot be told apart (anchors,
    one flow mapping, `? key` entries) is the front matter written anew as a whole.
    """
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    lines = _ENDING.split(text[len(mark) :])
    endings = [*_ENDING.findall(text[len(mark) :]), ""]
    source = split("\n".join(lines), path)
    if source.front is None:
        return text, []
    first, last = source.front_line - 1, source.body_line - 2
    newline = endings[0] or "\n"
    front, notes = _new_front(source.front, source.front_line, blocks, path)
    head = "".join(map(str.__add__, lines[:first], endings[:first]))
    tail = "".join(map(str.__add__, lines[last:], endings[last:]))
    middle = "".join(line + newline for line in front)
    if len(set(endings[:-1])) > 1:
        notes.append("the file mixes line endings: the front matter now has one kind")
    return mark + head + middle + tail, notes


def _new_front(
    front: str, first_line: int, blocks: Mapping[str, Any], path: Path | None
) -> tuple[list[str], list[str]]:
    root = yaml.compose(front, _LOADER)
    lines = front.split("\n")
    if not isinstance(root, yaml.MappingNode):
        return lines, []
    values, _ = parse(front, first_line, path)
    wanted = {**values, **blocks}
    anchors = any(getattr(event, "anchor", None) for event in yaml.parse(front, _LOADER))
    if not anchors and not root.flow_style:
        result = _block_by_block(root, lines, blocks)
        if _means(result, wanted):
            return result, []
    note = "the front matter was written anew as a whole: its comments are not kept"
    return _dump(wanted, 0), [note]


def _means(lines: list[str], wanted: Mapping[str, Any]) -> bool:
    """Whether lines put together from old and new blocks say what they should."""
    try:
        return parse("\n".join(lines), 1)[0] == wanted
    except PromptyError:
        return False


def _block_by_block(
    root: yaml.MappingNode, lines: list[str], blocks: Mapping[str, Any]
) -> list[str]:
    keys = [(key.value, key.start_mark) for key, _ in root.value]
    spans = list(_scalar_spans(root))
    result = lines[: keys[0][1].line] if keys else lines[:]
    for number, (key, mark) in enumerate(keys):
        end = keys[number + 1][1].line if number + 1 < len(keys) else len(lines)
        stop = end
        while stop > mark.line + 1 and _is_between(lines[stop - 1]):
            stop -= 1
        if key in blocks:
            indent = mark.column
            comments = _comments(lines, mark.line, stop, spans)
            result += [" " * indent + comment for comment in comments]
            result += _dump({key: blocks[key]}, indent)
        else:
            result += lines[mark.line : stop]
        result += lines[stop:end]
    return result


def _is_between(line: str) -> bool:
    """Blank lines and comments at the margin belong to what follows."""
    return not line.strip() or line.startswith("#")


def _scalar_spans(node: yaml.Node) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """(line, column) where each scalar starts and ends: a # in there is no comment."""
    if isinstance(node, yaml.ScalarNode):
        start, end = node.start_mark, node.end_mark
        yield (start.line, start.column), (end.line, end.column)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _scalar_spans(key)
            yield from _scalar_spans(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _scalar_spans(item)


def _comments(lines: list[str], first: int, last: int, spans: list[Any]) -> list[str]:
    found = []
    for number in range(first, last):
        for match in re.finditer(r"(?:(?<=\s)|^)#.*", lines[number]):
            place = (number, match.start())
            if not any(start <= place < end for start, end in spans):
                found.append(match[0].rstrip())
                break
    return found


class _Dumper(yaml.SafeDumper):
    """Block style, lists indented, and quotes wherever YAML 1.2 would read something else."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = None
    if "\n" in value:
        style = "|"
    elif not isinstance(scalar(value), str):
        style = "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def _dump(value: Mapping[str, Any], indent: int) -> list[str]:
    text = yaml.dump(
        dict(value), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000
    )
    return [" " * indent + line if line else line for line in text.rstrip("\n").split("\n")]
