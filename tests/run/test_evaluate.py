"""`evaluate`: what goes in, what a run holds afterwards, in which order."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas
import pytest

import assay
from assay.errors import DataError, PromptyError, RunError, SetupError
from assay.run.progress import Silent
from tests.support import runs
from tests.support.server import JudgeServer, Request, Response


def evaluate(data: Any, evaluators: Any, server: JudgeServer | None = None, **options: Any) -> Any:
    if server is not None:
        options = {"judge": "openai:test", "base_url": server.url, **options}
    return assay.evaluate(data, evaluators, progress=Silent(), **options)


def scripted(script: Any = '{"reason": "r", "score": 4}') -> assay.ScriptedJudge:
    return assay.ScriptedJudge(script)


def by_row(script: Mapping[str, str]) -> assay.ScriptedJudge:
    return scripted([{"when": when, "reply": reply} for when, reply in script.items()])


# --- data ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["list", "generator", "frame", "path", "text path"])
def test_every_kind_of_data_gives_the_same_run(
    tmp_path: Path, metric: Path, server: JudgeServer, kind: str
) -> None:
    records = runs.rows(7)
    path = runs.write_lines(tmp_path / "data.jsonl", records)
    data: dict[str, Any] = {
        "list": records,
        "generator": (record for record in records),
        "frame": pandas.DataFrame(records),
        "path": path,
        "text path": str(path),
    }
    run = evaluate(data[kind], metric, server)
    assert run.metrics["on_topic.score"]["mean"] == pytest.approx(runs.mean_of(range(7)))
    assert [row["outputs.on_topic.score"] for row in run.rows()] == [1, 2, 3, 4, 5, 1, 2]
    assert [row["inputs.answer"] for row in run.rows()] == [f"a{n}" for n in range(7)]


@pytest.mark.parametrize("kind", ["name", "path", "text path", "evaluator", "tuple"])
def test_every_way_to_name_an_evaluator(tmp_path: Path, kind: str) -> None:
    (tmp_path / "evaluators").mkdir()
    path = runs.write_metric(tmp_path / "evaluators")
    sources: dict[str, Any] = {
        "name": "on_topic",
        "path": path,
        "text path": [str(path)],
        "evaluator": assay.load(path),
        "tuple": ("on_topic",),
    }
    run = evaluate(runs.rows(2), sources[kind], judge=scripted())
    assert list(run.metrics) == ["on_topic.score"]
    assert run.metrics["on_topic.score"]["scored"] == 2


# --- order and completeness ----------------------------------------------------------------------


def test_every_score_is_there_once_and_in_input_order(
    tmp_path: Path, metric: Path, server: JudgeServer
) -> None:
    other = runs.write_metric(tmp_path, "other", extra="Be strict.")

    def reply(request: Request) -> Response:
        number = runs.asked(request)
        late = 0.3 if number in (1, 2, 5) else 0.0
        return Response(content=runs.reply_for(number), delay=late)

    server.reply = reply
    run = evaluate(runs.rows(20), [metric, other], server, iterations=2)

    written = [line["row"] for line in runs.journal(run.directory)]
    assert written != sorted(written), "the rows were not finished out of order"
    assert Counter(written) == dict.fromkeys(range(20), 4)
    assert len(runs.latest(run.directory)) == 20 * 2 * 2 == server.count

    pairs = list(run.records())
    assert [line["row"] for line, _ in pairs] == list(range(20))
    assert [line["columns"] for line, _ in pairs] == runs.rows(20)
    keys = [("on_topic", 0), ("on_topic", 1), ("other", 0), ("other", 1)]
    for number, (_, scores) in enumerate(pairs):
        assert [(s["evaluator"], s["iteration"]) for s in scores if s] == keys
        assert {s["outputs"]["score"] for s in scores if s} == {runs.score_for(number)}

    flat = list(run.rows())
    assert [(row["row"], row["iteration"]) for row in flat] == [
        (n, i) for n in range(20) for i in range(2)
    ]
    frame = run.frame()
    assert frame["inputs.question"].tolist() == [f"q{n}" for n in range(20) for _ in range(2)]
    expected = [runs.score_for(n) for n in range(20) for _ in range(2)]
    assert frame["outputs.on_topic.score"].tolist() == expected
    assert frame["outputs.other.score_score"].tolist() == expected


def test_rows_of_every_status_stay_in_place(metric: Path) -> None:
    judge = scripted(
        [
            {"when": "q0", "reply": '{"reason": "fine", "score": 5}'},
            {"when": "q2", "reply": "no idea"},
            {"when": "q3", "reply": {"text": "", "refusal": "I will not"}},
            {"when": "q4", "reply": {"error": "bad_request"}},
            {"when": "q5", "reply": '{"reason": "low", "score": 1}'},
            {"when": "q6", "reply": '{"reason": "too high", "score": 6}'},
        ]
    )
    data: list[dict[str, Any]] = runs.rows(7)
    data[1]["answer"] = None
    run = evaluate(data, metric, judge=judge, reask=0)
    found = list(run.rows())
    column = "outputs.on_topic."
    assert [(row[column + "status"], row[column + "cause"]) for row in found] == [
        ("scored", None),
        ("not_applicable", "missing_input"),
        ("invalid", "unparseable"),
        ("refused", "refusal"),
        ("error", "bad_request"),
        ("scored", None),
        ("invalid", "out_of_scale"),
    ]
    assert [row[column + "score"] for row in found] == [5, None, None, None, None, 1, None]
    assert [row[column + "score_result"] for row in found] == [
        "pass",
        "not_applicable",
        None,
        None,
        None,
        "fail",
        None,
    ]
    assert found[0][column + "score_reason"] == "fine"
    assert all(row[column + "score_reason"] for row in found)  # an absence says why
    counts = run.metrics["on_topic.score"]
    assert counts["mean"] == 3
    assert counts["pass_rate"] == 0.5
    names = ("n", "scored", "not_applicable", "invalid", "refused", "error")
    assert [counts[name] for name in names] == [7, 2, 1, 2, 1, 1]
    # The raw reply is kept where there is no score.
    assert [line["calls"][0]["reply"] for line in runs.journal(run.directory) if line["row"] == 2]


def test_a_judge_is_not_asked_about_a_row_without_its_inputs(
    metric: Path, server: JudgeServer
) -> None:
    data: list[dict[str, Any]] = runs.rows(5)
    data[1]["answer"] = None
    del data[2]["answer"]
    data[3]["answer"] = "  \n"
    run = evaluate(data, metric, server)
    assert sorted(map(runs.asked, server.requests)) == [0, 4]
    causes = [row["outputs.on_topic.cause"] for row in run.rows()]
    assert causes == [None, "missing_input", "missing_input", "empty_input", None]


def test_the_flat_row_has_the_keys_notebooks_read(metric: Path) -> None:
    run = evaluate([{"id": "r-1", **runs.rows(1)[0]}], metric, judge=scripted())
    [row] = run.rows()
    assert {name: row[name] for name in row if not name.endswith("_properties")} == {
        "row": 0,
        "id": "r-1",
        "inputs.id": "r-1",
        "inputs.question": "q0",
        "inputs.answer": "a0",
        "outputs.on_topic.reason": "r",
        "outputs.on_topic.score": 4,
        "outputs.on_topic.score_score": 4,
        "outputs.on_topic.score_result": "pass",
        "outputs.on_topic.score_reason": "r",
        "outputs.on_topic.score_threshold": 3,
        "outputs.on_topic.score_status": "completed",
        "outputs.on_topic.status": "scored",
        "outputs.on_topic.cause": None,
    }


# --- columns -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "columns",
    [
        {"answer": "reply"},
        {"answer": "${data.reply}"},
        {"response": "reply"},
        {"on_topic": {"answer": "reply"}},
        {"on_topic": {"answer": "${data.reply}"}},
        {"on_topic": {"column_mapping": {"answer": "${data.reply}"}}},
        {"default": {"column_mapping": {"answer": "${data.reply}"}}},
        {"answer": "${target.reply}"},
        {"answer": "deep.reply"},
        {"answer": "${data.deep.reply}"},
    ],
)
def test_every_form_of_a_mapping(metric: Path, columns: Any) -> None:
    data = [{"question": "q1", "reply": "mapped", "deep": {"reply": "mapped"}}]
    run = evaluate(
        data, metric, columns=columns, judge=by_row({"ANSWER: mapped": '{"reason":"", "score":4}'})
    )
    assert run.metrics["on_topic.score"]["mean"] == 4


def test_a_mapping_wins_over_a_column_of_the_same_name(metric: Path) -> None:
    data = [{"question": "q1", "answer": "plain", "reply": "mapped"}]
    judge = by_row({"ANSWER: mapped": '{"reason":"", "score":4}'})
    run = evaluate(data, metric, columns={"answer": "reply"}, judge=judge)
    assert run.metrics["on_topic.score"]["mean"] == 4
    assert run.header["evaluators"]["on_topic"]["columns"] == {
        "question": "question",
        "answer": "reply",
    }


def test_other_names_are_understood_and_recorded(metric: Path) -> None:
    data = [{"query": "q1", "response": "a"}]
    run = evaluate(data, metric, judge=scripted())
    assert run.metrics["on_topic.score"]["scored"] == 1
    assert run.header["evaluators"]["on_topic"]["aliases"] == {
        "question": "query",
        "answer": "response",
    }


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"anwser": "answer"}, ["'anwser'", "did you mean answer?"]),
        ({"on_topik": {"answer": "answer"}}, ["'on_topik'", "did you mean on_topic?"]),
        ({"on_topic": {"anwser": "answer"}}, ["'anwser'", "did you mean answer?"]),
        ({"question": {"on_topic": "question"}}, ["'question'", '{"EVALUATOR": {"INPUT"']),
        ({"answer": "anwser"}, ["answer (mapped to anwser)", "columns are question, answer"]),
        ({"answer": "${data.anwser}"}, ["answer (mapped to anwser)"]),
        ({"answer": "${rows.answer}"}, ["'${rows.answer}' is no column"]),
        ({"answer": " "}, ["' ' is no column"]),
    ],
)
def test_a_mapping_with_a_typo_stops_before_any_call(
    metric: Path, server: JudgeServer, columns: Any, says: list[str]
) -> None:
    with pytest.raises(SetupError) as caught:
        evaluate(runs.rows(2), metric, server, columns=columns)
    for part in says:
        assert part in str(caught.value)
    assert server.count == 0
    assert not Path("runs").exists()


def test_a_missing_column_names_metric_input_columns_and_the_nearest(
    metric: Path, server: JudgeServer
) -> None:
    with pytest.raises(SetupError) as caught:
        evaluate([{"question": "q1", "anwser": "a"}], metric, server)
    assert str(caught.value) == (
        "on_topic needs answer, which no row has; columns are question, anwser "
        "(did you mean anwser?); map one with --map INPUT=COLUMN"
    )
    assert server.count == 0


# --- evaluators ----------------------------------------------------------------------------------


def exact(answer: str, ground_truth: str) -> bool:
    return answer == ground_truth


async def length(answer: str, unit: int = 1) -> dict[str, Any]:
    return {"length": len(answer) / unit, "length_reason": "counted", "note": "text"}


class Overlap:
    def __call__(self, *, answer: str, ground_truth: str, **rest: Any) -> dict[str, float]:
        mine, other = set(answer), set(ground_truth)
        return {
            "precision": len(mine & other) / len(mine),
            "recall": len(mine & other) / len(other),
        }


def test_callables_are_evaluators_and_need_no_judge() -> None:
    data = [
        {"answer": "abc", "ground_truth": "abc"},
        {"answer": "ab", "ground_truth": "abcd"},
        {"answer": None, "ground_truth": "x"},
    ]
    run = evaluate(data, [exact, length, Overlap()])
    metrics = run.metrics
    assert {
        name: (found["mean"], found["n"], found["scored"]) for name, found in metrics.items()
    } == {
        "exact.exact": (0.5, 3, 2),
        "length.length": (2.5, 3, 2),
        "Overlap.precision": (1.0, 3, 2),
        "Overlap.recall": (0.75, 3, 2),
    }
    assert [row.get("outputs.length.length_reason") for row in run.rows()][:2] == ["counted"] * 2
    assert run.header["judges"] == {}


def test_a_callable_that_fails_or_says_nan_is_no_number() -> None:
    def odd(answer: str) -> Any:
        if answer == "raise":
            raise KeyError("lost")
        return {"nan": float("nan"), "none": None, "inf": float("inf"), "text": "x"}.get(answer, 0)

    data = [{"answer": answer} for answer in ("raise", "nan", "none", "inf", "text", "zero")]
    run = evaluate(data, odd)
    found = [(row["outputs.odd.status"], row["outputs.odd.cause"]) for row in run.rows()]
    assert found == [
        ("error", "evaluator_failed"),
        ("invalid", "not_a_number"),
        ("invalid", "not_a_number"),
        ("invalid", "not_a_number"),
        ("invalid", "not_a_number"),
        ("scored", None),
    ]
    assert run.metrics["odd.odd"]["mean"] == 0
    assert run.metrics["odd.odd"]["scored"] == 1


def test_a_mapping_of_evaluators_gives_them_names(metric: Path) -> None:
    chosen = {"mine": metric, "yours": metric, "same": exact}
    data = [{"question": "q", "answer": "a", "ground_truth": "a"}]
    run = evaluate(data, chosen, judge=scripted())
    assert list(run.metrics) == ["mine.score", "yours.score", "same.same"]
    assert [found["mean"] for found in run.metrics.values()] == [4, 4, 1]


def test_two_evaluators_of_one_name(metric: Path) -> None:
    with pytest.raises(SetupError, match="two evaluators are called 'on_topic'"):
        evaluate(runs.rows(1), [metric, metric], judge=scripted())


def test_a_name_that_is_nearly_right() -> None:
    with pytest.raises(SetupError, match="no evaluator 'similarty': did you mean similarity?"):
        evaluate(runs.rows(1), "similarty", judge=scripted())


@pytest.mark.parametrize("evaluators", [[], {}])
def test_no_evaluator(evaluators: Any) -> None:
    with pytest.raises(SetupError, match="no evaluator: name one"):
        evaluate(runs.rows(1), evaluators)


def test_a_metric_whose_inputs_never_reach_the_judge(tmp_path: Path, server: JudgeServer) -> None:
    path = tmp_path / "blind.prompty"
    path.write_text(
        "---\nname: Blind\ninputs:\n  answer: {type: string}\noutputs:\n  score: {type: integer}\n"
        "---\nsystem:\nRate it.\n"
    )
    with pytest.raises(PromptyError, match=r"none of its inputs \(answer\) is used in the body"):
        evaluate(runs.rows(3), path, server)
    assert server.count == 0


# --- iterations ----------------------------------------------------------------------------------


def test_iterations_are_calls_of_their_own(metric: Path, server: JudgeServer) -> None:
    def reply(request: Request) -> str:
        # 2, 3, 4 for one row and 3, 4, 5 for the other: sd 1 within both.
        return json.dumps({"reason": "r", "score": runs.asked(request) + request.attempt})

    server.reply = reply
    data = [{"question": f"q{n}", "answer": "a"} for n in (2, 3)]
    run = evaluate(data, metric, server, iterations=3)
    assert server.count == 6
    found = run.metrics["on_topic.score"]
    assert found["mean"] == 3.5
    assert found["within_sd"] == pytest.approx(1.0)
    assert (found["n"], found["scored"]) == (2, 2)
    assert found["pass_rate"] == 1  # two of three and three of three pass
    assert found["flip_rate"] == 0.5


@pytest.mark.parametrize("iterations", [0, -1])
def test_too_few_iterations(metric: Path, iterations: int) -> None:
    with pytest.raises(SetupError, match="iterations must be 1 or more"):
        evaluate(runs.rows(1), metric, judge=scripted(), iterations=iterations)


# --- doors ---------------------------------------------------------------------------------------


def test_it_works_inside_a_running_loop(metric: Path, server: JudgeServer) -> None:
    async def notebook() -> tuple[Any, Any]:
        loop = asyncio.get_running_loop()
        first = evaluate(runs.rows(4), metric, server, cache=False)
        again = evaluate(runs.rows(4), metric, server, cache=False)
        assert asyncio.get_running_loop() is loop
        return first, again

    first, again = asyncio.run(notebook())
    assert first.metrics == again.metrics
    assert first.metrics["on_topic.score"]["mean"] == runs.mean_of(range(4))
    assert server.count == 8


def test_an_option_nobody_knows(metric: Path) -> None:
    with pytest.raises(SetupError) as caught:
        evaluate(runs.rows(1), metric, judge=scripted(), iteration=2, batch=1)
    assert str(caught.value) == "evaluate() takes no batch, iteration"


def test_no_rows(metric: Path) -> None:
    with pytest.raises(DataError, match="the data holds no rows"):
        evaluate([], metric, judge=scripted())


def test_one_limit_of_requests_for_all_evaluators(
    tmp_path: Path, metric: Path, server: JudgeServer
) -> None:
    server.latency = 0.02
    other = runs.write_metric(tmp_path, "other", extra="Be strict.")
    evaluate(runs.rows(20), [metric, other], server, max_in_flight=5, iterations=2)
    assert server.count == 80
    assert server.max_in_flight == 5


def test_two_judges_that_look_alike_are_two_judges(metric: Path) -> None:
    low, high = (scripted(f'{{"reason": "r", "score": {score}}}') for score in (1, 5))
    assert low.describe() == high.describe()
    chosen = {"low": assay.load(metric, judge=low), "high": assay.load(metric, judge=high)}
    run = evaluate(runs.rows(2), chosen)
    assert [found["mean"] for found in run.metrics.values()] == [1, 5]


def test_progress_is_told_of_every_score(metric: Path) -> None:
    class Heard(Silent):
        def __init__(self) -> None:
            self.scores: list[int] = []
            self.started: tuple[int, int] | None = None
            self.stopped = 0

        def start(self, scores: int, done: int, spending: Any, judges: Sequence[Any]) -> None:
            self.started = (scores, done)

        def score(self, line: Mapping[str, Any]) -> None:
            self.scores.append(line["row"])

        def stop(self) -> None:
            self.stopped += 1

    heard = Heard()
    assay.evaluate(runs.rows(5), metric, judge=scripted(), iterations=2, progress=heard)
    assert heard.started == (10, 0)
    assert sorted(heard.scores) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert heard.stopped == 1


# --- the run directory ---------------------------------------------------------------------------


def test_the_header_says_what_the_numbers_were_made_with(
    tmp_path: Path, metric: Path, server: JudgeServer
) -> None:
    path = runs.write_lines(tmp_path / "data.jsonl", runs.rows(3))
    run = evaluate(path, metric, server, name="first try", iterations=2)
    header = json.loads((run.directory / "run.json").read_bytes())
    assert header["status"] == "finished"
    assert (header["name"], header["rows"], header["iterations"]) == ("first try", 3, 2)
    assert header["data"]["path"] == str(path)
    assert header["evaluators"]["on_topic"]["text"] == metric.read_text()
    assert header["evaluators"]["on_topic"]["outputs"]["score"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 5,
        "threshold": 3,
        "desirable_direction": "increase",
    }
    assert header["judges"]["openai:test"]["url"] == f"{server.url}/chat/completions"
    assert run.directory.parent == Path("runs")
    assert run.directory.name.endswith("-first-try")


def test_a_run_read_from_disk_is_the_run_that_was_made(metric: Path, server: JudgeServer) -> None:
    made = evaluate(runs.rows(4), metric, server)
    read = assay.Run(made.directory)
    assert list(read.rows()) == list(made.rows())
    assert read.metrics == made.metrics
    (made.directory / "summary.json").unlink()
    assert assay.Run(made.directory).metrics == made.metrics


def test_runs_of_one_second_do_not_meet(metric: Path) -> None:
    made = [evaluate(runs.rows(1), metric, judge=scripted(), name="x") for _ in range(3)]
    assert len({run.directory for run in made}) == 3


def test_a_folder_that_cannot_be_made(tmp_path: Path, metric: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(RunError, match="cannot be made: Not a directory"):
        evaluate(runs.rows(1), metric, judge=scripted(), runs=tmp_path / "taken")


def test_no_secret_is_written(
    tmp_path: Path, server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-0123456789abcdef-private"
    written = secret.replace("0123456789", "9876543210")
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    path = runs.write_metric(tmp_path)
    connection = (
        "  configuration:\n    type: openai\n    model: test\n"
        f"    base_url: {server.url}\n    api_key: {written}\n"
    )
    path.write_text(path.read_text().replace("  parameters:\n", connection + "  parameters:\n"))

    def reply(request: Request) -> Any:
        if runs.asked(request) == 1:
            return Response(status=400, body={"error": {"message": f"bad key {secret} {written}"}})
        return runs.judged(request)

    server.reply = reply
    by_file = evaluate(runs.rows(3), path)
    by_name = evaluate(runs.rows(3), path, server, cache=False)
    keys = {request.headers["authorization"] for request in server.requests}
    assert keys == {f"Bearer {secret}", f"Bearer {written}"}
    for run in (by_file, by_name):
        assert run.metrics["on_topic.score"]["error"] == 1
        for file in run.directory.iterdir():
            text = file.read_text("utf-8")
            assert "0123456789abcdef" not in text, file
            assert "9876543210abcdef" not in text, file


def test_a_bad_key_costs_one_request_and_is_not_shown(
    metric: Path, server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    server.reply = Response(status=401, body={"error": {"message": "bad key sk-0123456789abcdef"}})
    run = evaluate(runs.rows(30), metric, server)
    assert server.count == 1
    found = run.metrics["on_topic.score"]
    assert (found["error"], found["causes"]) == (30, {"authentication": 30})
    assert b"0123456789" not in (run.directory / "scores.jsonl").read_bytes()
