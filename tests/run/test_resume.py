"""A run that was stopped, in every way it can be, and what finishing it costs."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import RunError
from assay.run.progress import Silent
from tests.support import runs
from tests.support.server import JudgeServer, Request, Response


def evaluate(data: Any, evaluators: Any, server: JudgeServer, **options: Any) -> assay.Run:
    """A run without the cache: every call that is made is seen by the server."""
    options = {"judge": "openai:test", "base_url": server.url, "cache": False, **options}
    return assay.evaluate(data, evaluators, progress=Silent(), **options)


def asked_since(server: JudgeServer, before: int) -> list[int]:
    return sorted(runs.asked(request) for request in server.requests[before:])


def arguments(metric: Path, data: Path, server: JudgeServer, *more: str) -> list[str | Path]:
    judge = ["--judge", "openai:test", "--base-url", server.url, "--no-cache"]
    return ["run", metric, data, *judge, *more]


def assert_complete(directory: Path, count: int) -> None:
    """Every row scored by its rule, every key once, in input order."""
    run = assay.Run(directory)
    found = [(row["row"], row["outputs.on_topic.score"]) for row in run.rows()]
    assert found == [(n, runs.score_for(n)) for n in range(count)]
    metric = run.metrics["on_topic.score"]
    assert (metric["n"], metric["scored"]) == (count, count)
    assert metric["mean"] == pytest.approx(runs.mean_of(range(count)))
    assert sorted(line["row"] for line in runs.journal(directory, "rows.jsonl")) == list(
        range(count)
    )


# --- kill -9 -------------------------------------------------------------------------------------


@pytest.mark.parametrize("half_line", [b"", b'{"row":7,"evaluator":"on_topic","iter'])
def test_kill_9_costs_at_most_the_calls_in_flight(
    tmp_path: Path, metric: Path, server: JudgeServer, half_line: bytes
) -> None:
    count, flight = 200, 64
    server.latency = 0.05
    data = runs.write_lines(tmp_path / "data.jsonl", runs.rows(count))
    with runs.start(*arguments(metric, data, server, "-j", str(flight)), cwd=tmp_path) as process:
        server.wait_for(count // 2, 60)
        process.kill()
        process.communicate()
    directory = runs.only_run(tmp_path)
    server.wait_idle()
    with (directory / "scores.jsonl").open("ab") as file:
        file.write(half_line)
    written = (directory / "scores.jsonl").read_bytes().split(b"\n")[:-1]
    finished = {json.loads(line)["row"] for line in written}
    assert 0 < len(finished) < count

    evaluate(data, metric, server, resume=directory)
    assert_complete(directory, count)
    assert server.count <= count + flight
    calls = Counter(map(runs.asked, server.requests))
    assert {calls[row] for row in finished} == {1}, "a finished call was made again"
    assert len(runs.latest(directory)) == len(runs.journal(directory)) == count


# --- signals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_within_its_calls_and_says_how_to_go_on(
    tmp_path: Path, metric: Path, server: JudgeServer, name: signal.Signals
) -> None:
    count = 120
    server.latency = 0.05
    data = runs.write_lines(tmp_path / "data.jsonl", runs.rows(count))
    with runs.start(*arguments(metric, data, server, "-j", "8"), cwd=tmp_path) as process:
        server.wait_for(30, 60)
        process.send_signal(name)
        out, err = process.communicate(timeout=60)
    directory = runs.only_run(tmp_path)
    made = server.count
    assert 30 <= made < count
    assert process.returncode == 130
    assert "stopping after the calls under way" in err
    assert (
        f"interrupted; finish it with: assay run --resume {directory.relative_to(tmp_path)}" in err
    )
    assert "Traceback" not in err
    assert len(runs.journal(directory)) == made, "a call under way was thrown away"
    assert json.loads((directory / "run.json").read_bytes())["status"] == "interrupted"
    assert f" {made} " in out  # the table counts the rows there are

    done = runs.command("run", "--resume", directory, "--no-cache", cwd=tmp_path)
    assert done.returncode == 0
    assert_complete(directory, count)
    assert server.count == count


def test_a_waiting_retry_does_not_hold_up_the_end(
    tmp_path: Path, metric: Path, server: JudgeServer
) -> None:
    def reply(request: Request) -> Any:
        if runs.asked(request) >= 5 and request.attempt == 0:
            return Response(status=429, headers={"Retry-After": "600"})
        return runs.judged(request)

    server.reply = reply
    data = runs.write_lines(tmp_path / "data.jsonl", runs.rows(10))
    with runs.start(*arguments(metric, data, server, "-j", "4"), cwd=tmp_path) as process:
        server.wait_for(6, 60)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    directory = runs.only_run(tmp_path)
    assert {line["status"] for line in runs.journal(directory)} == {"scored"}
    server.reply = runs.judged
    evaluate(data, metric, server, resume=directory)
    assert_complete(directory, 10)


def test_a_second_signal_ends_it_at_once(tmp_path: Path, metric: Path, server: JudgeServer) -> None:
    def reply(request: Request) -> Any:
        return runs.judged(request) if runs.asked(request) < 3 else Response(stall=True)

    server.reply = reply
    data = runs.write_lines(tmp_path / "data.jsonl", runs.rows(20))
    with runs.start(*arguments(metric, data, server, "-j", "4"), cwd=tmp_path) as process:
        server.wait_for(7, 60)  # three answered, four that never will be
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert "once more to stop now" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    directory = runs.only_run(tmp_path)
    assert sorted(line["row"] for line in runs.journal(directory)) == [0, 1, 2]
    server.reply = runs.judged
    evaluate(data, metric, server, resume=directory)
    assert_complete(directory, 20)


# --- two processes -------------------------------------------------------------------------------


def test_a_second_process_on_the_directory_stops(
    tmp_path: Path, metric: Path, server: JudgeServer
) -> None:
    server.reply = Response(stall=True)
    data = runs.write_lines(tmp_path / "data.jsonl", runs.rows(1))
    with runs.start(*arguments(metric, data, server), cwd=tmp_path) as process:
        server.wait_for(1, 60)
        directory = runs.only_run(tmp_path)
        header = (directory / "run.json").read_bytes()
        second = runs.command("run", "--resume", directory, "--no-cache", cwd=tmp_path)
        assert (second.returncode, second.stdout, second.stderr) == (
            2,
            "",
            f"assay: {directory} is being written by another process\n",
        )
        assert (directory / "run.json").read_bytes() == header
        assert server.count == 1
        process.kill()
        process.communicate()


# --- what is done again --------------------------------------------------------------------------


def test_a_finished_run_makes_no_call(metric: Path, server: JudgeServer) -> None:
    run = evaluate(runs.rows(5), metric, server)
    before = (run.directory / "scores.jsonl").read_bytes()
    again = evaluate(runs.rows(5), metric, server, resume=run.directory)
    assert server.count == 5
    assert (run.directory / "scores.jsonl").read_bytes() == before
    assert again.metrics == run.metrics
    assert again.directory == run.directory


def test_a_changed_prompt_asks_again_for_that_metric_only(
    tmp_path: Path, metric: Path, server: JudgeServer
) -> None:
    other = runs.write_metric(tmp_path, "other", extra="Be kind.")
    run = evaluate(runs.rows(6), [metric, other], server)
    assert server.count == 12
    runs.write_metric(tmp_path, "other", extra="Be strict.")
    server.reply = '{"reason": "stricter", "score": 1}'
    run = evaluate(runs.rows(6), [metric, other], server, resume=run.directory)
    assert asked_since(server, 12) == [0, 1, 2, 3, 4, 5]
    assert all("Be strict." in request.text for request in server.requests[12:])
    assert run.metrics["other.score"]["mean"] == 1
    assert run.metrics["other.score"]["n"] == 6
    assert run.metrics["on_topic.score"]["mean"] == pytest.approx(runs.mean_of(range(6)))
    assert "Be strict." in run.header["evaluators"]["other"]["text"]


@pytest.mark.parametrize(
    ("old", "new"), [("temperature: 0", "temperature: 1"), ("maximum: 5", "maximum: 4")]
)
def test_a_changed_setting_or_scale_asks_again(
    metric: Path, server: JudgeServer, old: str, new: str
) -> None:
    run = evaluate(runs.rows(3), metric, server)
    metric.write_text(metric.read_text().replace(old, new))
    evaluate(runs.rows(3), metric, server, resume=run.directory)
    assert asked_since(server, 3) == [0, 1, 2]


def test_a_changed_value_asks_again_for_that_row_only(metric: Path, server: JudgeServer) -> None:
    data = runs.rows(5)
    run = evaluate(data, metric, server)
    data[3] = {"question": "q9", "answer": "another"}
    run = evaluate(data, metric, server, resume=run.directory)
    assert asked_since(server, 5) == [9]
    found = list(run.rows())
    assert found[3]["inputs.answer"] == "another"
    assert [row["outputs.on_topic.score"] for row in found] == [1, 2, 3, 5, 5]
    assert run.metrics["on_topic.score"]["n"] == 5


def test_a_changed_threshold_asks_nobody_and_counts_for_every_row(
    metric: Path, server: JudgeServer
) -> None:
    run = evaluate(runs.rows(5), metric, server)  # scores 1 to 5
    assert run.metrics["on_topic.score"]["pass_rate"] == 3 / 5
    metric.write_text(metric.read_text().replace("threshold: 3", "threshold: 5"))
    run = evaluate(runs.rows(5), metric, server, resume=run.directory)
    assert server.count == 5
    results = [row["outputs.on_topic.score_result"] for row in run.rows()]
    assert results == ["fail", "fail", "fail", "fail", "pass"]
    assert run.metrics["on_topic.score"]["pass_rate"] == 1 / 5


FAILURES: list[Response | None] = [
    None,
    Response(content="no idea"),
    Response(content=None, refusal="I will not"),
    Response(status=400, content="bad"),
    None,
]


@pytest.mark.parametrize(("retry_failed", "again"), [(False, [3]), (True, [1, 2, 3])])
def test_errors_are_redone_and_other_failures_only_when_asked_for(
    metric: Path, server: JudgeServer, retry_failed: bool, again: list[int]
) -> None:
    def reply(request: Request) -> Any:
        return FAILURES[runs.asked(request)] or runs.judged(request)

    server.reply = reply
    data: list[dict[str, Any]] = [*runs.rows(5), {"question": "q5", "answer": None}]
    run = evaluate(data, metric, server, reask=0)
    assert runs.statuses(run.directory) == {
        "scored": 2,
        "invalid": 1,
        "refused": 1,
        "error": 1,
        "not_applicable": 1,
    }
    server.reply = runs.judged
    run = evaluate(data, metric, server, reask=0, resume=run.directory, retry_failed=retry_failed)
    assert asked_since(server, 5) == again
    scored = {0, 4, *again}
    found = [row["outputs.on_topic.score"] for row in run.rows()]
    assert found == [runs.score_for(n) if n in scored else None for n in range(6)]
    assert run.metrics["on_topic.score"]["scored"] == len(scored)
    assert run.metrics["on_topic.score"]["n"] == 6


def test_only_the_iteration_that_failed_is_redone(metric: Path, server: JudgeServer) -> None:
    def reply(request: Request) -> Any:
        failed = (runs.asked(request), request.attempt) == (1, 1)
        return Response(status=400, content="bad") if failed else runs.judged(request)

    server.reply = reply
    run = evaluate(runs.rows(3), metric, server, iterations=3)
    assert runs.statuses(run.directory) == {"scored": 8, "error": 1}
    run = evaluate(runs.rows(3), metric, server, iterations=3, resume=run.directory)
    assert asked_since(server, 9) == [1]
    assert runs.statuses(run.directory) == {"scored": 9}
    assert run.metrics["on_topic.score"]["mean"] == 2


def test_what_the_target_answered_is_kept(metric: Path, server: JudgeServer) -> None:
    asked: list[str] = []

    def target(question: str) -> dict[str, Any]:
        asked.append(question)
        if question == "q2" and asked.count("q2") == 1:
            raise RuntimeError("busy")
        return {"answer": f"to {question}"}

    data = [{"question": f"q{n}"} for n in range(4)]
    run = evaluate(data, metric, server, target=target)
    assert runs.statuses(run.directory) == {"scored": 3, "error": 1}
    run = evaluate(data, metric, server, target=target, resume=run.directory)
    assert runs.statuses(run.directory) == {"scored": 4}
    assert Counter(asked) == {"q0": 1, "q1": 1, "q2": 2, "q3": 1}
    assert [row["outputs.answer"] for row in run.rows()] == [f"to q{n}" for n in range(4)]
    assert asked_since(server, 3) == [2]


def test_a_longer_file_adds_its_rows(metric: Path, server: JudgeServer) -> None:
    run = evaluate(runs.rows(3), metric, server)
    evaluate(runs.rows(5), metric, server, resume=run.directory)
    assert asked_since(server, 3) == [3, 4]
    assert_complete(run.directory, 5)


def test_a_shorter_file_leaves_its_rows_out(metric: Path, server: JudgeServer) -> None:
    run = evaluate(runs.rows(5), metric, server)
    run = evaluate(runs.rows(3), metric, server, resume=run.directory)
    assert server.count == 5
    assert [row["row"] for row in run.rows()] == [0, 1, 2]
    assert run.metrics["on_topic.score"]["n"] == 3
    assert run.metrics["on_topic.score"]["mean"] == 2


# --- what cannot be resumed ----------------------------------------------------------------------


def test_another_judge_is_not_mixed_in(metric: Path, server: JudgeServer) -> None:
    run = evaluate(runs.rows(3), metric, server)
    with pytest.raises(RunError, match="openai:test"):
        evaluate(runs.rows(3), metric, server, judge="openai:other", resume=run.directory)
    assert server.count == 3


def test_other_evaluators_or_iterations(tmp_path: Path, metric: Path, server: JudgeServer) -> None:
    run = evaluate(runs.rows(2), metric, server)
    other = runs.write_metric(tmp_path, "other")
    with pytest.raises(
        RunError, match="was made with other evaluators or iterations: on_topic x 1"
    ):
        evaluate(runs.rows(2), [metric, other], server, resume=run.directory)
    with pytest.raises(RunError, match="was made with other evaluators or iterations"):
        evaluate(runs.rows(2), metric, server, iterations=2, resume=run.directory)
    assert server.count == 2


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    done = runs.command("run", "--resume", tmp_path, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        2,
        f"assay: {tmp_path} is no run directory: it has no run.json\n",
    )


def test_a_run_made_from_python_objects_is_resumed_from_python(
    tmp_path: Path, metric: Path, server: JudgeServer
) -> None:
    run = evaluate(runs.rows(2), metric, server)
    done = runs.command("run", "--resume", run.directory, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        f"assay: {run.directory} was made from Python objects; resume it with "
        "evaluate(..., resume=...)\n"
    )


def test_a_data_file_that_is_gone(tmp_path: Path, metric: Path, server: JudgeServer) -> None:
    data = runs.write_lines(tmp_path / "data.jsonl", runs.rows(2))
    run = evaluate(data, metric, server)
    data.unlink()
    done = runs.command("run", "--resume", run.directory, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, f"assay: {data}: No such file or directory\n")
