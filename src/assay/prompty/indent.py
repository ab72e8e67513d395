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
_ENTRY = re.compile(r"-\s+[\w.-]+\s*:(\s|$)")
_SAMPLE_FILE = re.compile(r"sample\s*:\s*(\$\{|\S+\.json\s*$)")
_PROPERTIES = {
    *("type", "kind", "default", "description", "required", "optional", "nullable", "sample"),
    *("example", "is_chat_history", "is_chat_input", "minimum", "maximum", "min_value"),
    *("max_value", "threshold", "is_primary", "desirable_direction"),
    *("levels", "enum", "enumValues", "enumDescriptions"),
}
_LISTS = {"levels", "enum", "enumValues", "enumDescriptions"}
_FORMAT = {"type", "json_schema"}


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
    """The same front matter with its levels put back; comments and blank lines stay.

    The text is returned unchanged where the levels cannot be told: texts over several lines,
    lists of mappings, and mappings that the dialect leaves to the author.
    """
    lines = text.split("\n")
    levels = _Levels()
    result: list[str] = []
    for index, line in enumerate(lines):
        after = next((rest for rest in lines[index + 1 :] if _is_content(rest)), "")
        depth = levels.depth(line, after) if _is_content(line) else 0
        if depth is None:
            return text
        result.append("  " * depth + line)
    return "\n".join(result)


def _is_content(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


class _Levels:
    """Where a reader of the lines stands: in which block, and in which part of it.

    part: `field` below the name of an input or output, `levels` below a `levels:`, `format`
    below a `response_format:`.
    """

    def __init__(self) -> None:
        self.block = ""
        self.part = ""
        self.last = 0

    def depth(self, line: str, after: str) -> int | None:
        """Levels of indentation of a line; None where they cannot be told."""
        if line.startswith("-"):
            return None if _ENTRY.match(line) else self.last
        match = _KEY.match(line)
        if match is None or re.match(r"[|>]", match[2] or ""):
            return None
        name, is_open = match[1], not match[2]
        found = self._of_block(name, is_open, match[2] or "")
        if found is None:
            in_fields = self.block in ("inputs", "outputs")
            if _SAMPLE_FILE.match(line):
                found = self._top(name, is_open, after)
            else:
                found = (self._field if in_fields else self._other)(name, is_open, after)
        if found is not None:
            self.last = found
        return found

    def _of_block(self, name: str, is_open: bool, value: str) -> int | None:
        """The depth of a line that opens a block."""
        if name not in _BLOCKS or not (is_open or value[:1] in ("{", "$", "[")):
            return None
        inside = name in ("configuration", "parameters")
        self.block, self.part = name, ""
        return 1 if inside else 0

    def _field(self, name: str, is_open: bool, after: str) -> int | None:
        """Inside `inputs` or `outputs`: a name, a property of one, or a level."""
        if self.part == "levels" and not is_open and name not in _PROPERTIES:
            return 3
        is_property = self.part != "" and name in _PROPERTIES
        if is_property and (not is_open or name in _LISTS):
            self.part = "levels" if name in _LISTS else "field"
            return 2
        # `description:` with nothing after it and `type:` below is an input of that name.
        is_name = is_open and name in _TEXTS and _is_property(after)
        if name in _TOP and not is_name:
            return self._top(name, is_open, after)
        self.part = "field" if is_open else ""
        return 1

    def _other(self, name: str, is_open: bool, after: str) -> int | None:
        if self.part == "format" and name in _FORMAT:
            return 3
        self.part = ""
        follows_list = after.startswith("-")
        in_template = self.block == "template" and name in ("type", "format", "parser", "strict")
        if self.block == "sample" or in_template:
            return 1 if not is_open or follows_list else None
        if self.block == "metadata" and name in ("authors", "tags", "version"):
            return 1
        if name in _TOP:
            return self._top(name, is_open, after)
        if self.block in ("configuration", "parameters") and name in ("api", "response"):
            self.block = "model"
        if self.block in ("configuration", "parameters"):
            self.part = "format" if name == "response_format" and is_open else ""
            return 2 if not is_open or follows_list or self.part else None
        if self.block == "model":
            return 1 if not is_open else None
        return 0 if not is_open or follows_list or self.block == "" else None

    def _top(self, name: str, is_open: bool, after: str) -> int:
        """A key at the margin; only some of them are blocks with lines of their own."""
        has_lines = is_open and not after.startswith("-")
        self.block = name if has_lines and name in ("sample", "template", "metadata") else ""
        self.part = ""
        return 0


def _is_property(line: str) -> bool:
    match = _KEY.match(line)
    return match is not None and match[1] in _PROPERTIES and bool(match[2])
