"""Result files of azure-ai-evaluation, old and new, whole and broken, as runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.cli import main
from assay.errors import DataError, RunError
from assay.report import compare
from assay.run.results import read_results


def write(rows: list[dict[str, Any]], metrics: Any = None, name: str = "a.json") -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"rows": rows, "metrics": metrics or {}}))
    return path


def run_of(*outputs: dict[str, Any], metrics: Any = None) -> assay.Run:
    """A run of rows that have these outputs, `alias.key` to value."""
    rows = [
        {"inputs.q": place, **{f"outputs.{key}": value for key, value in row.items()}}
        for place, row in enumerate(outputs)
    ]
    return assay.Run(write(rows, metrics))


def lines(run: assay.Run, place: int = 0) -> list[dict[str, Any]]:
    return [records[place] or {} for _, records in run.records()]


NAN = float("nan")
pytestmark = pytest.mark.usefixtures("folder")


# --- keys, old and new ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "name", "value"),
    [
        ({"coherence": 4.0, "coherence_score": 4.0, "coherence_result": "pass"}, "coherence", 4),
        ({"coherence": 4, "gpt_coherence": 4, "coherence_reason": "clear"}, "coherence", 4),
        ({"gpt_similarity": 5.0}, "similarity", 5),
        ({"gpt_similarity": 5.0, "gpt_similarity_reason": "same"}, "similarity", 5),
        ({"f1_score": 0.5, "f1_result": "pass", "f1_threshold": 0.5}, "f1_score", 0.5),
        ({"violence": "Very low", "violence_score": 0, "violence_reason": "x"}, "violence", 0),
        ({"xpia_label": True, "xpia_reason": "x"}, "xpia_label", True),
        ({"score": 3, "reason": "x", "threshold": 3, "passed": True}, "score", 3),
        ({"result": 4, "reason": "x"}, "result", 4),
        ({"output": 7}, "output", 7),
        ({"mine": 1, "reason": "x", "threshold": 2}, "mine", 1),
    ],
)
def test_the_keys_of_one_metric(told: dict[str, Any], name: str, value: Any) -> None:
    run = run_of({f"m.{key}": found for key, found in told.items()})
    assert list(run.evaluators) == ["m"]
    (line,) = lines(run)
    assert (line["status"], line["outputs"]) == ("scored", {name: value})
    assert type(line["outputs"][name]) is type(value)


def test_an_alias_with_several_metrics_is_an_evaluator_for_each() -> None:
    run = run_of(
        {"qa.f1_score": 0.5, "qa.f1_score_result": "pass", "qa.f1_score_threshold": 0.5,
         "qa.fluency": NAN, "qa.fluency_result": "not_applicable", "qa.fluency_status": "skipped",
         "qa.fluency_reason": "Not applicable: empty", "qa.comment": "so-so"},
        {"qa.f1_score": 0.25, "qa.f1_score_result": "fail", "qa.f1_score_threshold": 0.5,
         "qa.fluency": 4.0, "qa.fluency_result": "pass", "qa.fluency_threshold": 3.0},
    )  # fmt: skip
    assert list(run.evaluators) == ["qa.f1_score", "qa.fluency"]
    assert [line["status"] for line in lines(run)] == ["scored", "scored"]
    assert [line["status"] for line in lines(run, 1)] == ["not_applicable", "scored"]
    assert lines(run, 1)[0]["message"] == "Not applicable: empty"
    assert lines(run)[0]["evidence"] == {"comment": "so-so"}
    assert run.metrics["qa.f1_score.f1_score"]["pass_rate"] == 0.5


def test_aliases_may_hold_dots_and_meet() -> None:
    run = run_of({"a.b.c": 1, "a.b": 2, "a.d": 3})
    assert list(run.evaluators) == ["a.b", "a.b_2", "a.d"]
    assert [run.metrics[key]["mean"] for key in ("a.b.c", "a.b_2.b", "a.d.d")] == [1, 2, 3]


def test_a_grader_of_the_evals_api() -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": 5, "total_tokens": 35}
    run = run_of(
        {"g.type": "score_model", "g.score": 0.9, "g.passed": True, "g.g_result": "pass",
         "g.sample": {"usage": usage, "model": "gpt", "error": None,
                      "output": [{"role": "assistant", "content": "0.9"}]}},
        {"g.type": "score_model", "g.score": 0.1, "g.passed": False, "g.g_result": "fail",
         "g.sample": {"error": {"code": "", "message": None}}},
        {"g.type": "score_model", "g.score": 0.0, "g.passed": False,
         "g.sample": {"error": {"code": "server_error", "message": "try again"}}},
        {"g.type": None, "g.score": NAN, "g.passed": None, "g.row_missing": True},
    )  # fmt: skip
    assert [line["status"] for line in lines(run)] == ["scored", "scored", "error", "error"]
    assert lines(run)[2]["message"] == "server_error: try again"
    (call,) = lines(run)[0]["calls"]
    assert (call["reply"], call["usage"]["prompt_tokens"]) == ("0.9", 30)
    found = run.metrics["g.score"]
    assert (found["mean"], found["pass_rate"]) == (0.5, None)
    assert "g: its verdicts do not follow one threshold" in run.header["notes"][0]


def test_tokens_beside_the_metric() -> None:
    run = run_of({"m.x": 3, "m.x_prompt_tokens": "40", "m.x_completion_tokens": 2, "m.x_model": ""})
    assert run.summary["tokens"] == {"prompt": 40, "completion": 2, "reasoning": 0, "total": 42}


# --- rows without a score ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "status", "cause"),
    [
        ({"m.x": NAN, "m.x_result": NAN, "m.x_reason": None}, "error", "not_recorded"),
        ({}, "error", "not_recorded"),
        ({"m.x": NAN, "m.x_result": "unknown", "m.x_status": "completed"}, "invalid",
         "not_a_number"),
        ({"m.x": None, "m.x_result": "not_applicable"}, "not_applicable", "not_applicable"),
        ({"m.x": "not applicable", "m.x_result": "pass"}, "not_applicable", "not_applicable"),
        ({"m.x": None, "m.x_status": "error", "m.x_reason": "broke"}, "error", "evaluator_failed"),
        ({"m.x": "a text"}, "invalid", "not_a_number"),
        ({"m.x": float("inf"), "m.x_result": "pass"}, "invalid", "not_a_number"),
        ({"m.x": 10**400}, "invalid", "not_a_number"),
    ],
)  # fmt: skip
def test_a_row_without_a_score(told: dict[str, Any], status: str, cause: str) -> None:
    run = run_of({"m.x": 4, "m.x_result": "pass", "m.x_threshold": 3}, told)
    line = lines(run)[1]
    assert (line["status"], line["cause"], line["outputs"]) == (status, cause, {})
    assert line["message"]
    found = run.metrics["m.x"]
    assert (found["mean"], found["pass_rate"], found["scored"], found["n"]) == (4, 1, 1, 2)


def test_a_metric_of_texts_says_that_they_are_none() -> None:
    run = run_of({"m.output": "```json {}```"}, {"m.output": "four"})
    assert [line["cause"] for line in lines(run)] == ["not_a_number"] * 2
    assert run.metrics["m.output"]["mean"] is None


# --- scales that the rows prove ------------------------------------------------------------------

Rule = tuple[str | None, float | None, float | None]


@pytest.mark.parametrize(
    ("rows", "rule"),
    [  # (value, verdict, threshold) each; direction, threshold, pass rate
        ([(4, "pass", 3), (2, "fail", 3)], ("increase", 3, 0.5)),
        ([(0, "pass", 3), (6, "fail", 3)], ("decrease", 3, 0.5)),
        ([(0, "pass", 3)], ("decrease", 3, 1.0)),
        ([(3, "pass", 3), (3, "pass", 3)], ("increase", 3, 1.0)),  # either: the numbers are right
        ([(4, None, 3), (2, None, 3)], ("neutral", 3, None)),
        ([(4, None, None)], ("increase", None, None)),
        ([(4, "pass", 3), (2, "pass", 3)], ("neutral", 3, None)),
        ([(4, "pass", 3), (2, "fail", 2.5)], ("neutral", None, None)),
        ([(1, "pass", 0), (0, "fail", 0)], ("increase", 1, 0.5)),  # task adherence
        ([(1, "fail", None), (0, "pass", None)], ("decrease", 0, 0.5)),
        ([(True, "fail", None), (False, "pass", None)], ("decrease", None, 0.5)),
        ([(True, None, None), (False, None, None)], ("neutral", None, None)),
        ([(None, "pass", None), (None, "fail", None)], ("increase", None, 0.5)),
    ],
)
def test_direction_and_threshold_are_what_the_verdicts_prove(
    rows: list[tuple[Any, ...]], rule: Rule
) -> None:
    keys = ("m.x", "m.x_result", "m.x_threshold")
    run = run_of(*(dict(zip(keys, row, strict=True)) for row in rows))
    declared = run.outputs["m"]["x"]
    rate = run.metrics["m.x"]["pass_rate"]
    assert (declared.direction, declared.threshold, rate) == rule
    told = {verdict for _, verdict, _ in rows} - {None}
    assert bool(run.header["notes"]) == bool(told and rule[0] == "neutral")


# --- rows and columns ----------------------------------------------------------------------------


def test_the_rows_are_those_of_the_data() -> None:
    rows = [
        {
            "inputs.query": "q", "inputs.meta": {"n": 1}, "inputs.meta.n": 1, "inputs.gone": NAN,
            "inputs.empty": None, "inputs.line_number": 0, "line_number": 0,
            "outputs.answer": "a", "outputs.extra": {"deep": {"n": 2}}, "outputs.extra.deep.n": 2,
            "outputs.m.x": 1.0,
            "outputs.m.evaluation_per_turn.x": [1.0, 1.0],
        }
    ]  # fmt: skip
    run = assay.Run(write(rows))
    ((line, _),) = run.records()
    assert line["columns"] == {"query": "q", "meta": {"n": 1}, "empty": None}
    assert line["target"] == {"answer": "a", "extra": {"deep": {"n": 2}}}
    assert list(run.metrics) == ["m.x"]
    assert lines(run)[0]["evidence"] == {"evaluation_per_turn.x": [1.0, 1.0]}
    own = assay.evaluate([line["columns"]], {"m": lambda query: {"x": 1}})
    assert compare([run, own]).as_dict()["matched"] == 1


def test_the_rows_alone_a_line_each() -> None:
    path = Path("instance_results.jsonl")
    rows = [{"inputs.q": n, "outputs.m.x": n, "line_number": n} for n in range(3)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert assay.Run(path).metrics["m.x"]["mean"] == 1


# --- where it goes -------------------------------------------------------------------------------


def test_a_file_is_imported_once_and_again_when_it_changes() -> None:
    path = write([{"outputs.m.x": 1}])
    first = assay.Run(path)
    assert first.directory.parent == Path(".assay/imports")
    stamp = (first.directory / "run.json").stat().st_mtime_ns
    again = assay.Run(path)
    assert again.directory == first.directory
    assert (again.directory / "run.json").stat().st_mtime_ns == stamp
    assert first.summary["run"] == str(first.directory)
    write([{"outputs.m.x": 2}])
    changed = assay.Run(path)
    assert (changed.metrics["m.x"]["mean"], first.metrics["m.x"]["mean"]) == (2, 1)
    assert {entry.name for entry in Path(".assay/imports").iterdir()} == {
        first.directory.name,
        changed.directory.name,
    }


def test_a_folder_that_holds_their_file_and_pages_beside_it() -> None:
    path = write([{"outputs.m.x": 1}], name="july/evaluation_results.json")
    run = assay.Run("july")
    assert (run.name, run.source) == ("july", path)
    assert run.report() == Path("july/evaluation_results-report.html")
    assert run.report("page.html") == Path("page.html")
    with pytest.raises(RunError, match="nowhere is no run directory"):
        assay.Run("nowhere")


def test_a_run_directory_stays_one_whatever_else_it_holds(folder: Path) -> None:
    run = assay.evaluate([{"q": "a"}], {"one": lambda q: 1})
    (run.directory / "evaluation_results.json").write_text('{"rows": [{"outputs.m.x": 1}]}')
    found = assay.Run(run.directory)
    assert (found.source, list(found.evaluators)) == (None, ["one"])
    assert found.report() == run.directory / "report.html"


# --- what is no result file ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[1, 2", "not JSON"),
        ("7", 'it has no "rows"'),
        ('"rows"', 'it has no "rows"'),
        ("{}", "holds no scores"),
        ('{"rows": []}', 'it has no "rows"'),
        ('{"rows": {"a": 1}}', 'it has no "rows"'),
        ('{"rows": [1]}', 'it has no "rows"'),
        ('{"rows": [{"inputs.q": 1}]}', "holds no scores"),
        ("[" * 100_000, "not JSON"),
        ('{"rows": [{"outputs.m.x": 1, "inputs.q": ' + "[" * 700 + "]" * 700 + "}]}", "too deeply"),
        ("\x00\x01\x02", "not JSON"),
    ],
)
def test_what_is_no_result_file(
    text: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("x.json").write_text(text)
    with pytest.raises(DataError, match=said):
        assay.Run("x.json")
    for call in (["report", "x.json"], ["import", "x.json"]):
        monkeypatch.setattr("sys.argv", ["assay", *call])
        with pytest.raises(SystemExit) as exit_:
            main()
        out, err = capsys.readouterr()
        assert (exit_.value.code, out, err.count("\n")) == (2, "", 1)
        assert said in err
    assert not list(Path(".").glob(".assay/imports/*"))


def test_files_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("x.json").write_bytes(b'{"rows": [{"outputs.m.x": 1, "inputs.q": "\xff"}]}')
    with pytest.raises(DataError, match="not JSON"):
        read_results(Path("x.json"))
    with Path("large.json").open("wb") as file:
        file.truncate(2**29 + 1)
    with pytest.raises(DataError, match="large.json is larger than 512 MiB"):
        read_results(Path("large.json"))
    if os.geteuid():
        Path("x.json").chmod(0)
        with pytest.raises(DataError, match="Permission denied"):
            read_results(Path("x.json"))


def test_the_import_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write([{"outputs.m.x": 1, "outputs.m.x_result": "pass"}], name="theirs.json")

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["assay", "import", *arguments])
        with pytest.raises(SystemExit) as exit_:
            main()
        out, err = capsys.readouterr()
        return int(exit_.value.code or 0), out, err

    code, out, _ = call("theirs.json", "--out", "mine", "--json")
    assert (code, json.loads(out)["metrics"]["m.x"]["pass_rate"]) == (0, 1.0)
    assert assay.Run("mine").name == "theirs"
    code, _, err = call("theirs.json", "--out", "mine")
    assert (code, err) == (2, "assay: mine is not empty: give another with --out\n")
    code, _, err = call("mine")
    assert (code, "mine is no result file" in err) == (2, True)
    code, out, _ = call("theirs.json")
    (made,) = Path("runs").iterdir()
    assert (code, out.splitlines()[-1]) == (0, str(made))
