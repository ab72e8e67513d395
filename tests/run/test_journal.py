"""The run directory: whole lines only, the latest counts, one writer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.errors import RunError
from assay.jsontext import dumps
from assay.run.journal import Index, Lines, Lock, read_json, write_json
from tests.support import runs
from tests.support.runs import refuse

KEYS = [("similarity", 0), ("similarity", 1), ('métrique "x"\\', 0)]


def score_line(row: int, evaluator: str, iteration: int, **more: Any) -> dict[str, Any]:
    return {"row": row, "evaluator": evaluator, "iteration": iteration, **more}


def append(path: Path, *records: dict[str, Any]) -> None:
    lines = Lines(path)
    try:
        for record in records:
            lines.append(record)
    finally:
        lines.close()


# --- lines ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "left",
    [b'{"row": 1, "sta', b"x" * 200_000, b"\xe2\x80", b'{"row": 1}'],
    ids=["half", "longer than a block", "half a character", "whole but for its end"],
)
def test_what_a_killed_process_left_behind_is_dropped(tmp_path: Path, left: bytes) -> None:
    path = tmp_path / "scores.jsonl"
    path.write_bytes(b'{"row": 0}\n' + left)
    append(path, {"row": 1, "again": True})
    assert runs.journal(tmp_path) == [{"row": 0}, {"row": 1, "again": True}]


def test_a_file_that_holds_half_a_line_alone_starts_empty(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    path.write_bytes(b'{"row":0,"sta')
    append(path, {"row": 0})
    assert runs.journal(tmp_path) == [{"row": 0}]


def test_lines_are_strict_json_in_their_own_script(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    append(
        path,
        {"text": "질문 🙂 \u2028 é", "score": float("nan"), "list": [1.5, float("inf"), {"a": 2}]},
    )
    data = path.read_bytes()
    assert "질문 🙂".encode() in data
    assert b"\\u" not in data
    assert json.loads(data, parse_constant=refuse) == {
        "text": "질문 🙂 \u2028 é",
        "score": None,
        "list": [1.5, None, {"a": 2}],
    }


def test_half_a_surrogate_costs_no_line(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    append(path, {"text": "a\ud800b"})
    assert runs.journal(tmp_path) == [{"text": "a?b"}]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    )
)
def test_any_value_is_one_line_of_strict_json(value: Any) -> None:
    text = dumps(value)
    assert b"\n" not in text
    found = json.loads(text, parse_constant=refuse)
    assert "inf" in repr(value) or found == value


# --- the index -----------------------------------------------------------------------------------


def test_the_latest_line_counts_whatever_the_order(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    append(
        path,
        score_line(2, "similarity", 0, status="error"),
        score_line(0, *KEYS[2], status="scored"),
        score_line(0, "similarity", 1, status="invalid"),
        score_line(2, "similarity", 0, status="scored"),
        score_line(0, "removed", 0, status="scored"),
        score_line(0, "similarity", 7, status="scored"),
        score_line(0, "similarity", 1, status="refused"),
    )
    index = Index(path, KEYS)
    found = [(row, [line and line["status"] for line in lines]) for row, lines in index.read()]
    assert found == [
        (0, [None, "refused", "scored"]),
        (1, [None, None, None]),
        (2, ["scored", None, None]),
    ]
    assert index.filled == 3


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from(KEYS), st.integers(0, 10**9)), max_size=30
    )
)
@settings(deadline=None, suppress_health_check=list(HealthCheck))
def test_the_index_is_a_dict_where_later_lines_win(
    own_folder: Path, written: list[tuple[int, tuple[str, int], int]]
) -> None:
    path = own_folder / "scores.jsonl"
    path.unlink(missing_ok=True)
    append(path, *(score_line(row, *key, mark=mark) for row, key, mark in written))
    expected = {(row, key): mark for row, key, mark in written}
    found = {
        (row, key): line["mark"]
        for row, lines in Index(path, KEYS).read()
        for key, line in zip(KEYS, lines, strict=True)
        if line is not None
    }
    assert found == expected


def test_the_index_looks_past_half_a_line(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    append(path, score_line(0, "similarity", 0, status="scored"))
    with path.open("ab") as file:
        file.write(b'{"row":0,"evaluator":"similarity","iteration":0,"status":"er')
    [(_, [line, *_])] = Index(path, KEYS).read()
    assert line is not None
    assert line["status"] == "scored"


def test_an_index_of_nothing(tmp_path: Path) -> None:
    assert list(Index(tmp_path / "scores.jsonl", KEYS).read()) == []


# --- whole files ---------------------------------------------------------------------------------


def test_a_file_that_cannot_be_replaced_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_json(path, {"question": "질문", "mean": float("nan")})
    before = path.read_bytes()
    assert json.loads(before, parse_constant=refuse) == {"question": "질문", "mean": None}
    assert "질문".encode() in before
    (tmp_path / "run.json.new").mkdir()  # the temporary file cannot be made
    with pytest.raises(RunError, match=r"run\.json cannot be written"):
        write_json(path, {})
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "is no run directory: it has no run.json"),
        (b"{", "run.json is not JSON"),
        (b"[]", "run.json holds no object"),
    ],
)
def test_what_is_no_run_directory(tmp_path: Path, content: bytes | None, says: str) -> None:
    if content is not None:
        (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(RunError, match=says):
        read_json(tmp_path / "run.json")


# --- one writer ----------------------------------------------------------------------------------

_HOLD = """
import sys
from pathlib import Path
from assay.run.journal import Lock
lock = Lock(Path(sys.argv[1]))
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_second_process_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(RunError) as caught:
            Lock(tmp_path)
        assert str(caught.value) == f"{tmp_path} is being written by another process"
        holder.kill()
        holder.wait(30)
    Lock(tmp_path).release()


def test_a_lock_can_be_taken_again_when_it_was_released(tmp_path: Path) -> None:
    first = Lock(tmp_path)
    with pytest.raises(RunError):
        Lock(tmp_path)
    first.release()
    Lock(tmp_path).release()


# --- a full disk ---------------------------------------------------------------------------------

_FILL = """
import resource, sys
from pathlib import Path
from assay.errors import RunError
from assay.run.journal import Lines
resource.setrlimit(resource.RLIMIT_FSIZE, (1040, 1040))
lines = Lines(Path(sys.argv[1]))
written = 0
try:
    while True:
        lines.append({"row": written, "text": "x" * 70})
        written += 1
except RunError as error:
    print(written)
    print(error)
    try:
        lines.append({"row": "again", "text": "x" * 70})
    except RunError:
        lines.append({"row": "small"})  # there is room for this one
    lines.close()
"""


def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", _FILL, str(path)], capture_output=True, text=True, check=True
    )
    count, message = done.stdout.splitlines()
    size = len(path.read_bytes().split(b"\n")[0]) + 1
    assert int(count) == 1040 // size > 0
    assert message.startswith(f"{path} cannot be written: File too large; what it holds is ")
    *full, small = runs.journal(tmp_path)
    assert [line["row"] for line in full] == list(range(int(count)))
    assert small == {"row": "small"}
