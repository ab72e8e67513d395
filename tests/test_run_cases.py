"""The project's shared cases that concern whole runs: each folder says what must happen."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import AssayError, DataError, PromptyError, SetupError
from assay.judge.prices import Prices
from assay.run.data import Data
from assay.run.progress import Silent
from assay.run.spending import Spending
from assay.run.summary import Tally
from tests.support import runs
from tests.support.server import JudgeServer, Request, Response

OURS = {"ok": "scored", "skipped": "not_applicable", "error": "error"}


class Case:
    """One folder: its files, its fake reply, and a server that gives it."""

    def __init__(self, folder: Path, server: JudgeServer) -> None:
        self.folder = folder
        self.server = server
        self.expect: dict[str, Any] = json.loads((folder / "expect.json").read_bytes())
        answer = folder / "answer.txt"
        if answer.exists():
            server.reply = answer.read_text("utf-8")

    def run(self, data: Any, **options: Any) -> assay.Run:
        """Under the metric's own name, which the cases use, and with a call for every row."""
        source = self.folder / data if isinstance(data, str) else data
        options = {"judge": "openai:test", "base_url": self.server.url, "cache": False, **options}
        metric = {"on_topic": self.folder / "metric.prompty"}
        return assay.evaluate(source, metric, progress=Silent(), **options)

    def prompts(self) -> list[str]:
        return [request.text for request in self.server.requests]


Open = Callable[[str], Case]


@pytest.fixture
def case(shared: Path, folder: Path, server: JudgeServer) -> Open:
    def open_case(name: str) -> Case:
        path = shared / "cases" / name
        if not path.is_dir():
            pytest.skip(f"no case {name}")
        return Case(path, server)

    return open_case


def statuses(run: assay.Run) -> list[str]:
    return [row["outputs.on_topic.status"] for row in run.rows()]


def test_06_a_column_that_all_rows_lack(case: Open) -> None:
    found = case("06-missing-column")
    expected = found.expect["all_rows.jsonl"]
    with pytest.raises(SetupError) as caught:
        found.run("all_rows.jsonl")
    for word in expected["message_has"]:
        assert word in str(caught.value)
    assert found.server.count == expected["model_calls"]


def test_06_a_column_that_one_row_lacks(case: Open) -> None:
    found = case("06-missing-column")
    expected = found.expect["some_rows.jsonl"]
    run = found.run("some_rows.jsonl")
    assert statuses(run) == [OURS[status] for status in expected["statuses"]]
    assert found.server.count == expected["model_calls"]
    counts = run.metrics["on_topic.score"]
    assert counts["mean"] == expected["mean"]
    assert (counts["n"], counts["scored"], counts["not_applicable"]) == (3, 2, 1)
    assert list(run.rows())[1]["outputs.on_topic.score_reason"] == "no value for input answer"


@pytest.mark.parametrize("name", ["data.jsonl", "data.csv"])
def test_07_null_nan_and_empty(case: Open, name: str) -> None:
    found = case("07-null-nan-empty")
    run = found.run(name)
    for status, expected in zip(statuses(run), found.expect[name]["statuses"], strict=True):
        if expected == "ok_or_type_error":
            assert status in ("scored", "error")
        else:
            assert status == OURS[expected]
    if name == "data.jsonl":
        assert "NaN" in runs.journal(run.directory, "rows.jsonl")[1]["note"]
        answers = sorted(prompt.partition("ANSWER: ")[2].strip() for prompt in found.prompts())
        assert answers == ["0", "None", "false", "nan"]  # rows 5 to 8, as they stand in the file


@pytest.mark.parametrize(
    "name",
    [
        "utf8_bom.jsonl",
        "utf16le_bom.jsonl",
        "utf16be_bom.jsonl",
        "crlf.jsonl",
        "no_final_newline.jsonl",
        "separators.jsonl",
        "utf8_bom.csv",
    ],
)
def test_10_encodings(case: Open, name: str) -> None:
    found = case("10-jsonl-encodings")
    rows = [dict(row.columns) for row in Data(found.folder / name).rows()]
    assert len(rows) == found.expect["rows"][name]
    assert list(rows[0]) == ["question", "answer"]
    if len(rows) == 2:
        assert rows == [
            {"question": "q é 日本", "answer": "first"},
            {"question": "q2", "answer": "second"},
        ]
    if name == "separators.jsonl":
        assert "\u2028" in str(rows[0]["question"])
        assert "\u0085" in str(rows[0]["answer"])


def test_10_bytes_of_another_encoding(case: Open) -> None:
    found = case("10-jsonl-encodings")
    assert found.expect["rows"]["latin1.jsonl"] == "error_names_line_1"
    with pytest.raises(DataError, match=r"latin1\.jsonl:1: byte 0xe9 .* --encoding"):
        found.run("latin1.jsonl")
    assert found.server.count == 0


def test_12_a_line_of_ten_megabytes(case: Open, folder: Path) -> None:
    found = case("12-ten-megabyte-line")
    data = folder / "data.jsonl"
    subprocess.run([sys.executable, found.folder / "make.py", data], check=True)
    too_long = json.loads((found.folder / "reply_too_long.json").read_bytes())
    answer = (found.folder / "answer.txt").read_text("utf-8")

    def reply(request: Request) -> Response:
        if len(request.text) > 10**6:
            return Response(status=too_long["status"], body=too_long["body"])
        return Response(content=answer)

    found.server.reply = reply
    run = found.run(data)
    assert statuses(run) == [OURS[status] for status in found.expect["statuses"]]
    row = list(run.rows())[1]
    assert row["outputs.on_topic.cause"] == "context_length"
    assert len(row["outputs.on_topic.score_reason"]) < 500
    assert found.server.count == 3 + found.expect["max_retries_row_2"]


def test_13_keys_given_twice(case: Open) -> None:
    found = case("13-duplicate-keys")
    for name, line in (("data.jsonl", 1), ("data.csv", 1)):
        assert found.expect[name].endswith("names_answer")
        with pytest.raises(DataError, match=rf"{name}:{line}: .*`answer`"):
            found.run(name)
    with pytest.raises(PromptyError, match=r"dup_front_matter\.prompty:\d+:\d+: .*temperature"):
        assay.load(found.folder / "dup_front_matter.prompty")


def test_25_cells_are_text(case: Open) -> None:
    found = case("25-csv-cells-are-text")
    run = found.run("data.csv", max_in_flight=1)
    assert [row["inputs.answer"] for row in run.rows()] == found.expect["values"]
    shown = {prompt.partition("ANSWER: ")[2].strip() for prompt in found.prompts()}
    assert shown == {value for value in found.expect["values"] if value is not None}


def test_26_the_results_are_strict_json_one_can_read(case: Open) -> None:
    found = case("26-results-file")
    answers = [(found.folder / f"answer.{n}.txt").read_text("utf-8") for n in (1, 2)]
    found.server.reply = lambda request: answers["QUESTION: q2" in request.text]
    run = found.run("data.jsonl", reask=0)
    assert statuses(run) == ["scored", "invalid"]
    for name in ("rows.jsonl", "scores.jsonl"):
        assert len(runs.journal(run.directory, name)) == 2
    for name in ("run.json", "summary.json"):
        json.loads((run.directory / name).read_bytes(), parse_constant=runs.refuse)
    text = (run.directory / "rows.jsonl").read_text("utf-8")
    for word in found.expect["contains"]:
        assert word in text


@pytest.mark.parametrize("name", ["rows.json", "rows_all_failed.json"])
def test_27_failed_rows_enter_no_mean(case: Open, name: str) -> None:
    found = case("27-aggregate-with-failures")
    tally = Tally({"on_topic": {"scored": ["score"]}}, Spending(Prices(), {}))
    for row in json.loads((found.folder / name).read_bytes()):
        status = OURS[row["status"]]
        outputs = {"score": row["score"]} if row["score"] is not None else {}
        record = {"evaluator": "on_topic", "status": status, "cause": None, "outputs": outputs}
        tally.add([record])
    counts = tally.as_dict()["metrics"]["on_topic.score"]
    theirs = {"n_scored": "scored", "n_error": "error", "n_skipped": "not_applicable"}
    names = {"mean": "mean", "n_total": "n", **theirs}
    for key, value in found.expect[name].items():
        assert counts[names[key]] == value


def test_31_rate_limits(case: Open) -> None:
    found = case("31-rate-limit")
    script = json.loads((found.folder / "replies.json").read_bytes())
    asked: Counter[str] = Counter()

    def reply(request: Request) -> Response:
        name = request.text.partition("QUESTION: ")[2][:2]
        entry = script[name][asked[name]]
        asked[name] += 1
        if entry.get("connection") == "reset":
            return Response(disconnect=True)
        return Response(
            status=entry["status"], headers=entry.get("headers", {}), body=entry.get("body")
        )

    found.server.reply = reply
    run = found.run("data.jsonl")
    assert statuses(run) == [OURS[status] for status in found.expect["statuses"]]
    assert dict(asked) == found.expect["calls"]
    finished = [line["row"] for line in runs.journal(run.directory)]
    assert (finished.index(5) < finished.index(0)) == found.expect["q6_finishes_before_q1"]
    lines = {line["row"]: line for line in runs.journal(run.directory)}
    assert lines[4]["cause"] == "quota"
    assert [lines[row]["calls"][0]["attempts"] for row in (0, 1, 2, 3, 5)] == [2, 2, 2, 2, 1]


def test_33_a_mapping_gives_the_metric_its_inputs_and_nothing_else(case: Open) -> None:
    found = case("33-mapping-filters-inputs")
    mapping = json.loads((found.folder / "mapping.json").read_bytes())
    run = found.run("data.jsonl", columns=mapping)
    assert statuses(run) == ["scored"]
    assert list(run.header["evaluators"]["on_topic"]["columns"]) == found.expect["passed_inputs"]
    [row] = run.rows()
    assert row["inputs.ground_truth"] == "g"  # carried to the results


def test_33_a_mapping_that_cannot_be_meant(case: Open) -> None:
    found = case("33-mapping-filters-inputs")
    words = {"mapping_typo.json": "on_topik.*did you mean on_topic", "mapping_shape.json": "shape"}
    for name in found.expect["errors"]:
        mapping = json.loads((found.folder / name).read_bytes())
        with pytest.raises(AssayError, match=words[name]):
            found.run("data.jsonl", columns=mapping)
    assert found.server.count == 0


def test_36_resume(case: Open) -> None:
    """Our journal in the state that partial.jsonl describes: one good line, one error, half."""
    found = case("36-resume")
    answer = (found.folder / "answer.txt").read_text("utf-8")

    def reply(request: Request) -> Response:
        failed = "QUESTION: q2" in request.text
        return Response(status=400) if failed else Response(content=answer)

    found.server.reply = reply
    first = found.run("data.jsonl", max_in_flight=1)
    path = first.directory / "scores.jsonl"
    lines = {json.loads(line)["row"]: line for line in path.read_bytes().splitlines(True)}
    path.write_bytes(lines[0] + lines[1] + lines[2][:20])
    found.server.reply = answer
    before = found.server.count
    run = found.run("data.jsonl", resume=first.directory)
    assert found.server.count - before == found.expect["model_calls"]
    assert len(list(run.rows())) == found.expect["rows"]
    assert statuses(run) == ["scored"] * 4
    assert sorted(runs.latest(run.directory)) == [(row, "on_topic", 0) for row in range(4)]
