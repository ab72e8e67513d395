"""What ships with assay: every metric, its samples, the data set and the flow."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.metric.columns import bind_columns
from assay.metric.evaluator import PromptEvaluator
from assay.prompty.check import check_file
from assay.run.data import Data
from assay.run.progress import Silent
from assay.run.target import load_target

ROOT = Path(__file__).parents[1]
EVALUATORS = ROOT / "evaluators"
FILES = sorted(EVALUATORS.glob("*.prompty"))
FLOWS = sorted((ROOT / "flows").glob("*/*.prompty"))
AGENTS = ("intent_resolution", "task_adherence", "tool_call_accuracy")
SUPPORT_DESK = ROOT / "datasets" / "support_desk.jsonl"
FLOW = ROOT / "flows" / "grounded_answer"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]


def samples(path: Path) -> list[dict[str, Any]]:
    return lines(EVALUATORS / "samples" / f"{path.stem}.jsonl")


def metric(path: Path) -> PromptEvaluator:
    found = assay.load(path)
    assert isinstance(found, PromptEvaluator)
    return found


def names(paths: list[Path]) -> list[str]:
    return [path.stem for path in paths]


every_metric = pytest.mark.parametrize("path", FILES, ids=names(FILES))


def test_the_metrics_that_are_promised() -> None:
    assert {path.stem for path in FILES} >= {
        "similarity",
        "similarity_es",
        "groundedness",
        "relevance",
        "coherence",
        "fluency",
        "retrieval",
        "response_completeness",
        *AGENTS,
    }
    folders = {path.parent.name for path in EVALUATORS.glob("*/metric.yaml")}
    sampled = {path.stem for path in (EVALUATORS / "samples").iterdir()}
    assert sampled == {path.stem for path in FILES} | folders


@every_metric
def test_a_metric_declares_its_scale_and_threshold(path: Path) -> None:
    output = metric(path).prompty.primary
    assert output is not None
    if path.stem == "similarity_es":  # a hand-made file, as people have them
        return
    assert output.minimum is not None
    assert output.maximum is not None
    assert output.threshold is not None
    assert output.minimum < output.threshold <= output.maximum
    assert list(output.levels) == list(range(int(output.minimum), int(output.maximum) + 1))
    assert output.description
    # The reason comes before the score: a score that is written first is not reasoned.
    assert next(iter(metric(path).outputs)) == "reason"


@every_metric
def test_the_body_holds_every_level_word_for_word(path: Path) -> None:
    prompty = metric(path).prompty
    output = prompty.primary
    assert output is not None
    for value, text in output.levels.items():
        assert f"{value} - {text}" in prompty.body


@every_metric
def test_its_own_sample_is_rendered(path: Path) -> None:
    prompty = metric(path).prompty
    values = prompty.sample or {key: samples(path)[0][key] for key in prompty.inputs}
    messages = prompty.render(values)
    assert [message["role"] for message in messages] == ["system", "user"]
    for value in values.values():
        for part in [value] if isinstance(value, str) else value:
            assert str(part) in messages[1]["content"]


@every_metric
def test_every_sample_is_rendered_and_its_reply_is_in_the_expected_range(path: Path) -> None:
    evaluator = metric(path)
    rows = samples(path)
    assert len(rows) >= 3
    for row in rows:
        low, high = row["expect"]
        judge = assay.ScriptedJudge(row["reply"])
        score = asyncio.run(evaluator.score(row, judge, reask=0))
        assert score.status == "scored", score.message
        assert evaluator.prompty.primary is not None
        value = score.outputs[evaluator.prompty.primary.name]
        assert type(value) is int
        assert low <= value <= high
    assert len({row["reply"] for row in rows}) == len(rows)


@pytest.mark.parametrize("path", FILES + FLOWS, ids=names(FILES + FLOWS))
def test_nothing_is_wrong_with_it(path: Path) -> None:
    # The hand-made file declares no scale, as people's files do not: that is what it is for.
    expected = ["no-scale"] if path.stem == "similarity_es" else []
    assert [finding.code for finding in check_file(path)] == expected


@every_metric
def test_a_reply_outside_the_scale_is_no_score(path: Path) -> None:
    evaluator = metric(path)
    output = evaluator.prompty.primary
    assert output is not None
    top = 3 if output.maximum is None else int(output.maximum)
    reply = json.dumps({"reason": "r", output.name: top + 1})
    score = asyncio.run(evaluator.score(samples(path)[0], assay.ScriptedJudge(reply), reask=0))
    if output.maximum is not None:
        assert (score.status, score.cause) == ("invalid", "out_of_scale")


# --- the data set --------------------------------------------------------------------------------


def test_the_data_set_holds_what_its_readme_says() -> None:
    rows = lines(SUPPORT_DESK)
    assert len(rows) == 48
    for row in rows:
        assert list(row) == [
            "id",
            "lang",
            "question",
            "contexts",
            "answer",
            "ground_truth",
            "flaw",
            "expected",
        ]
        assert all(row[name].strip() for name in ("question", "answer", "ground_truth"))
        assert 2 <= len(row["contexts"]) <= 4
        assert all(context.strip() for context in row["contexts"])
    assert sorted(row["id"] for row in rows) == [f"sd-{n:03}" for n in range(1, 49)]
    assert Counter(row["lang"] for row in rows) == {"en": 30, "es": 7, "de": 6, "ja": 5}
    assert Counter(row["flaw"] for row in rows)["none"] == 19
    # 29 flawed rows of at least a dozen kinds.
    assert len({row["flaw"] for row in rows}) >= 12


@pytest.mark.parametrize("name", ["similarity", "groundedness", "relevance"])
def test_expected_scores_are_on_the_metrics_scale(name: str) -> None:
    output = metric(EVALUATORS / f"{name}.prompty").prompty.primary
    assert output is not None
    values = [row["expected"][name] for row in lines(SUPPORT_DESK)]
    assert set(values) <= set(output.levels)
    assert len(set(values)) >= 3, "a set that uses one level tells no judge from another"


@every_metric
def test_the_data_set_has_the_columns_of_every_metric(path: Path) -> None:
    evaluator = metric(path)
    if path.stem in AGENTS:  # what an agent did is no column of a question and its answer
        return
    columns = Data(SUPPORT_DESK).survey().columns
    binding = bind_columns(evaluator.name, evaluator.inputs, columns)
    assert set(binding.columns) == set(evaluator.inputs)


# --- the flow ------------------------------------------------------------------------------------


def test_the_flow_answers_from_the_passages_it_is_given() -> None:
    judge = assay.ScriptedJudge(
        [{"when": "[2] Two stamps are needed.", "reply": "You need two stamps."}]
    )
    target = load_target(FLOW, judge)
    row = {"question": "How many?", "contexts": ["Nothing here.", "Two stamps are needed."]}
    assert asyncio.run(target.run(row)) == {"answer": "You need two stamps."}
    assert target.outputs == ("answer",)


def test_the_flow_is_walked_from_question_to_judged_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answerer = assay.ScriptedJudge("From the passages.")
    judge = assay.ScriptedJudge(
        [{"when": "From the passages.", "reply": '{"reason": "seen", "similarity": 2}'}]
    )
    run = assay.evaluate(
        SUPPORT_DESK,
        EVALUATORS / "similarity.prompty",
        judge=judge,
        target=FLOW,
        target_model=answerer,
        limit=5,
        progress=Silent(),
    )
    found = run.metrics["similarity.similarity"]
    assert (found["mean"], found["scored"], found["pass_rate"]) == (2, 5, 1)
    assert {row["outputs.answer"] for row in run.rows()} == {"From the passages."}
    assert run.header["target"]["name"] == "grounded_answer"


def test_the_flow_says_why_there_is_no_answer() -> None:
    judge = assay.ScriptedJudge({"text": "", "refusal": "I would rather not"})
    with pytest.raises(RuntimeError, match="refusal: the judge declined: I would rather not"):
        asyncio.run(load_target(FLOW, judge).run({"question": "q", "contexts": ["c"]}))
