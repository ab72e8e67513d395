"""Front matter that was pasted from a web page and lost all its indentation.

The classic dialect has a fixed grammar, so the levels can be put back: `model` holds `api`,
`configuration` and `parameters`; `inputs` and `outputs` hold names that hold properties.
"""

from __future__ import annotations

import re

_TOP = {"name", "description", "authors", "tags", "version", "metadata", "sample", "template"}
_TEXTS = {"name", "description", "authors", "tags", "version"}
_BLOCKS = ("model", "configuration", "parameters", "inputs", "outputs")
_CHILD = re.compile(r"(api|configuration|parameters|type|azure_\w+|connection|temperature)\s*:")
_KEY = re.compile(r"([\w.-]+)\s*:(?:\s+(.*?))?\s*$")
_PROPERTIES = {
    "type",
    "default",
    "description",
    "required",
    "optional",
    "minimum",
    "maximum",
    "threshold",
    "is_primary",
    "desirable_direction",
}


def lost_indentation(text: str) -> str | None:
    """The blocks that stand empty at column 0, as text, where that is what happened."""
    if "\n " in text or "\n\t" in text or text[:1] in (" ", "\t"):
        return None
    lines = [line for line in text.split("\n") if line.strip()]
    empty = [
        line.rstrip().rstrip(":").rstrip()
        for line in lines
        if re.match(r"(model|configuration|parameters|inputs|outputs)\s*:\s*$", line)
    ]
    if len(empty) < 2:
        return None
    follows = any(
        line.rstrip().rstrip(":").rstrip() in empty and _CHILD.match(after)
        for line, after in zip(lines, lines[1:], strict=False)
    )
    return ", ".join(f"`{name}:`" for name in empty) if follows else None


def restore_indentation(text: str) -> str:
    """The same front matter with its levels put back; comments and blank lines stay."""
    result: list[str] = []
    block = ""
    field_open = False
    lines = text.split("\n")
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        match = _KEY.match(line)
        if match is None:
            result.append(line)
            continue
        name, value = match[1], match[2]
        in_fields = block in ("inputs", "outputs")
        is_property = in_fields and field_open and name in _PROPERTIES and value is not None
        # `description:` with nothing after it and `type:` below is an input of that name.
        is_field = in_fields and name in _TEXTS and value is None and _is_property(after)
        if name in _BLOCKS:
            block, field_open = name, False
            depth = 1 if name in ("configuration", "parameters") else 0
        elif name in _TOP and not (is_property or is_field) and block != "sample":
            block, depth = name, 0
        elif in_fields:
            depth = 2 if is_property else 1
            field_open = is_property or value is None
        elif block in ("configuration", "parameters"):
            depth = 2
        else:
            depth = 1 if block in ("model", "sample") else 0
        result.append("  " * depth + line)
    return "\n".join(result)


def _is_property(line: str) -> bool:
    match = _KEY.match(line)
    return match is not None and match[1] in _PROPERTIES and match[2] is not None
