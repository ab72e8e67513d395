"""`assay run`: what it refuses before any call, what it prints where, and how it exits."""

from __future__ import annotations

import codecs
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Assay
from tests.support import runs
from tests.support.server import JudgeServer, Request, Response, error

METRIC_KEYS = {
    "mean",
    "sd",
    "ci95",
    "pass_rate",
    "n",
    "scored",
    "not_applicable",
    "invalid",
    "refused",
    "error",
}


def put(name: str, content: str | bytes) -> str:
    Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    return name


def asking(server: JudgeServer) -> list[str]:
    return ["--judge", "openai:test", "--base-url", server.url]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return runs.write_lines(tmp_path / "data.jsonl", runs.rows(5))


# --- refused before any call ---------------------------------------------------------------------

WAYS_OUT = (
    "give one: --judge openai:MODEL (with OPENAI_API_KEY), --judge azure:DEPLOYMENT (with "
    "AZURE_OPENAI_ENDPOINT), --judge project:CONNECTION/DEPLOYMENT (with "
    "AZURE_AI_PROJECT_ENDPOINT), --judge ollama:MODEL, --base-url URL for any compatible server, "
    "--judge baseline (no key, no network; a baseline only), ASSAY_JUDGE, or `judge =` in "
    "assay.toml"
)
COLUMNS = "columns are question, answer"


def refusal(assay: Assay, *arguments: str | Path) -> str:
    """The one line on stderr; nothing on stdout, no run directory, exit 2."""
    found = assay("run", *arguments)
    assert (found.code, found.out) == (2, ""), found
    assert found.err.count("\n") == 1, found.err
    assert found.err.startswith("assay: ")
    assert not Path("runs").exists()
    return found.err.removeprefix("assay: ").rstrip("\n")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], f"no judge: {WAYS_OUT}"),
        (["--judge", "gpt-4o"], f"unknown judge 'gpt-4o': {WAYS_OUT}"),
        (["--judge", "openai:"], f"unknown judge 'openai:': {WAYS_OUT}"),
        (["--judge", "anthropic:claude"], f"unknown judge 'anthropic:claude': {WAYS_OUT}"),
        (
            ["--judge", "openai:gpt-4.1-mini"],
            "no key for OpenAI: set OPENAI_API_KEY, or give --base-url for another server",
        ),
        (
            ["--judge", "azure:gpt-4o"],
            "azure:gpt-4o needs its endpoint: set AZURE_OPENAI_ENDPOINT to "
            "https://NAME.openai.azure.com, or `azure_endpoint:` in the file or assay.toml",
        ),
        (
            ["--judge", "openai:test", "--base-url", "localhost:8000/v1"],
            "'localhost:8000/v1' is no web address: it must start with https://",
        ),
        (
            ["--judge", "openai:test", "--base-url", "http://me:word@localhost/v1"],
            "an endpoint must not hold a user name or password",
        ),
        (["--judge", "scripted:gone.jsonl"], "script gone.jsonl: No such file or directory"),
    ],
)
def test_a_judge_that_cannot_be_asked(
    assay: Assay, metric: Path, data: Path, options: list[str], says: str
) -> None:
    assert refusal(assay, metric, data, *options) == says


def test_a_judge_that_is_named_in_an_unreadable_config(
    assay: Assay, metric: Path, data: Path
) -> None:
    put("assay.toml", "judge = openai")
    message = refusal(assay, metric, data)
    assert message.startswith(f"{Path.cwd() / 'assay.toml'}: not valid TOML: ")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("empty.jsonl", "", "empty.jsonl is empty"),
        ("blank.csv", "\n \n", "blank.csv is empty"),
        ("bom.jsonl", codecs.BOM_UTF8, "bom.jsonl holds no rows"),
        ("header.csv", "question,answer\n", "header.csv holds no rows"),
        ("binary.jsonl", bytes(range(256)), "binary.jsonl is a binary file, not rows of text"),
        (
            "broken.jsonl",
            '{"question": "q1", "answer": "a"}\n{"question": }\n',
            "broken.jsonl:2: not JSON: Expecting value at column 14: '{\"question\": }'",
        ),
        (
            "twice.jsonl",
            '{"question": "q", "answer": 1, "answer": 2}\n',
            "twice.jsonl:1: the key `answer` is given twice",
        ),
        ("twice.csv", "answer,answer\n1,2\n", "twice.csv:1: the column `answer` is there twice"),
        (
            "latin.jsonl",
            '{"question": "é"}\n'.encode("latin-1"),
            "latin.jsonl:1: byte 0xe9 at column 15 is not UTF-8; pass the file's encoding with "
            "--encoding (e.g. latin-1)",
        ),
    ],
)
def test_data_that_cannot_be_read(
    assay: Assay, metric: Path, server: JudgeServer, name: str, content: Any, says: str
) -> None:
    assert refusal(assay, metric, put(name, content), *asking(server)) == says
    assert server.count == 0


def test_a_folder_or_nothing_as_data(assay: Assay, metric: Path, server: JudgeServer) -> None:
    Path("folder").mkdir()
    assert refusal(assay, metric, "folder", *asking(server)) == (
        "folder is a folder; give a data file (JSONL, CSV, Excel, Parquet)"
    )
    assert refusal(assay, metric, "gone.csv", *asking(server)) == (
        "gone.csv: No such file or directory"
    )


@pytest.mark.parametrize("items", [[], ["data.jsonl"]])
def test_no_evaluator(assay: Assay, data: Path, items: list[str]) -> None:
    assert refusal(assay, *items, "--judge", "baseline") == (
        "give at least one EVALUATOR and a DATA file"
    )


@pytest.mark.parametrize(
    ("evaluator", "says"),
    [
        ("similarty", "no evaluator 'similarty': did you mean similarity?"),
        ("gone.prompty", "no such file: gone.prompty"),
        ("folder", "folder is a folder without metric.yaml; name a .prompty file in it"),
    ],
)
def test_an_evaluator_that_is_not_there(
    assay: Assay, data: Path, evaluator: str, says: str
) -> None:
    Path("folder").mkdir()
    assert refusal(assay, evaluator, data, "--judge", "openai:test") == says


def test_a_missing_column_and_the_nearest_one(
    assay: Assay, metric: Path, server: JudgeServer
) -> None:
    path = put("data.jsonl", '{"question": "q1", "anwser": "a"}\n')
    assert refusal(assay, metric, path, *asking(server)) == (
        "on_topic needs answer, which no row has; columns are question, anwser (did you mean "
        "anwser?); map one with --map INPUT=COLUMN"
    )
    assert server.count == 0


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            "anwser=question",
            "the mapping names 'anwser', which no evaluator takes; they take answer, question "
            "(did you mean answer?)",
        ),
        (
            "on_topik.answer=question",
            "the mapping names the evaluator 'on_topik'; evaluators are on_topic (did you mean "
            'on_topic?). The shape is {"EVALUATOR": {"INPUT": "COLUMN"}} or {"INPUT": "COLUMN"}',
        ),
        (
            "on_topic.anwser=question",
            "the mapping names 'anwser', which on_topic does not take; it takes question, answer "
            "(did you mean answer?)",
        ),
        (
            "answer=reply",
            f"on_topic needs answer (mapped to reply), which no row has; {COLUMNS} (did you mean "
            "answer?); map one with --map INPUT=COLUMN",
        ),
        ("answer", "--map 'answer' must be INPUT=COLUMN or EVALUATOR.INPUT=COLUMN"),
        ("=answer", "--map '=answer' must be INPUT=COLUMN or EVALUATOR.INPUT=COLUMN"),
        ("answer=", "--map 'answer=' must be INPUT=COLUMN or EVALUATOR.INPUT=COLUMN"),
    ],
)
def test_a_mapping_with_a_typo(
    assay: Assay, metric: Path, data: Path, server: JudgeServer, given: str, says: str
) -> None:
    assert refusal(assay, metric, data, *asking(server), "--map", given) == says
    assert server.count == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--fail-under", "on_topic"], "--fail-under 'on_topic' must be METRIC=NUMBER"),
        (["--fail-under", "on_topic=high"], "--fail-under 'on_topic=high' must be METRIC=NUMBER"),
        (["--fail-under", "on_topic=nan"], "--fail-under 'on_topic=nan' must be METRIC=NUMBER"),
        (
            ["--fail-under", "on_topik=3"],
            "--fail-under names 'on_topik'; metrics are on_topic.score",
        ),
        (
            ["--fail-under", "on_topic.reason=3"],
            "--fail-under names 'on_topic.reason'; metrics are on_topic.score",
        ),
        (["--min-coverage", "80"], "--min-coverage is a share from 0 to 1, not 80"),
        (["--max-errors", "-1"], "--max-errors is a share from 0 to 1, not -1"),
        (["--max-errors", "nan"], "--max-errors is a share from 0 to 1, not nan"),
        (["--iterations", "0"], "iterations must be 1 or more"),
        (["--limit", "0"], "the limit must be 1 or more, not 0"),
        (["--encoding", "utf-9"], "unknown encoding 'utf-9'"),
        (["--target", "gone"], "target gone: no flow.flex.yaml there"),
    ],
)
def test_an_option_that_cannot_be_meant(
    assay: Assay, metric: Path, data: Path, server: JudgeServer, options: list[str], says: str
) -> None:
    assert refusal(assay, metric, data, *asking(server), *options) == says
    assert server.count == 0


def test_an_option_nobody_knows(assay: Assay, metric: Path, data: Path) -> None:
    found = assay("run", metric, data, "--jugde", "baseline")
    assert (found.code, found.out) == (2, "")
    assert "No such option: --jugde" in found.err


# --- what it prints ------------------------------------------------------------------------------


def test_the_json_has_the_shape_that_is_promised(
    assay: Assay, metric: Path, data: Path, server: JudgeServer
) -> None:
    found = assay("run", metric, data, *asking(server), "--json")
    assert found.code == 0
    document = json.loads(found.out, parse_constant=runs.refuse)
    assert document.keys() - {"calls", "cached_calls", "no_price_for"} == {
        "run",
        "rows",
        "metrics",
        "tokens",
        "cost",
    }
    assert (document["run"], document["rows"]) == (str(runs.only_run(Path()).as_posix()), 5)
    assert document["metrics"].keys() == {"on_topic.score"}
    entry = document["metrics"]["on_topic.score"]
    assert entry.keys() == METRIC_KEYS
    assert (entry["mean"], entry["pass_rate"]) == (3, 0.6)  # of 1 to 5, three reach 3
    assert entry["sd"] == pytest.approx(1.5811388)
    assert entry["ci95"] == pytest.approx([3 - 1.963243, 3 + 1.963243], abs=1e-4)
    counts = {name: entry[name] for name in METRIC_KEYS - {"mean", "sd", "ci95", "pass_rate"}}
    assert counts == {
        "n": 5,
        "scored": 5,
        "not_applicable": 0,
        "invalid": 0,
        "refused": 0,
        "error": 0,
    }
    assert document["tokens"] == {"prompt": 250, "completion": 60, "reasoning": 0, "total": 310}
    assert document["cost"] is None  # of a model nobody knows
    assert json.loads((Path(document["run"]) / "summary.json").read_bytes()) == document


def test_the_table_is_on_stdout_and_the_talk_on_stderr(
    assay: Assay, metric: Path, data: Path, server: JudgeServer
) -> None:
    found = assay("run", metric, data, *asking(server))
    head, line, used, where = found.out.splitlines()
    assert head.split() == ["metric", "mean", "95%", "interval", "sd", "pass", "rows", "scored"]
    assert line.split() == [
        "on_topic.score",
        "3.000",
        "1.037",
        "..",
        "4.963",
        "1.581",
        "60%",
        "5",
        "5",
    ]
    assert used.startswith("judge openai:test, 5 calls, 310 tokens")
    assert Path(where) == runs.only_run(Path())
    assert "5/5 scores" in found.err


def test_every_status_is_in_the_table_even_on_a_narrow_console(
    tmp_path: Path, assay: Assay, server: JudgeServer
) -> None:
    replies: list[Any] = [
        '{"reason": "r", "score": 5}',
        "no idea",
        Response(content=None, refusal="no"),
        error(400, "bad", "invalid_value"),
    ]
    server.reply = lambda request: replies[runs.asked(request)]
    metric = runs.write_metric(tmp_path, "a_metric_with_quite_a_long_name_as_people_give_them")
    path = runs.write_lines(
        tmp_path / "data.jsonl", [*runs.rows(4), {"question": "q9", "answer": None}]
    )
    found = assay("run", metric, path, *asking(server), "--reask", "0", "--max-errors", "1")
    assert found.code == 0
    text = " ".join(found.out.split())
    for heading in ("mean", "rows", "scored", "n/a", "invalid", "refused", "error"):
        assert heading in text, found.out
    assert "5.000" in text
    assert "…" not in text, found.out
    for cause in ("unparseable", "refusal", "bad_request", "missing_input"):
        assert f"1 without a score: {cause}" in text


def test_the_json_stands_alone_on_stdout_whatever_happens(
    assay: Assay, metric: Path, data: Path, server: JudgeServer
) -> None:
    server.reply = error(400, "bad", "invalid_value")
    found = assay("run", metric, data, *asking(server), "--json")
    assert found.code == 3
    entry = json.loads(found.out)["metrics"]["on_topic.score"]
    assert (entry["mean"], entry["sd"], entry["ci95"], entry["pass_rate"]) == (None,) * 4
    assert (entry["n"], entry["error"], entry["causes"]) == (5, 5, {"bad_request": 5})
    assert "on_topic.score: 5 of 5 rows failed (5 bad_request)" in found.err


def test_a_console_that_knows_few_characters(
    tmp_path: Path, metric: Path, server: JudgeServer
) -> None:
    path = runs.write_lines(tmp_path / "질문.jsonl", [{"question": "q1 질문", "answer": "🙂"}])
    given: list[str | Path] = ["run", metric, path, *asking(server), "--name", "질문 🙂"]
    for more in ([], ["--json"]):
        done = runs.command(*given, *more, cwd=tmp_path, PYTHONIOENCODING="cp1252", PYTHONUTF8="0")
        assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == 1
    assert "질문" in done.stdout  # data is UTF-8 on every console


# --- how it exits --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--fail-under", "on_topic=3"], 0, ""),
        (["--fail-under", "on_topic.score=3"], 0, ""),
        (["--fail-under", "on_topic=3.01"], 1, "gate failed: on_topic.score is 3, below 3.01"),
        (["--fail-under", " on_topic = 3.5 "], 1, "gate failed: on_topic.score is 3, below 3.5"),
        (["--min-coverage", "1"], 0, ""),
    ],
)
def test_a_gate_on_a_run_where_all_is_scored(
    assay: Assay,
    metric: Path,
    data: Path,
    server: JudgeServer,
    options: list[str],
    code: int,
    says: str,
) -> None:
    found = assay("run", metric, data, *asking(server), *options)
    assert found.code == code
    assert says in found.err
    assert ("gate failed" in found.err) == (code == 1)


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        # Rows 0 to 3 score 1, 2, 3, 4 (mean 2.5); row 4 has no score.
        ([], 0, ""),
        (["--fail-under", "on_topic=2"], 1, "4 of 5 rows have a score (80.0%, needed 100.0%;"),
        (["--fail-under", "on_topic=2", "--min-coverage", "0.8"], 0, ""),
        (["--fail-under", "on_topic=2", "--min-coverage", "0.81"], 1, "(80.0%, needed 81.0%;"),
        (["--min-coverage", "0.9"], 1, "4 of 5 rows have a score"),
        (["--fail-under", "on_topic=2.6", "--min-coverage", "0"], 1, "is 2.5, below 2.6"),
    ],
)
@pytest.mark.parametrize("why", ["invalid", "not applicable"])
def test_a_row_without_a_score_counts_against_the_gate(
    tmp_path: Path,
    assay: Assay,
    metric: Path,
    server: JudgeServer,
    options: list[str],
    code: int,
    says: str,
    why: str,
) -> None:
    def reply(request: Request) -> str:
        return "no idea" if runs.asked(request) == 4 else runs.judged(request)

    server.reply = reply
    records: list[dict[str, Any]] = runs.rows(5)
    if why == "not applicable":
        records[4]["answer"] = None
    path = runs.write_lines(tmp_path / "data.jsonl", records)
    found = assay("run", metric, path, *asking(server), *options)
    assert found.code == code
    assert says in found.err


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("deepeval.faithfulness", 0),
        ("deepeval.faithfulness.faithfulness", 0),
        ("faithfulness", 2),
        ("deepeval", 2),
    ],
)
def test_a_gate_on_a_metric_with_a_dot_in_its_name(assay: Assay, name: str, code: int) -> None:
    path = put("data.jsonl", '{"question": "q", "answer": "a", "contexts": ["c"]}\n')
    judge = ["--judge", "openai:test", "--base-url", "http://127.0.0.1:9/v1", "--dry-run"]
    found = assay("run", "deepeval.faithfulness", path, *judge, "--fail-under", f"{name}=0.5")
    assert found.code == code, found.err
    assert ("metrics are deepeval.faithfulness.faithfulness" in found.err) == (code == 2)


def test_a_mean_that_is_absent_fails_the_gate(
    assay: Assay, metric: Path, data: Path, server: JudgeServer
) -> None:
    server.reply = "no idea"
    gate = ["--fail-under", "on_topic=-100", "--min-coverage", "0"]
    found = assay("run", metric, data, *asking(server), *gate)
    assert found.code == 1
    assert "gate failed: on_topic.score has no mean" in found.err


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 3),
        (["--max-errors", "0.2"], 0),
        (["--max-errors", "0.19"], 3),
        (["--max-errors", "0.19", "--min-coverage", "0.9"], 1),
    ],
)
def test_errors_above_the_allowed_share(
    assay: Assay, metric: Path, data: Path, server: JudgeServer, options: list[str], code: int
) -> None:
    def reply(request: Request) -> Any:
        bad = runs.asked(request) == 4
        return error(400, "bad", "invalid_value") if bad else runs.judged(request)

    server.reply = reply
    assert assay("run", metric, data, *asking(server), *options).code == code


def test_a_second_run_asks_only_for_what_was_not_good(
    assay: Assay, metric: Path, data: Path, server: JudgeServer
) -> None:
    def reply(request: Request) -> Any:
        bad = runs.asked(request) == 4
        return error(400, "bad", "invalid_value") if bad else runs.judged(request)

    server.reply = reply
    first = assay("run", metric, data, *asking(server))
    assert (first.code, server.count) == (3, 5)
    server.reply = runs.judged
    again = assay("run", metric, data, *asking(server), "--json")
    assert (again.code, server.count) == (0, 6)
    assert json.loads(again.out)["metrics"]["on_topic.score"]["mean"] == 3
    assert assay("run", metric, data, *asking(server), "--no-cache").code == 0
    assert server.count == 11


def test_a_wrong_path_is_an_error_of_every_row_after_one_call(
    assay: Assay, metric: Path, data: Path, server: JudgeServer
) -> None:
    wrong = server.url.replace("/v1", "/v2")
    found = assay("run", metric, data, "--judge", "openai:test", "--base-url", wrong, "--json")
    assert found.code == 3
    assert json.loads(found.out)["metrics"]["on_topic.score"]["causes"] == {"not_found": 5}
    assert server.count == 1
    [reason] = {line["message"] for line in runs.journal(runs.only_run(Path())) if line["row"] == 0}
    assert "knows no such model, deployment or path (HTTP 404)" in reason


# --- options -------------------------------------------------------------------------------------


def test_options_reach_the_run(tmp_path: Path, assay: Assay, server: JudgeServer) -> None:
    metric = runs.write_metric(tmp_path)
    path = put("data.csv", "frage,antwort,note\nq1,é,x\nq2,b,x\nq3,c,x\n".encode("latin-1"))
    mapping = ["--map", "question=frage", "--map", "on_topic.answer=${data.antwort}"]
    found = assay(
        "run", metric, path, *asking(server), *mapping, "--encoding", "latin-1", "--limit", "2",
        "--iterations", "3", "--name", "my run", "--runs", "results", "--jobs", "2", "--json",
    )  # fmt: skip
    assert found.code == 0, found.err
    document = json.loads(found.out)
    assert document["rows"] == 2
    assert document["metrics"]["on_topic.score"]["n"] == 2
    assert server.count == 6
    assert server.max_in_flight <= 2
    assert "ANSWER: é" in server.requests[0].text
    assert document["run"].startswith("results/")
    assert document["run"].endswith("-my-run")


def test_several_evaluators_and_the_judge_of_the_environment(
    tmp_path: Path,
    assay: Assay,
    metric: Path,
    data: Path,
    server: JudgeServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = runs.write_metric(tmp_path, "other", extra="Be strict.")
    monkeypatch.setenv("ASSAY_JUDGE", "openai:test")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    found = assay("run", metric, other, data, "--json")
    assert found.code == 0, found.err
    assert list(json.loads(found.out)["metrics"]) == ["on_topic.score", "other.score"]
    assert server.count == 10


def test_a_scripted_judge_needs_no_server(assay: Assay, metric: Path, data: Path) -> None:
    script = put("script.jsonl", '{"reply": "{\\"reason\\": \\"r\\", \\"score\\": 4}"}\n')
    found = assay("run", metric, data, "--judge", f"scripted:{script}", "--json")
    document = json.loads(found.out)
    assert found.code == 0
    assert document["metrics"]["on_topic.score"]["mean"] == 4
    assert document["cost"] == 0


def test_a_target_flow_is_answered_and_judged(
    tmp_path: Path, assay: Assay, metric: Path, server: JudgeServer
) -> None:
    flow = tmp_path / "shout"
    flow.mkdir()
    (flow / "flow.flex.yaml").write_text("entry: app:answer\noutputs:\n  answer: {type: string}\n")
    (flow / "app.py").write_text("def answer(question):\n    return {'answer': question.upper()}\n")
    path = put("data.jsonl", '{"question": "q1"}\n{"question": "q2"}\n')
    found = assay("run", metric, path, *asking(server), "--target", "shout", "--json")
    assert found.code == 0, found.err
    assert {r.text.partition("ANSWER: ")[2] for r in server.requests} == {"Q1", "Q2"}
