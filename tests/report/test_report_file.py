"""The report as a file: what is in it, without a browser."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import RunError
from assay.report import report as report_module
from assay.report.messages import CHANGED, Messages, RowTexts
from assay.report.survey import ABSENT, GOOD, WORTH_A_LOOK, Survey
from assay.run.journal import write_json
from tests.report.conftest import REFUSED, ROWS, SECOND_TRY, make_run
from tests.support import runs


def block(text: str, name: str) -> Any:
    found = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', text)
    assert found, name
    return json.loads(found[1])


def whole_rows(text: str) -> list[Any]:
    packed = re.findall(r'<script type="text/plain" class="rows">(.*?)</script>', text)
    return [row for part in packed for row in json.loads(zlib.decompress(base64.b64decode(part)))]


def test_the_rows_are_all_there(run: assay.Run, tmp_path: Path) -> None:
    text = run.report(tmp_path / "r.html").read_text("utf-8")
    rows = whole_rows(text)
    assert [row["columns"]["id"] for row in rows] == [f"row-{n}" for n in range(ROWS)]
    lines = block(text, "lines")
    assert lines["previews"] == ["question", "answer"]
    assert lines["rows"][0] == [0, "row-0", ["q0", "a0"], [[1, 0, "fail", [0]]]]
    assert rows[REFUSED]["scores"][0]["cause"] == "refusal"
    assert list(tmp_path.iterdir()) == [tmp_path / "r.html"]


def test_messages_are_those_that_were_sent(run: assay.Run) -> None:
    messages = Messages(run)
    for line, (record,) in run.records():
        assert record is not None
        row = RowTexts(line["columns"])
        for told in messages.of("on_topic", record["calls"], row):
            assert told[0][0] == "system"
            user = "".join(messages.texts[p] if isinstance(p, int) else p for p in told[1][1]
                           if not isinstance(p, list))  # fmt: skip
            assert "QUESTION: " in user
        if line["row"] == SECOND_TRY:
            roles = [m[0] for m in messages.of("on_topic", record["calls"], row)[1]]
            assert roles == ["system", "user", "assistant", "user"]


def test_messages_of_a_metric_of_several_steps(tmp_path: Path) -> None:
    def judge(messages: Any) -> str:
        if '"verdicts"' not in messages[0]["content"]:
            return '{"claims": ["one", "two"]}'
        found = [{"index": n, "reason": "so", "verdict": "yes"} for n in (1, 2)]
        return json.dumps({"verdicts": found})

    rows = [{**row, "contexts": ["a passage", " ", "another"]} for row in runs.rows(2)]
    run = make_run(
        tmp_path, "steps", data=rows, metric="faithfulness", judge=assay.ScriptedJudge(judge)
    )
    messages = Messages(run)
    for line, (record,) in run.records():
        assert record is not None
        told = messages.of("faithfulness", record["calls"], RowTexts(line["columns"]))
        assert [[message[0] for message in call] for call in told] == [["system", "user"]] * 2
    assert messages.description("faithfulness").startswith("Share of the response's claims")


def test_messages_that_would_be_others_are_not_shown(run: assay.Run) -> None:
    line, (record,) = next(iter(run.records()))
    assert record is not None
    row = RowTexts({**line["columns"], "question": "q0 as somebody edited it"})
    assert Messages(run).of("on_topic", record["calls"], row) == [CHANGED]


def test_an_interrupted_run_says_so(run: assay.Run, tmp_path: Path) -> None:
    copy = tmp_path / "cut"
    copy.mkdir()
    write_json(copy / "run.json", {**run.header, "status": "interrupted"})
    for name in ("rows.jsonl", "scores.jsonl"):
        lines = (run.directory / name).read_bytes().splitlines(keepends=True)[:20]
        (copy / name).write_bytes(b"".join(lines) + b'{"row":20,"half')
    text = assay.Run(copy).report().read_text("utf-8")
    assert "This run was interrupted: 20 of 60 scores are there" in text
    assert f"assay run --resume {copy}" in text
    assert "40 rows not reached" in text
    assert sorted(p.name for p in copy.iterdir()) == [
        "report.html", "rows.jsonl", "run.json", "scores.jsonl",
    ]  # fmt: skip


def test_a_large_run_is_sampled_and_says_so(
    run: assay.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_module, "MOST_ROWS", 20)
    text = run.report(tmp_path / "r.html").read_text("utf-8")
    assert "The table holds 20 of 60 rows: those without a score or with a fail first" in text
    shown = {line[0] for line in block(text, "lines")["rows"]}
    assert len(shown) == 20
    assert {1, 2, 3} <= shown
    assert len(whole_rows(text)) == 20


def test_the_sample_takes_the_weightiest_and_spreads_the_rest(run: assay.Run) -> None:
    survey = Survey(run)
    survey.fates = bytearray([GOOD] * 80 + [WORTH_A_LOOK] * 15 + [ABSENT] * 5)
    chosen = survey.choose(40)
    assert len(chosen) == 40
    assert set(range(80, 100)) <= set(chosen)
    good = [row for row in chosen if row < 80]
    assert good == list(range(0, 80, 4))
    survey.fates = bytearray([ABSENT] * 1000 + [GOOD] * 10)
    assert sum(row >= 1000 for row in survey.choose(100)) == 10


def test_a_run_of_functions_and_words(tmp_path: Path) -> None:
    def length(answer: str) -> dict[str, Any]:
        return {"length": len(answer) * 1.5, "short": len(answer) < 4}

    run = assay.evaluate(runs.rows(30), {"shape": length}, runs=tmp_path / "runs")
    text = run.report().read_text("utf-8")
    head = block(text, "head")
    assert [m["label"] for m in head["metrics"]] == ["shape.length", "shape.short"]
    assert all(m["bars"] for m in head["metrics"])


def test_a_row_no_utf8_can_hold(tmp_path: Path) -> None:
    data = [{"id": "\ud800", "question": "q0 \ud800", "answer": "\x00\x1b[31m"}]
    run = make_run(tmp_path, "odd", data=data)
    assert run.report().read_text("utf-8").endswith("</html>")


def test_a_place_that_cannot_be_written(run: assay.Run, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot be written: No such file or directory"):
        run.report(tmp_path / "gone" / "r.html")
