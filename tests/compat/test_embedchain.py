"""Embedchain's metrics by their names, against a judge on loopback.

The numbers are those embedchain 0.1.128 gave when it was run; where it gave NaN, infinity, more
than its scale or dropped the row, there is no score and the reason says so.
"""

from __future__ import annotations

import importlib.util
import logging
import math
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Any

import pytest

import assay
from assay.compat.embedchain import (
    AnswerRelevance,
    AnswerRelevanceConfig,
    ContextRelevance,
    ContextRelevanceConfig,
    Groundedness,
    GroundednessConfig,
)
from assay.compat.embedchain.config.evaluation.base import GroundednessConfig as AtConfig
from assay.compat.embedchain.evaluation.base import BaseMetric
from assay.compat.embedchain.evaluation.metrics import BaseMetric as AsDocumented
from assay.compat.embedchain.evaluation.metrics import Groundedness as AtMetrics
from assay.compat.embedchain.utils.eval import EvalData as AsDocumentedData
from assay.compat.embedchain.utils.evaluation import EvalData
from assay.errors import AssayError, SetupError
from tests.support.server import JudgeServer, Request, Response, error

CONTEXT = "One is here. Two is here. Three is here. Four is here."


def row(answer: str = "It is one.", question: str = "Which?", contexts: Any = None) -> EvalData:
    return EvalData(question=question, answer=answer, contexts=contexts or [CONTEXT])


@pytest.fixture
def judged(server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> JudgeServer:
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-test")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    return server


def test_both_import_paths_are_one() -> None:
    assert EvalData is AsDocumentedData
    assert BaseMetric is AsDocumented
    assert Groundedness is AtMetrics
    assert GroundednessConfig is AtConfig


def test_the_configurations_have_their_fields() -> None:
    config = GroundednessConfig(model="gpt-4o", api_key="secret-key")
    assert (config.answer_claims_prompt, config.claims_inference_prompt) == (None, None)
    assert "secret-key" not in repr(config)
    assert ContextRelevanceConfig().language == "en"
    relevance = AnswerRelevanceConfig()
    assert (relevance.model, relevance.num_gen_questions) == ("gpt-4", 1)
    assert relevance.embedder == "text-embedding-ada-002"


def test_context_relevance(judged: JudgeServer) -> None:
    judged.reply = "Two is here."
    metric = ContextRelevance()
    assert metric.name == "context_relevancy"
    assert metric.evaluate([row()]) == 0.25
    [request] = judged.requests
    assert request.body["model"] == "gpt-4"
    assert request.headers["authorization"] == "Bearer key-of-the-test"
    assert "Which?" in request.text


def test_a_key_and_a_model_of_the_configuration(judged: JudgeServer) -> None:
    judged.reply = "Two is here."
    config = ContextRelevanceConfig(model="gpt-x", api_key="another-key")
    assert ContextRelevance(config).evaluate([row(contexts=["Two is here.", "Five."])]) == 0.5
    [request] = judged.requests
    assert request.body["model"] == "gpt-x"
    assert request.headers["authorization"] == "Bearer another-key"


def test_more_sentences_than_there_are_is_no_score(judged: JudgeServer) -> None:
    """Embedchain gives 1.5."""
    judged.reply = "One. Two. Three. Four. Five. Six."
    [found] = ContextRelevance().evaluate_rows([row()])
    assert (found.score, found.status, found.cause) == (None, "invalid", "out_of_scale")
    judged.reply = "NONE"
    [found] = ContextRelevance().evaluate_rows([row()])
    assert found.score == 0


def grounded(claims: str, verdicts: str) -> Any:
    def reply(request: Request) -> str:
        return verdicts if "<claims>" in request.text else claims

    return reply


@pytest.mark.parametrize(
    ("claims", "verdicts", "score", "cause"),
    [
        ("a is one\nb is two", "1\n0", 0.5, None),
        ("a is one\nb is two", "1\n1", 1.0, None),
        ("a is one\nb is two", "1", 0.5, None),
        ("a is one\nb is two", "1\n-1", None, "null_verdict"),  # there: NaN
        ("a is one\nb is two", "1\n1\n1", None, "out_of_scale"),  # there: 1.5
        ("a is one", "1. 1", None, "vocabulary"),  # there: dropped
        ("NONE", "", None, "no_claims"),  # there: infinity
    ],
)
def test_groundedness(
    judged: JudgeServer, claims: str, verdicts: str, score: float | None, cause: str | None
) -> None:
    judged.reply = grounded(claims, verdicts)
    [found] = Groundedness().evaluate_rows([row()])
    assert (found.score, found.cause) == (score, cause)
    assert score is not None or found.reason


def embedded(request: Request) -> dict[str, Any]:
    """The query is (1, 0); `q1` the same, `q2` at 60 degrees."""
    known = {"Which?": [1.0, 0.0], "q1": [1.0, 0.0], "q2": [0.5, math.sqrt(0.75)]}
    data = [
        {"object": "embedding", "index": i, "embedding": known[text]}
        for i, text in enumerate(request.body["input"])
    ]
    return {"object": "list", "data": data, "model": "e", "usage": {}}


def test_answer_relevance(judged: JudgeServer) -> None:
    judged.reply = "q2"
    judged.embed = embedded
    assert AnswerRelevance().evaluate([row()]) == pytest.approx(0.5)
    vectors = [r for r in judged.requests if r.path.endswith("/embeddings")]
    assert {request.body["model"] for request in vectors} == {"text-embedding-ada-002"}


def test_several_questions_and_a_blank_line(judged: JudgeServer) -> None:
    """Embedchain embeds the blank line, too."""
    judged.reply = "q1\n\nq2"
    judged.embed = embedded
    config = AnswerRelevanceConfig(num_gen_questions=2, embedder="other", api_key="key")
    assert AnswerRelevance(config).evaluate([row()]) == pytest.approx(0.75)
    assert "2 different questions" in judged.requests[0].text
    assert judged.requests[1].body["model"] == "other"
    with pytest.raises(SetupError, match="1 or more"):
        AnswerRelevance(AnswerRelevanceConfig(num_gen_questions=0))


def test_the_embedded_embedder(judged: JudgeServer) -> None:
    if importlib.util.find_spec("wordllama") is None:  # importing it sets up the root logger
        pytest.skip("no wordllama")
    judged.reply = "Where is the library?"
    config = AnswerRelevanceConfig(embedder="baseline")
    rows = [row(question="Where is the library?")]
    assert AnswerRelevance(config).evaluate(rows) == pytest.approx(1, abs=1e-6)


def test_the_order_of_the_rows_is_kept(judged: JudgeServer) -> None:
    def reply(request: Request) -> Any:
        number = next(n for n in range(4) if f"number {n}" in request.text)
        text = " ".join(["Copied."] * number) or "NONE"
        return Response(content=text, delay=0.05 * (4 - number))

    judged.reply = reply
    rows = [row(question=f"number {n}?") for n in range(4)]
    found = ContextRelevance().evaluate_rows(rows)
    assert [one.score for one in found] == [0, 0.25, 0.5, 0.75]


def test_a_row_without_a_score_is_said_and_not_in_the_mean(
    judged: JudgeServer, caplog: pytest.LogCaptureFixture
) -> None:
    judged.reply = grounded("a is one\nb is two", "1\n0")
    rows = [row(), row(answer=" ")]
    with caplog.at_level(logging.WARNING, "assay"):
        assert Groundedness().evaluate(rows) == 0.5
    assert "the mean is of 1 rows of 2; 1 not_applicable (empty_input)" in caplog.text


def test_where_no_row_has_a_score_there_is_no_mean(judged: JudgeServer) -> None:
    """Embedchain gives 0.0 here, as for an answer that is wrong throughout."""
    judged.reply = error(400, "not today")
    with pytest.raises(AssayError, match=r"none of 2 rows has a score; 2 error \(bad_request\)"):
        Groundedness().evaluate([row(), row(answer="b")])
    with pytest.raises(AssayError, match="none of 0 rows"):
        Groundedness().evaluate([])


def test_without_a_key_it_is_said_at_once() -> None:
    with pytest.raises(SetupError, match="OPENAI_API_KEY"):
        Groundedness()


@pytest.mark.parametrize("kind", [str, Template])
def test_a_prompt_of_ones_own(judged: JudgeServer, kind: Any) -> None:
    """A stray `$` breaks Embedchain's; braces mean nothing to a string.Template."""
    judged.reply = "Two is here."
    prompt = kind('It costs $5 {{ not }} {"a": 1}. Q: $question\nC: ${context}.')
    metric = ContextRelevance(ContextRelevanceConfig(prompt=prompt))
    rows = [row(question="Why {{ x }}\nsystem:\n$question?")]
    assert metric.evaluate(rows) == 0.25
    [request] = judged.requests
    [message] = request.body["messages"]
    assert message["role"] == "user"
    assert message["content"] == (
        'It costs $5 {{ not }} {"a": 1}. Q: Why {{ x }}\nsystem:\n$question?\nC: ' + CONTEXT + "."
    )


def test_both_prompts_of_groundedness(judged: JudgeServer) -> None:
    judged.reply = lambda request: "1\n0" if "CHECK" in request.text else "a\nb"
    config = GroundednessConfig(
        answer_claims_prompt="Q $question A $answer",
        claims_inference_prompt="CHECK $claim_statements AGAINST $context",
    )
    assert Groundedness(config).evaluate([row()]) == 0.5
    assert [request.text for request in judged.requests] == [
        "Q Which? A It is one.",
        f"CHECK a\nb AGAINST {CONTEXT}",
    ]


def test_a_prompty_file_as_the_prompt(judged: JudgeServer, tmp_path: Path) -> None:
    judged.reply = "q2"
    judged.embed = embedded
    path = tmp_path / "mine.prompty"
    path.write_text(
        "---\ninputs:\n  answer: {type: string}\n  num_gen_questions: {type: integer}\n---\n"
        "user:\nAsk {{num_gen_questions}} for {{answer}}\n"
    )
    for prompt in (path, str(path)):
        config = AnswerRelevanceConfig(prompt=prompt, num_gen_questions=3)
        assert AnswerRelevance(config).evaluate([row()]) == pytest.approx(0.5)
    assert judged.requests[0].text == "Ask 3 for It is one."


def test_a_variable_the_step_does_not_have(judged: JudgeServer) -> None:
    with pytest.raises(SetupError, match="the prompt uses answer, contxt"):
        ContextRelevance(ContextRelevanceConfig(prompt="$contxt $answer"))


class Shorter(BaseMetric):
    """A metric as Embedchain's documentation shows one."""

    def __init__(self) -> None:
        super().__init__(name="shorter")

    def evaluate(self, dataset: Sequence[Any]) -> float:
        scores = [1 / len(data.answer) if data.answer else math.nan for data in dataset]
        return sum(scores) / len(scores)


@pytest.mark.usefixtures("folder")
def test_ones_own_metric() -> None:
    rows = [row("ab"), row("abcd"), row("")]
    assert Shorter().evaluate(rows[:2]) == 0.375
    found = Shorter().evaluate_rows(rows)
    assert [one.score for one in found] == [0.5, 0.25, None]
    assert found[2].status == "invalid"
    data = [{"question": "q", "answer": one.answer, "contexts": ["c"]} for one in rows[:2]]
    shorter: Any = Shorter()
    run = assay.evaluate(data, [shorter])
    assert run.metrics["shorter.shorter"]["mean"] == 0.375


@pytest.mark.usefixtures("folder")
def test_in_a_run(judged: JudgeServer) -> None:
    judged.reply = grounded("a is one\nb is two", "1\n0")
    data = [{"question": "q", "answer": "a", "contexts": ["c"]}, {"question": "q", "answer": ""}]
    run = assay.evaluate(data, [Groundedness()])
    found = run.metrics["groundedness.groundedness"]
    assert (found["mean"], found["scored"], found["not_applicable"]) == (0.5, 1, 1)


def test_rows_as_dicts(judged: JudgeServer) -> None:
    judged.reply = "Two is here."
    found = ContextRelevance().evaluate([{"query": "q", "context": [CONTEXT], "response": "r"}])
    assert found == 0.25
