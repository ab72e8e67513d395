"""The baseline judge: what it decides, what it refuses, and that it never guesses."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import pickle
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from assay.errors import InputError, JudgeRefusal, SetupError
from assay.judge import baseline
from assay.judge.base import Decider, Judge, Usage, is_decider
from assay.judge.baseline import BaselineJudge, vectors
from assay.judge.baseline.lexical import language, negations_flipped, read
from assay.prompty import Prompty, loads

EVALUATORS = Path(__file__).resolve().parents[2] / "evaluators"
SCALE = "{type: integer, minimum: 0, maximum: 3}"
TRUTH = "The parcel arrives within 5 days and the return is free for members."


def prompty(inputs: str, outputs: str, name: str = "metric") -> Prompty:
    names = [part.strip() for part in inputs.split(",")]
    head = "".join(f"  {part}: {{type: string}}\n" for part in names)
    body = " ".join(f"{{{{{part}}}}}" for part in names)
    text = f"---\nname: {name}\ninputs:\n{head}outputs:\n{outputs}\n---\nuser:\n{body}\n"
    return loads(text, Path(f"{name}.prompty"))


def similarity(scale: str = SCALE) -> Prompty:
    return prompty("response, ground_truth", f"  reason: {{type: string}}\n  similarity: {scale}")


def groundedness() -> Prompty:
    return prompty("answer, contexts", "  groundedness: {type: integer, minimum: 1, maximum: 5}")


def decide(asked: Prompty, **inputs: Any) -> dict[str, Any]:
    reply = asyncio.run(BaselineJudge().decide(asked, inputs))
    found: dict[str, Any] = json.loads(reply.text)
    return found


def similar(response: str, truth: str) -> int:
    return int(decide(similarity(), response=response, ground_truth=truth)["similarity"])


def grounded(answer: str, *contexts: str) -> int:
    return int(decide(groundedness(), answer=answer, contexts=list(contexts))["groundedness"])


# --- what it decides -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "truth",
    [
        TRUTH,
        "図書館は日曜日に閉まっています。",
        "La garantía cubre la batería durante diez años.",
        "Die Garantie für die Batterie läuft nach zehn Jahren ab.",
        "yes",
    ],
)
def test_identical_answer_has_the_top_level(truth: str) -> None:
    assert similar(truth, truth) == 3
    assert similar(truth.upper(), truth) == 3
    assert grounded(truth, "Other words entirely.", truth) == 5


@pytest.mark.parametrize(
    ("response", "truth"),
    [
        ("Penguins swim well.", TRUTH),
        ("このケーキには卵が三つ必要です。", "図書館は日曜日に閉まっています。"),
        ("Für den Kuchen braucht man drei Eier.", "Die Bibliothek ist sonntags geschlossen."),
    ],
)
def test_unrelated_answer_has_the_bottom_level(response: str, truth: str) -> None:
    assert similar(response, truth) == 0
    assert grounded(response, truth) == 1


def test_other_words_for_the_same_stay_high() -> None:
    assert similar("Hold both buttons for 10 seconds to reset it.",
                   "To reset it, hold both buttons for ten seconds.") == 3  # fmt: skip
    assert similar("The capital of France is Paris.", "Paris") >= 2


def test_swapped_number_lowers_similarity_and_groundedness() -> None:
    swapped = TRUTH.replace("5", "9")
    assert similar(swapped, TRUTH) <= 1
    assert grounded(swapped, TRUTH) <= 2
    found = decide(similarity(), response=swapped, ground_truth=TRUTH)
    assert "the answer has 9 where the ground truth has 5" in found["reason"]


def test_negation_flip_lowers_similarity_and_groundedness() -> None:
    flipped = TRUTH.replace("is free", "is not free")
    assert similar(flipped, TRUTH) <= 1
    assert grounded(flipped, TRUTH) < grounded(TRUTH, TRUTH)
    assert similar("図書館は日曜日に閉まっていません。", "図書館は日曜日に閉まっています。") <= 1


def test_groundedness_falls_with_each_invented_sentence() -> None:
    invented = f"{TRUTH} A voucher from our partner bakery comes along."
    wild = f"{invented} Celebrities recommend purple umbrellas, and dolphins applaud loudly."
    levels = [grounded(answer, TRUTH) for answer in (TRUTH, invented, wild)]
    assert levels == sorted(levels, reverse=True)
    assert levels[0] == 5
    assert levels[-1] <= 3


def test_citations_and_list_markers_are_no_numbers() -> None:
    answer = "1. Parcel arrives within 5 days [terms.pdf#page=14].\n2. The return is free [3]."
    assert grounded(answer, TRUTH) == 5
    assert read(answer).numbers == {"5"}


@pytest.mark.parametrize(
    ("one", "other"),
    [("1,000", "1000"), ("5.0", "5"), ("05", "5"), ("1,5", "1.5"), ("ten", "10"), ("５", "5")],
)
def test_numbers_have_one_spelling(one: str, other: str) -> None:
    assert read(f"about {one} units").numbers == read(f"about {other} units").numbers == {
        other
    }  # fmt: skip


def test_codes_count_as_numbers() -> None:
    assert read("The tents X4 and A320neo").numbers == {"x4", "a320neo"}


def test_negation_belongs_to_the_word_behind_it() -> None:
    plain = read("The fee is charged for each parcel.")
    assert negations_flipped(read("The fee is not charged for each parcel."), [plain]) == 1
    assert (
        negations_flipped(read("The fee is charged, not limited, for each parcel."), [plain]) == 0
    )


def test_relevance_tells_another_subject_and_a_refusal() -> None:
    asked = prompty("query, response", "  relevance: {type: integer, minimum: 1, maximum: 5}")
    query = "How long does the delivery of a parcel to Spain take?"
    good = "The delivery of a parcel to Spain takes five days."
    other = " ".join(f"The museum shows painting and sculpture number {i}." for i in range(8))
    unsure = "It is not specified how long the delivery of a parcel to Spain does take."
    assert decide(asked, query=query, response=good)["relevance"] == 5
    assert decide(asked, query=query, response=other)["relevance"] == 1
    assert decide(asked, query=query, response=unsure)["relevance"] <= 2


def test_retrieval_takes_the_order_into_account() -> None:
    asked = prompty("query, context", "  retrieval: {type: integer, minimum: 1, maximum: 5}")
    useful = "Delivery of a parcel to Spain takes 5 days."
    useless = ["The museum shows old coins.", "Penguins swim well."]
    query = "How long does delivery of a parcel to Spain take?"
    levels = [
        decide(asked, query=query, context=context)["retrieval"]
        for context in ([useful, *useless], [useless[0], useful], [*useless, useful], useless)
    ]
    assert levels == [5, 4, 3, 1]


def test_completeness_ignores_what_goes_beyond_the_ground_truth() -> None:
    asked = prompty(
        "response, ground_truth",
        "  response_completeness: {type: integer, minimum: 1, maximum: 5}",
    )
    longer = f"{TRUTH} Our shop also sells coffee, tea and a choice of biscuits."
    half = "It arrives within 5 days."
    scores = [
        decide(asked, response=text, ground_truth=TRUTH)["response_completeness"]
        for text in (TRUTH, longer, half)
    ]
    assert scores[0] == 5
    assert scores[1] >= 4
    assert scores[2] <= 3


# --- scales --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "top", "bottom"),
    [
        ("{type: integer, minimum: 1, maximum: 5}", 5, 1),
        ("{type: number, minimum: 0, maximum: 1}", 1.0, 0.0),
        ("{type: number, minimum: 0, maximum: 10}", 10.0, 0.0),
        ("{type: boolean}", True, False),
        ("{type: integer, enum: [1, 3, 7]}", 7, 1),
    ],
)
def test_quality_is_put_on_the_declared_scale(scale: str, top: float, bottom: float) -> None:
    asked = similarity(scale)
    assert decide(asked, response=TRUTH, ground_truth=TRUTH)["similarity"] == top
    low = decide(asked, response="Penguins swim well.", ground_truth=TRUTH)["similarity"]
    assert low == pytest.approx(bottom, abs=0.05 * float(top))
    assert type(low) is type(top)


@pytest.mark.parametrize("metric", sorted(baseline.METRICS))
def test_quality_rises_with_the_measure_from_0_to_1(metric: str) -> None:
    raws = [i / 200 for i in range(201)]
    found = [baseline.quality(metric, baseline.Measure(raw, "")) for raw in raws]
    assert found == sorted(found)
    assert (found[0], found[-1]) == (0.0, 1.0)


def test_reply_holds_every_declared_output_and_reads_back() -> None:
    asked = similarity()
    reply = asyncio.run(BaselineJudge().decide(asked, {"response": TRUTH, "ground_truth": TRUTH}))
    assert reply.finish_reason == "stop"
    assert reply.model == "baseline/wordllama-l2-256"
    assert reply.usage == Usage()
    assert set(json.loads(reply.text)) == {"reason", "similarity"}
    assert json.loads(reply.text)["reason"].startswith("Baseline, not a language model: ")
    assert asked.read(reply.text).outputs["similarity"] == 3


def test_same_row_same_reply_whatever_was_judged_before() -> None:
    judge, asked = BaselineJudge(), similarity()
    row = {"response": "It arrives in 5 days.", "ground_truth": TRUTH}
    first = asyncio.run(judge.decide(asked, row))
    for i in range(1_200):
        other = {"response": f"Parcel {i} of {i + 1}", "ground_truth": f"Word{i} parcel {i}"}
        asyncio.run(judge.decide(asked, other))
    assert asyncio.run(judge.decide(asked, row)) == first


def test_same_row_same_reply_in_another_process() -> None:
    code = (
        "from assay.judge.baseline import measure;"
        f"print(measure('similarity', {{'response': ['in 5 days'], 'ground_truth': [{TRUTH!r}]}}))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(EVALUATORS.parent / "src")},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1


# --- what it refuses -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["similarity", "groundedness", "relevance", "retrieval", "response_completeness"],
)
def test_judges_the_projects_own_metrics(name: str) -> None:
    from assay.prompty import load

    assert BaselineJudge().refuses(load(EVALUATORS / f"{name}.prompty")) is None


@pytest.mark.parametrize(
    ("inputs", "output", "says"),
    [
        ("query, response", "  fluency: {type: integer, minimum: 1, maximum: 5}", "'metric'"),
        ("response", "  coherence: {type: integer, minimum: 1, maximum: 5}", "'metric'"),
        ("response", f"  similarity: {SCALE}", "similarity without an input for ground_truth"),
        ("response, ground_truth", "  similarity: {type: integer}", "no rising scale"),
        ("response, ground_truth", "  similarity: {type: string, enum: [low, high]}", "no rising"),
        (
            "response, ground_truth",
            "  similarity: {type: integer, minimum: 0, maximum: 3, desirable_direction: decrease}",
            "no rising scale",
        ),
        ("response, ground_truth, rubric", f"  similarity: {SCALE}", "'rubric'"),
        ("response, context, summary_type", f"  groundedness: {SCALE}", "summaries"),
        ("summary, response, context", f"  faithfulness: {SCALE}", "summaries"),
        (
            "response, ground_truth",
            f"  similarity: {SCALE}\n  claims: {{type: array}}",
            "the output 'claims'",
        ),
        ("response", "  reason: {type: string}", "'metric'"),
        ("response, query, context", "  verdict: {type: string}", "'metric'"),
    ],
)
def test_refuses_what_it_cannot_measure(inputs: str, output: str, says: str) -> None:
    judge, asked = BaselineJudge(), prompty(inputs, output)
    sentence = judge.refuses(asked)
    assert sentence is not None
    assert says in sentence
    assert "a baseline, not a language model" in sentence
    assert "it judges similarity, groundedness, relevance" in sentence
    with pytest.raises(JudgeRefusal) as caught:
        asyncio.run(judge.decide(asked, dict.fromkeys(inputs.split(", "), "text")))
    assert caught.value.cause == "not_judged_by_baseline"


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("gpt_similarity", "similarity"),
        ("SimilarityEvaluator", "similarity"),
        ("similarity_es", "similarity"),
        ("faithfulness_score", "groundedness"),
        ("answer_relevancy", "relevance"),
        ("context_relevance", "retrieval"),
        ("tone_similarity", None),
        ("hallucination", None),
    ],
)
def test_metric_is_found_by_the_prompty_name_where_the_output_has_none(
    name: str, metric: str | None
) -> None:
    asked = prompty("query, response", f"  score: {SCALE}", name=name)
    assert baseline.metric_of(asked) == metric


@pytest.mark.parametrize("response", ["...", "It is.", "🙂"])
def test_row_without_a_content_word_gets_no_number(response: str) -> None:
    with pytest.raises(JudgeRefusal, match="no content word in the response") as caught:
        similar(response, TRUTH)
    assert caught.value.cause == "nothing_to_measure"


def test_short_answer_far_from_the_question_gets_no_relevance() -> None:
    asked = prompty("query, response", f"  relevance: {SCALE}")
    with pytest.raises(JudgeRefusal, match="short answer"):
        decide(asked, query="What is the capital of France?", response="Paris")


def test_answer_in_another_language_gets_no_number() -> None:
    german = "Das Paket kommt nach fünf Tagen an, und die Rücksendung ist für Mitglieder frei."
    assert (language(read(german)), language(read(TRUTH * 2))) == ("de", "en")
    with pytest.raises(JudgeRefusal, match="different languages"):
        similar(german, "The parcel will be there after five days and the return is for free.")


@pytest.mark.parametrize("value", ["", "  ", None, [], ["", None]])
def test_empty_input_is_an_input_error(value: object) -> None:
    with pytest.raises(InputError, match="'contexts' is empty"):
        decide(groundedness(), answer="It takes 5 days.", contexts=value)


def test_does_not_read_prompts() -> None:
    with pytest.raises(SetupError, match="does not read prompts"):
        asyncio.run(BaselineJudge().complete([{"role": "user", "content": "Rate this."}]))


# --- answering by quoting ------------------------------------------------------------------------


def test_answers_with_sentences_of_the_context() -> None:
    asked = prompty("question, documents, chat_history", "  answer: {type: string}")
    passages = [
        "Our shop opened in 1990. Delivery to Spain takes 5 days. Coffee is served at noon.",
        "Penguins swim well. They eat fish.",
    ]
    question = "How long does delivery to Spain take?"
    assert BaselineJudge().refuses(asked) is None
    found = decide(asked, question=question, documents=passages, chat_history=[])
    assert found == {"answer": "Delivery to Spain takes 5 days."}
    unknown = decide(asked, question="Who composed the opera?", documents=passages)
    assert unknown == {"answer": "No sentence of the context is close to the question."}


# --- setting up ----------------------------------------------------------------------------------


def test_is_a_judge_and_a_decider() -> None:
    judge = BaselineJudge()
    as_judge: Judge = judge
    as_decider: Decider = judge
    assert is_decider(as_judge)
    assert as_decider.refuses is not None
    assert judge.name == "baseline"
    assert judge.describe() == {
        "judge": "baseline",
        "embedder": "wordllama-l2-256",
        "note": "a baseline, not a language model",
    }
    asyncio.run(judge.close())
    asyncio.run(judge.close())


def test_survives_pickling() -> None:
    judge = BaselineJudge()
    judge.refuses(similarity())
    assert pickle.loads(pickle.dumps(judge)).refuses(similarity()) is None


def test_missing_package_names_the_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str, package: str | None = None) -> None:
        return None

    monkeypatch.setattr(vectors, "find_spec", absent)
    with pytest.raises(SetupError) as caught:
        BaselineJudge()
    assert 'pip install "assay[baseline]"' in str(caught.value)


def test_package_without_its_files_names_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spec = importlib.util.spec_from_loader("wordllama", None, is_package=True)
    assert spec is not None
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(vectors, "find_spec", lambda name: spec)
    with pytest.raises(SetupError, match="l2_supercat_256.safetensors"):
        vectors.table.__wrapped__()


def test_opens_no_connection_and_leaves_logging_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("the baseline judge went to the network")

    handlers = list(logging.getLogger().handlers)
    monkeypatch.setattr(socket.socket, "connect", forbidden)
    vectors.table.cache_clear()
    assert similar("The parcel comes within 5 days.", TRUTH) >= 1
    assert logging.getLogger().handlers == handlers
    assert "wordllama" not in sys.modules
