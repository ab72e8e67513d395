"""Rows come out of every kind of file as they are in it, or an error says where it is broken."""

from __future__ import annotations

import codecs
import csv
import json
import math
import os
import tracemalloc
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.errors import DataError, SetupError
from assay.run.data import Data

ROWS = [{"question": "q é 日本", "answer": "first"}, {"question": "q2", "answer": "second"}]
LINES = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)


def read(source: Any, **options: Any) -> list[dict[str, Any]]:
    return [dict(row.columns) for row in Data(source, **options).rows()]


def put(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def complaint(source: Any, **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        Data(source, **options).survey()
    return str(caught.value)


# --- JSON ----------------------------------------------------------------------------------------

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**25), 10**25)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=4,
)
json_rows = st.lists(
    st.dictionaries(st.text(max_size=8), json_values, max_size=4), min_size=1, max_size=3
)
encodings = st.sampled_from(
    [
        (b"", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ]
)


@given(
    rows=json_rows,
    encoding=encodings,
    newline=st.sampled_from(["\n", "\r\n", "\n\n"]),
    final=st.booleans(),
    ascii_only=st.booleans(),
    as_array=st.booleans(),
)
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_json_holds_comes_out_unchanged(
    own_folder: Path,
    rows: list[dict[str, Any]],
    encoding: tuple[bytes, str],
    newline: str,
    final: bool,
    ascii_only: bool,
    as_array: bool,
) -> None:
    def dump(value: Any) -> str:
        return json.dumps(value, ensure_ascii=ascii_only)

    bom, name = encoding
    text = dump(rows) if as_array else newline.join(dump(row) for row in rows)
    path = put(own_folder / "data.jsonl", bom + (text + newline * final).encode(name))
    assert repr(read(path)) == repr(rows)  # repr: 1, 1.0 and true are equal, but not the same


@pytest.mark.parametrize(
    "content",
    [
        LINES.encode(),
        codecs.BOM_UTF8 + LINES.encode(),
        codecs.BOM_UTF16_LE + LINES.encode("utf-16-le"),
        codecs.BOM_UTF16_BE + LINES.encode("utf-16-be"),
        LINES.replace("\n", "\r\n").encode(),
        LINES.rstrip("\n").encode(),
        ("\n \n" + LINES + "\n\n").encode(),
        json.dumps(ROWS, indent=2).encode(),
        ("\n" + json.dumps(ROWS, indent=2)).encode(),
    ],
    ids=[
        "plain",
        "bom",
        "utf-16-le",
        "utf-16-be",
        "crlf",
        "no end",
        "blank",
        "array",
        "late array",
    ],
)
def test_the_same_rows_in_many_wrappings(tmp_path: Path, content: bytes) -> None:
    found = read(put(tmp_path / "data.jsonl", content))
    assert found == ROWS
    assert list(found[0]) == ["question", "answer"]


def test_only_a_newline_ends_a_line(tmp_path: Path) -> None:
    odd = "a\u2028b\u2029c\u0085d\u000be\u000cf\u001cg"
    line = json.dumps({"question": odd}, ensure_ascii=False)
    line = line.replace("\\u000b", "\\u000b")  # JSON wants control characters escaped
    assert read(put(tmp_path / "data.jsonl", line + "\n")) == [{"question": odd}]


def test_typed_values_are_kept(tmp_path: Path) -> None:
    line = (
        '{"big": 12345678901234567890, "code": "007", "zero": 0, "no": false, "price": 1.10, '
        '"text": "None", "gone": null, "list": ["a", 1], "object": {"a": {"b": null}}}'
    )
    [row] = read(put(tmp_path / "data.jsonl", line))
    assert row == {
        "big": 12345678901234567890,
        "code": "007",
        "zero": 0,
        "no": False,
        "price": 1.1,
        "text": "None",
        "gone": None,
        "list": ["a", 1],
        "object": {"a": {"b": None}},
    }
    assert type(row["zero"]) is int
    assert type(row["no"]) is bool


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_json_lacks_is_null_and_noted(tmp_path: Path, constant: str) -> None:
    path = put(tmp_path / "data.jsonl", f'{{"a": "x"}}\n{{"a": {constant}}}\n{{"a": "y"}}\n')
    first, odd, last = Data(path).rows()
    assert odd.columns == {"a": None}
    assert odd.note is not None
    assert constant in odd.note
    assert (first.note, last.note) == (None, None)


def test_a_key_given_twice_is_an_error_at_any_depth(tmp_path: Path) -> None:
    path = put(tmp_path / "data.jsonl", '{"a": 1}\n{"question": "q", "answer": 1, "answer": 2}\n')
    assert complaint(path) == f"{path}:2: the key `answer` is given twice"
    path = put(tmp_path / "data.jsonl", '{"a": {"deep": 1, "deep": 1}}\n')
    assert complaint(path) == f"{path}:1: the key `deep` is given twice"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"a": 1', "not JSON"),
        ("{'a': 1}", "not JSON"),
        ('{"a": 1} {"a": 2}', "not JSON"),
        ('"text"', "a row must be a JSON object, not str"),
        ("17", "a row must be a JSON object, not int"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "not JSON"),
        ('{"a": ' + "9" * 5_000 + "}", "not JSON"),
    ],
    ids=["cut", "quotes", "two", "text", "number", "deep", "digits"],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, says: str) -> None:
    path = put(tmp_path / "data.jsonl", '{"a": 1}\n\n' + line + '\n{"a": 2}\n')
    message = complaint(path)
    assert message.startswith(f"{path}:3: ")
    assert says in message
    assert "\n" not in message


def test_an_array_must_hold_objects(tmp_path: Path) -> None:
    assert "row 2 must be a dict, not int" in complaint(put(tmp_path / "a.json", '[{"a": 1}, 2]'))


def test_bytes_that_are_not_utf8_name_line_byte_and_way_out(tmp_path: Path) -> None:
    path = put(tmp_path / "data.jsonl", '{"a": "x"}\n{"a": "café"}\n'.encode("latin-1"))
    message = complaint(path)
    assert message.startswith(f"{path}:2: byte 0xe9 at column 11 ")
    assert "--encoding" in message
    assert read(path, encoding="latin-1") == [{"a": "x"}, {"a": "café"}]


def test_an_encoding_can_be_given(tmp_path: Path) -> None:
    path = put(tmp_path / "data.csv", "a\nпривет\n".encode("cp1251"))
    assert read(path, encoding="cp1251") == [{"a": "привет"}]
    path = put(tmp_path / "data.jsonl", LINES.encode("utf-16-le"))  # without a byte order mark
    assert read(path, encoding="utf-16-le") == ROWS


def test_an_encoding_nobody_knows(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="unknown encoding 'utf-9'"):
        read(put(tmp_path / "data.jsonl", LINES), encoding="utf-9")


def test_utf16_cut_in_the_middle_of_a_character(tmp_path: Path) -> None:
    path = put(tmp_path / "data.jsonl", codecs.BOM_UTF16_LE + LINES.encode("utf-16-le")[:-3])
    assert complaint(path).startswith(f"{path}: not valid utf-16")


def test_a_line_of_ten_megabytes_is_held_a_few_times_at_most(tmp_path: Path) -> None:
    size = 10 * 2**20
    path = put(tmp_path / "data.jsonl", '{"a": "x"}\n{"a": "' + "lorem " * (size // 6) + '"}\n')
    tracemalloc.start()
    try:
        lengths = [len(row.columns["a"]) for row in Data(path).rows()]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert lengths == [1, size // 6 * 6]
    assert peak < 6 * size


def test_a_broken_line_of_ten_megabytes_makes_a_short_message(tmp_path: Path) -> None:
    path = put(tmp_path / "data.jsonl", '{"a": "' + "x" * 10 * 2**20 + '"\n')
    assert len(complaint(path)) < len(str(path)) + 200


# --- CSV -----------------------------------------------------------------------------------------


def test_cells_are_text_and_an_empty_one_is_no_value(tmp_path: Path) -> None:
    cells = ["007", "N/A", "None", "1e5", "TRUE", "42", "", "2026-01-02", "=1+1", " x "]
    path = put(tmp_path / "data.csv", "id,answer\n" + "".join(f"q,{cell}\n" for cell in cells))
    assert [row["answer"] for row in read(path)] == [cell or None for cell in cells]


cell = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=10)


@given(
    table=st.lists(st.lists(cell, min_size=3, max_size=3), min_size=1, max_size=4),
    suffix=st.sampled_from(["csv", "tsv"]),
    encoding=encodings,
    newline=st.sampled_from(["\n", "\r\n"]),
)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_the_csv_module_writes_comes_back(
    own_folder: Path,
    table: list[list[str]],
    suffix: str,
    encoding: tuple[bytes, str],
    newline: str,
) -> None:
    path = own_folder / f"data.{suffix}"
    bom, name = encoding
    with path.open("w", encoding=name, newline="") as file:
        file.write(bom.decode(name))
        delimiter = "\t" if suffix == "tsv" else ","
        out = csv.writer(file, delimiter=delimiter, lineterminator=newline, quoting=csv.QUOTE_ALL)
        out.writerow(["a", "b", "c"])
        out.writerows(["x", *cells] for cells in [line[1:] for line in table])
    expected = [{"a": "x", "b": line[1] or None, "c": line[2] or None} for line in table]
    assert read(path) == expected


def test_the_first_header_has_no_stray_character(tmp_path: Path) -> None:
    path = put(tmp_path / "data.csv", codecs.BOM_UTF8 + "question,answer\nq é,first\n".encode())
    assert read(path) == [{"question": "q é", "answer": "first"}]


def test_a_quoted_cell_may_hold_lines_and_later_errors_still_name_theirs(tmp_path: Path) -> None:
    path = put(tmp_path / "data.csv", 'a,b\n"one\r\ntwo\u2028three",x\ny\nz,1,2\n')
    assert complaint(path) == f"{path}:5: 3 cells, but the header names 2 columns"
    assert read(path, limit=2) == [
        {"a": "one\r\ntwo\u2028three", "b": "x"},
        {"a": "y", "b": None},
    ]


def test_a_cell_of_ten_megabytes(tmp_path: Path) -> None:
    path = put(tmp_path / "data.csv", "a,b\nx," + "y" * 10 * 2**20 + "\n")
    assert [len(row["b"]) for row in read(path)] == [10 * 2**20]


def test_a_repeated_header_is_an_error(tmp_path: Path) -> None:
    path = put(tmp_path / "data.csv", "question,answer,answer\nq,a,b\n")
    assert complaint(path) == f"{path}:1: the column `answer` is there twice"


def test_a_header_alone_is_no_data(tmp_path: Path) -> None:
    path = put(tmp_path / "data.csv", "question,answer\n")
    assert complaint(path) == f"{path} holds no rows"


# --- Excel, Parquet, frames ----------------------------------------------------------------------


def test_excel_cells_keep_what_they_hold(tmp_path: Path) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["code", "count", "price", "yes", "text", "gap", "day"])
    sheet.append(["007", 3, 1.5, True, "N/A", None, datetime(2026, 1, 2)])
    sheet.append(["008", None, 2.5, False, "None", "x", None])
    book.save(tmp_path / "data.xlsx")
    found = read(tmp_path / "data.xlsx")
    assert repr(found) == repr(
        [
            {
                "code": "007",
                "count": 3,
                "price": 1.5,
                "yes": True,
                "text": "N/A",
                "gap": None,
                "day": "2026-01-02T00:00:00",
            },
            {
                "code": "008",
                "count": None,
                "price": 2.5,
                "yes": False,
                "text": "None",
                "gap": "x",
                "day": None,
            },
        ]
    )


def test_parquet_values_keep_their_types(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"n": 2**53 + 1, "x": 0.5, "t": "007", "l": ["a", "b"], "o": {"k": 1}, "b": True},
        {"n": None, "x": None, "t": None, "l": [], "o": None, "b": None},
        {"n": 3, "x": 1.0, "t": "é", "l": None, "o": {"k": None}, "b": False},
    ]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), tmp_path / "data.parquet")
    assert repr(read(tmp_path / "data.parquet")) == repr(records)


def test_a_frame_gives_plain_values() -> None:
    frame = pandas.DataFrame(
        {
            "question": ["q1", "q2"],
            "count": [1, 2],
            "share": [0.5, math.nan],
            "when": [pandas.Timestamp("2026-01-02"), pandas.NaT],
            "contexts": [["a", "b"], []],
            "gap": pandas.array([7, None], dtype="Int64"),
            7: [True, False],
        }
    )
    assert repr(read(frame)) == repr(
        [
            {
                "question": "q1",
                "count": 1,
                "share": 0.5,
                "when": "2026-01-02T00:00:00",
                "contexts": ["a", "b"],
                "gap": 7,
                "7": True,
            },
            {
                "question": "q2",
                "count": 2,
                "share": None,
                "when": None,
                "contexts": [],
                "gap": None,
                "7": False,
            },
        ]
    )


def test_a_frame_with_a_column_twice() -> None:
    frame = pandas.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(DataError, match="the column `a` is there twice"):
        Data(frame)


@pytest.mark.parametrize("suffix", ["xlsx", "parquet"])
def test_a_table_file_that_is_none(tmp_path: Path, suffix: str) -> None:
    path = put(tmp_path / f"data.{suffix}", "this is text")
    assert complaint(path).startswith(f"{path} cannot be read: ")


# --- lists ---------------------------------------------------------------------------------------


def test_a_list_and_a_generator_can_be_read_again_and_again() -> None:
    records: list[Mapping[str, Any]] = [{"a": 1}, {"b": None}, {"a": 0.5}]
    for source in (records, (record for record in records)):
        data = Data(source)
        assert data.survey().columns == ("a", "b")
        assert [row.columns for row in data.rows()] == records
        assert [row.index for row in data.rows()] == [0, 1, 2]


def test_nan_in_a_list_is_null_and_noted() -> None:
    first, second = Data([{"a": math.nan, "b": "x"}, {"a": 1.5}]).rows()
    assert (first.columns, first.note) == ({"a": None, "b": "x"}, "NaN read as null")
    assert (second.columns, second.note) == ({"a": 1.5}, None)


def test_a_list_of_something_else() -> None:
    assert complaint([{"a": 1}, "text"]) == "row 2 must be a dict, not str"


@pytest.mark.parametrize("source", [17, None, {"a": [1]}, b"bytes"])
def test_data_that_is_none(source: Any) -> None:
    with pytest.raises(SetupError, match="data must be a path, a list of dicts or a DataFrame"):
        Data(source)


# --- what is no data at all ----------------------------------------------------------------------


@pytest.mark.parametrize("content", ["", "\n\n", " \r\n\t", codecs.BOM_UTF8.decode()])
@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv"])
def test_an_empty_file(tmp_path: Path, suffix: str, content: str) -> None:
    path = put(tmp_path / f"data.{suffix}", content)
    assert complaint(path) in (f"{path} is empty", f"{path} holds no rows")


def test_no_rows_in_a_list() -> None:
    assert complaint([]) == "the data holds no rows"


def test_a_folder(tmp_path: Path) -> None:
    assert complaint(tmp_path).startswith(f"{tmp_path} is a folder; give a data file")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "gone.jsonl"
    assert complaint(path) == f"{path}: No such file or directory"


def test_a_binary_file(tmp_path: Path) -> None:
    path = put(tmp_path / "data.jsonl", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8)
    assert complaint(path) == f"{path} is a binary file, not rows of text"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_nobody_may_read(tmp_path: Path) -> None:
    path = put(tmp_path / "data.jsonl", LINES)
    path.chmod(0)
    assert complaint(path) == f"{path}: Permission denied"


# --- limit, names, hashes ------------------------------------------------------------------------


def test_a_limit_reads_no_further(tmp_path: Path) -> None:
    path = put(tmp_path / "data.jsonl", LINES + "this line is broken\n")
    assert read(path, limit=2) == ROWS
    assert read(path, limit=1) == ROWS[:1]
    assert complaint(path, limit=3).startswith(f"{path}:3: not JSON")
    with pytest.raises(SetupError, match="the limit must be 1 or more, not 0"):
        Data(path, limit=0)


def test_a_rows_name_is_its_id_or_its_content() -> None:
    named, numbered, empty, bare, again = Data(
        [
            {"id": "r-1", "a": 1},
            {"id": 7, "a": 1},
            {"id": "", "a": 1},
            {"a": 1, "b": 2},
            {"b": 2, "a": 1},
        ]
    ).rows()
    assert (named.id, numbered.id, empty.id) == ("r-1", "7", empty.hash)
    assert bare.id == bare.hash == again.hash  # the order of keys says nothing
    assert len({named.hash, numbered.hash, empty.hash, bare.hash}) == 4


def test_the_hash_tells_values_of_different_types_apart() -> None:
    values = [1, 1.5, "1", True, None, [1], {"a": 1}]
    assert len({row.hash for row in Data([{"v": value} for value in values]).rows()}) == 7


def test_a_file_is_described_by_the_hash_of_its_bytes(tmp_path: Path) -> None:
    path = put(tmp_path / "data.jsonl", b'{"a": 1}\n')
    assert Data(path, limit=5).describe() == {
        "name": "data.jsonl",
        "path": str(path),
        # sha256sum of these nine bytes
        "sha256": "e8c628edc9968ef0c668f54e0ba2636b35503357eb1aca0ddc828aeace432f67",
        "limit": 5,
    }
