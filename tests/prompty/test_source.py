"""Bytes to text, and text to front matter and body."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from assay.errors import PromptyError
from assay.prompty import load, loads
from assay.prompty.source import Source, decode, split

TEXT = "---\nname: é\n---\nuser:\nHällo 質問\n"


@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode(),
        codecs.BOM_UTF8 + TEXT.encode(),
        codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"),
        codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
        TEXT.replace("\n", "\r\n").encode(),
        TEXT.replace("\n", "\r").encode(),
    ],
    ids=["utf-8", "utf-8 bom", "utf-16-le", "utf-16-be", "crlf", "cr"],
)
def test_every_encoding_and_newline_gives_the_same_text(data: bytes) -> None:
    assert decode(data) == TEXT


def test_loads_takes_text_that_was_read_with_its_byte_order_mark_and_old_newlines() -> None:
    for text in ("\ufeff" + TEXT, TEXT.replace("\n", "\r\n"), TEXT.replace("\n", "\r")):
        prompty = loads(text)
        assert prompty.front == {"name": "é"}
        assert prompty.body == "user:\nHällo 質問\n"


def test_latin_1_is_refused_with_the_byte_and_its_line(tmp_path: Path) -> None:
    path = tmp_path / "old.prompty"
    path.write_bytes("---\nname: x\n---\nuser:\ncafé\n".encode("latin-1"))
    with pytest.raises(PromptyError) as caught:
        load(path)
    assert caught.value.line == 5
    assert caught.value.code == "encoding"
    assert str(caught.value).startswith(f"{path}:5: ")
    assert "0xe9 at offset 25" in str(caught.value)  # 4 + 8 + 4 + 6 bytes, then "caf"


@pytest.mark.parametrize("data", [b"\x7fELF\x00\x01\xff", b"ok\x00ok"])
def test_a_binary_file_is_refused(data: bytes) -> None:
    with pytest.raises(PromptyError, match="binary"):
        decode(data)


def test_what_cannot_be_opened_is_a_prompty_error(tmp_path: Path) -> None:
    with pytest.raises(PromptyError, match="No such file"):
        load(tmp_path / "absent.prompty")
    with pytest.raises(PromptyError, match="folder"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("text", "front", "body"),
    [
        ("---\na: 1\n---\nB\n", "a: 1", "B\n"),
        ("\n\n \n---\na: 1\n---\nB", "a: 1", "B"),
        ("# generated\n\n# twice\n---\na: 1\n---\nB", "a: 1", "B"),
        ("--- \na: 1\n---\t\nB", "a: 1", "B"),
        ("----\na: 1\n-----\nB", "a: 1", "B"),
        ("+++\na: 1\n+++\nB", "a: 1", "B"),
        ("+++\na: 1\n---\n+++\nB", "a: 1\n---", "B"),
        ("---\na: 1\n---\nB\n---\nC", "a: 1", "B\n---\nC"),
        ("---\na: 1\n---\nthe end ---\nC", "a: 1", "the end ---\nC"),
        ("---\na: 1\n---\n| x |\n|---|---|\n", "a: 1", "| x |\n|---|---|\n"),
        ("---\na: x --- y\n---\nB", "a: x --- y", "B"),
        ("---\na: |\n  ---\n---\nB", "a: |\n  ---", "B"),
        ("---\n---\nB", "", "B"),
        ("---\na: 1\n---", "a: 1", ""),
        ("---\na: 1\n---\n", "a: 1", ""),
        ("user:\nB\n---\nC", None, "user:\nB\n---\nC"),
        ("# Title\nB", None, "# Title\nB"),
        ("--\nB", None, "--\nB"),
        ("", None, ""),
    ],
)
def test_only_the_first_pair_of_whole_line_delimiters_cuts(
    text: str, front: str | None, body: str
) -> None:
    source = split(text)
    assert (source.front, source.body) == (front, body)


def test_line_numbers_name_the_first_line_of_each_part() -> None:
    assert split("\n# c\n---\na: 1\nb: 2\n---\nB") == Source("a: 1\nb: 2", 4, "B", 7)


@pytest.mark.parametrize(
    ("text", "line", "code"),
    [
        ("---\na: 1\nuser:\nB", 1, "unclosed"),
        ("\n+++\na: 1\n---\nB", 2, "unclosed"),
        (" ---\n a: 1\n ---\n B", 1, "indented-delimiter"),
    ],
)
def test_delimiters_that_do_not_pair_say_where(text: str, line: int, code: str) -> None:
    with pytest.raises(PromptyError) as caught:
        split(text, "f.prompty")
    assert (caught.value.line, caught.value.code) == (line, code)
    assert str(caught.value).startswith(f"f.prompty:{line}: ")
