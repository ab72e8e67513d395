"""From the bytes of a .prompty file to its two parts: front matter and body."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from pathlib import Path

from assay.errors import PromptyError

BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DELIMITER = re.compile(r"(-{3,}|\+{3,})[ \t]*$")
_SKIPPED = re.compile(r"\s*(#.*)?$")


@dataclass(frozen=True, slots=True)
class Source:
    """A file cut in two. Line numbers are from 1 and name the first line of each part.

    `front` is None for a file without front matter.
    """

    front: str | None
    front_line: int
    body: str
    body_line: int


def decode(data: bytes, path: Path | str | None = None) -> str:
    """Text of a file: UTF-8, or UTF-16 by its byte order mark; newlines become \\n.

    Raises PromptyError that names the byte and the line where it is neither.
    """
    return normal(decode_verbatim(data, path)[0])


def decode_verbatim(data: bytes, path: Path | str | None = None) -> tuple[str, str, bytes]:
    """(text with its newlines as they are, encoding, byte order mark), to write it back."""
    encoding, mark = "utf-8", b""
    for bom, name in BOMS:
        if data.startswith(bom):
            data, encoding, mark = data[len(bom) :], name, bom
            break
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        kind = "a binary file" if b"\0" in data[:1024] else f"not {encoding.upper()} text"
        raise PromptyError(
            f"{kind}: byte 0x{data[error.start]:02x} at offset {error.start}; save it as UTF-8",
            path=path,
            line=line,
            code="encoding",
        ) from None
    if "\0" in text:
        raise PromptyError("a binary file, not a .prompty", path=path, code="encoding")
    return text, encoding, mark


def normal(text: str) -> str:
    """`text` without a byte order mark, every newline as \\n."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def split(text: str, path: Path | str | None = None) -> Source:
    """Cut at the delimiters: whole lines of three or more `-` (or `+`), the first pair only.

    Blank lines and `#` comments may stand before the first one. A file that does not open
    with a delimiter is all body.
    """
    lines = text.split("\n")
    first = 0
    while first < len(lines) and _SKIPPED.match(lines[first]):
        first += 1
    opening = _DELIMITER.match(lines[first]) if first < len(lines) else None
    if opening is None and first < len(lines) and _DELIMITER.match(lines[first].strip()):
        raise PromptyError(
            "the front matter's opening line is indented: `---` must start in column 1",
            path=path,
            line=first + 1,
            code="indented-delimiter",
        )
    if opening is None:
        return Source(None, 1, text, 1)
    mark = opening[1][0]
    for number in range(first + 1, len(lines)):
        closing = _DELIMITER.match(lines[number])
        if closing and closing[1][0] == mark:
            return Source(
                front="\n".join(lines[first + 1 : number]),
                front_line=first + 2,
                body="\n".join(lines[number + 1 :]),
                body_line=number + 2,
            )
    raise PromptyError(
        f"the front matter opened here is never closed: add a line with only {mark * 3}",
        path=path,
        line=first + 1,
        code="unclosed",
    )
