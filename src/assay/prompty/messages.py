"""From rendered text, with tokens in place of values, to chat messages."""

from __future__ import annotations

import ast
import base64
import json
import mimetypes
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from assay.errors import RenderError
from assay.prompty.fences import closed_fences
from assay.prompty.template import TOKEN, Image, Rendered, RoleName, Thread, as_text

Message = dict[str, Any]

ROLES = ("system", "user", "assistant", "developer", "tool", "function")
_T = "\ue000[0-9]{16}:[0-9]+\ue001"
ROLE_LINE = re.compile(
    rf"[ \t]*#?[ \t]*(?:(?P<role>{'|'.join(ROLES)})|(?P<token>{_T}))[ \t]*"
    r"(?:\[(?P<attributes>[^\[\]\n]{0,200})\])?[ \t]*:[ \t]*",
    re.IGNORECASE,
)
_HEADING = re.compile(r"[ \t]*##[ \t]*(name|content|tool_call_id|tool_calls)[ \t]*:[ \t]*$")
_ATTRIBUTE = re.compile(r"""(\w+)[ \t]*=[ \t]*(?:"([^"]*)"|'([^']*)'|([^,\s]+))""")
_IMAGE = re.compile(
    rf"!\[[^\[\]\n]*\]\([ \t]*(?:(?P<token>{_T})|(?P<literal>[^)\[\]\s\ue000]++))[ \t]*\)"
)
_LONE_TOKEN = re.compile(rf"[ \t]*({_T})[ \t]*$")


def to_messages(rendered: Rendered, path: Path | None = None) -> list[Message]:
    """Cut at role lines, then put the values back.

    A role line holds a role name alone (`system:`, `# User:`, `user[name="Al"]:`), stands
    outside fenced code and comes from the template's own text. Text before the first one is
    a system message; parts with nothing in them are left out.
    Raises RenderError where nothing is left.
    """
    if _is_plain(rendered):
        skeleton = rendered.text.replace(rendered.nonce, _ANY_NONCE)
        messages = [
            {key: _fill(pieces, rendered) for key, pieces in message} for message in _plan(skeleton)
        ]
    else:
        messages = _cut(rendered, path)
    if not messages:
        raise RenderError("the prompt has no messages: its body is empty", path=path, code="empty")
    return messages


_ANY_NONCE = "0" * 16
_Pieces = tuple[str | int, ...]


class _Skeleton(Rendered):
    """Text in which every value is still a token."""

    def restore(self, text: str) -> str:
        return text

    def value_of(self, match: re.Match[str]) -> Any:
        return None


def _is_plain(rendered: Rendered) -> bool:
    """Whether the cut depends on the template's text alone: then it is made once, not per row."""
    if rendered.has_threads or rendered.has_images or rendered.has_roles:
        return False
    return "![" not in rendered.text and "tool_calls" not in rendered.text


@lru_cache(maxsize=256)
def _plan(skeleton: str) -> tuple[tuple[tuple[str, _Pieces], ...], ...]:
    """Messages as (key, pieces): text, and the number of the value that stands between."""
    messages = _cut(_Skeleton(nonce=_ANY_NONCE, text=skeleton), None)
    return tuple(
        tuple((key, _pieces(value)) for key, value in message.items()) for message in messages
    )


def _pieces(text: str) -> _Pieces:
    parts: list[str | int] = []
    start = 0
    for match in TOKEN.finditer(text):
        parts += [text[start : match.start()], int(match[2])]
        start = match.end()
    return tuple(part for part in (*parts, text[start:]) if part != "")


def _fill(pieces: _Pieces, rendered: Rendered) -> str:
    values = rendered.values
    return "".join(
        piece if isinstance(piece, str) else rendered.restore(as_text(values[piece]))
        for piece in pieces
    )


def _cut(rendered: Rendered, path: Path | None) -> list[Message]:
    messages: list[Message] = []
    for role, attributes, text in _parts(rendered, path):
        messages.extend(_messages(role, attributes, text, rendered, path))
    return messages


def _parts(rendered: Rendered, path: Path | None) -> Iterator[tuple[str, str, str]]:
    lines = rendered.text.split("\n")
    inside = _fenced(rendered.text, lines)
    role, attributes, held = "system", "", list[str]()
    for index, line in enumerate(lines):
        may_be = line.rstrip(" \t").endswith(":") and index not in inside
        found = ROLE_LINE.fullmatch(line) if may_be else None
        name = _role(found, rendered, path) if found else None
        if found is None or name is None:
            held.append(line)
            continue
        yield role, attributes, "\n".join(held)
        role, attributes, held = name, found["attributes"] or "", []
    yield role, attributes, "\n".join(held)


def _fenced(text: str, lines: list[str]) -> set[int]:
    """The indexes of lines inside fenced code."""
    if "```" not in text and "~~~" not in text:
        return set()
    return {i for first, last in closed_fences(lines) for i in range(first, last + 1)}


def _role(found: re.Match[str], rendered: Rendered, path: Path | None) -> str | None:
    if found["role"]:
        return found["role"].lower()
    token = TOKEN.fullmatch(found["token"])
    value = rendered.value_of(token) if token else None
    if not isinstance(value, RoleName):
        return None
    if value.strip().lower() in ROLES:
        return value.strip().lower()
    raise RenderError(
        f"the template prints the role {str(value)!r}; roles are {', '.join(ROLES)}",
        path=path,
        code="role",
    )


def _messages(
    role: str, attributes: str, text: str, rendered: Rendered, path: Path | None
) -> Iterator[Message]:
    """One part as a message, or as several where a thread stands alone on a line."""
    message: Message = {"role": role}
    for match in _ATTRIBUTE.finditer(attributes):
        if match[1] == "name":
            message["name"] = rendered.restore(match[2] or match[3] or match[4] or "")
    text = _headings(text, message, rendered, path) if "##" in text else text
    if not rendered.has_threads:
        yield from _content(message, text, rendered, path)
        return
    held: list[str] = []
    for line in text.split("\n"):
        thread = _thread(line, rendered)
        if thread is None:
            held.append(line)
            continue
        yield from _content(message, "\n".join(held), rendered, path)
        yield from thread
        held = []
    yield from _content(message, "\n".join(held), rendered, path)


def _content(
    message: Message, text: str, rendered: Rendered, path: Path | None
) -> Iterator[Message]:
    text = text.strip()
    if text or "tool_calls" in message:
        yield {**message, "content": _with_images(text, rendered, path)}


def _headings(text: str, message: Message, rendered: Rendered, path: Path | None) -> str:
    """Take `## name:`, `## tool_call_id:`, `## tool_calls:` off the start of a part."""
    lines = text.lstrip("\n").split("\n")
    if not _HEADING.match(lines[0]):
        return text
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        match = _HEADING.match(line)
        if match and "content" not in sections:
            current = sections.setdefault(match[1], [])
        else:
            current.append(line)
    if not sections.keys() & {"content", "tool_calls"}:
        return text  # a heading of the prompt's own
    for key, held in sections.items():
        value = rendered.restore("\n".join(held).strip())
        if key == "tool_calls":
            message[key] = _literal(value, path)
        elif key != "content":
            message[key] = value
    return "\n".join(sections.get("content", []))


def _literal(text: str, path: Path | None) -> Any:
    """A list written in the template, as JSON or as Python wrote it."""
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
    raise RenderError("`## tool_calls:` holds neither JSON nor a list", path=path, code="role")


def _thread(line: str, rendered: Rendered) -> list[Message] | None:
    match = _LONE_TOKEN.match(line) if "\ue000" in line else None
    token = TOKEN.fullmatch(match[1]) if match else None
    value = rendered.value_of(token) if token else None
    return thread_messages(value) if isinstance(value, Thread) else None


def thread_messages(thread: Thread) -> list[Message]:
    """The messages of a thread value. Raises RenderError for entries that are no messages."""
    messages = []
    for entry in thread:
        role = str(entry.get("role", "")).lower() if isinstance(entry, dict) else ""
        if role not in ROLES or "content" not in entry:
            raise RenderError(f"not a message of a thread: {str(entry)[:80]}", code="thread")
        messages.append({**entry, "role": role})
    return messages


def _with_images(text: str, rendered: Rendered, path: Path | None) -> str | list[dict[str, Any]]:
    """Text, or text and image parts where the template itself writes an image."""
    if not rendered.has_images and "![" not in text:
        return rendered.restore(text)
    parts: list[dict[str, Any]] = []
    start = 0
    for match in _images(text, rendered):
        url = _url(match, rendered, path)
        if url is None:
            continue
        before = rendered.restore(text[start : match.start()].strip())
        if before:
            parts.append({"type": "text", "text": before})
        parts.append({"type": "image_url", "image_url": {"url": url}})
        start = match.end()
    if not parts:
        return rendered.restore(text)
    rest = rendered.restore(text[start:].strip())
    return [*parts, {"type": "text", "text": rest}] if rest else parts


def _images(text: str, rendered: Rendered) -> list[re.Match[str]]:
    found = list(_IMAGE.finditer(text))
    taken = [range(match.start(), match.end()) for match in found]
    for match in TOKEN.finditer(text):
        alone = not any(match.start() in span for span in taken)
        if alone and isinstance(rendered.value_of(match), Image):
            found.append(match)
    return sorted(found, key=lambda match: match.start())


def _url(match: re.Match[str], rendered: Rendered, path: Path | None) -> str | None:
    """Where an image comes from. A value may hold its bytes or a web address, never a path."""
    literal = match.groupdict().get("literal")
    if literal is None:
        value = rendered.restore(match.groupdict().get("token") or match[0])
        return value if re.match(r"(?i)data:image/|https://", value) else None
    if re.match(r"(?i)data:image/|https?://", literal):
        return literal
    return _inline(literal, path)


def _inline(name: str, path: Path | None) -> str | None:
    kind = mimetypes.guess_type(name)[0] or ""
    if path is None or not kind.startswith("image/"):
        return None
    folder = path.resolve().parent
    target = (folder / name).resolve()
    if not target.is_relative_to(folder) or not target.is_file():
        return None
    return f"data:{kind};base64,{base64.b64encode(target.read_bytes()).decode()}"
