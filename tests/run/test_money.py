"""Before money is spent, while it is spent, and what is never paid for twice."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import SetupError
from assay.judge.base import Usage
from assay.judge.cache import ReplyStore, cache_path
from assay.judge.prices import Price, Prices, estimate_tokens
from assay.run.dryrun import dry_run
from assay.run.plan import Options, prepare
from assay.run.progress import Silent
from assay.run.rescore import rescore
from tests.support import runs
from tests.support.server import JudgeServer, completion


def evaluate(data: Any, evaluators: Any, server: JudgeServer, **options: Any) -> assay.Run:
    options = {"judge": "openai:gpt-4o", "base_url": server.url, **options}
    return assay.evaluate(data, evaluators, progress=Silent(), **options)


# --- prices and tokens ---------------------------------------------------------------------------


def test_a_price_is_for_a_million_tokens() -> None:
    assert Price(2.5, 10.0).of(Usage(prompt_tokens=1_000_000, completion_tokens=100_000)) == 3.5


def test_a_dated_version_costs_what_its_model_costs_and_one_can_set_ones_own() -> None:
    prices = Prices({"prices": {"ours": {"input": 1, "output": 2}}})
    assert prices.of("openai:gpt-4o-2024-08-06") == prices.of("gpt-4o") == Price(2.5, 10.0)
    assert prices.of("azure:ours") == Price(1.0, 2.0)
    assert prices.of("azure:prod-judge", "gpt-4o-mini-2024-07-18") == Price(0.15, 0.6)
    assert prices.of("openai:nobody-knows") is None
    assert prices.of("ollama:qwen3") == Price(0.0, 0.0)


def test_a_price_without_its_parts_is_told() -> None:
    with pytest.raises(SetupError, match='prices."x"'):
        Prices({"prices": {"x": {"input": 1}}})


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        # Counted with the tokenizer o200k_base.
        ("The quick brown fox jumps over the lazy dog. " * 20, 201),
        ("Die Batterie lädt nur, wenn die Sonne scheint. " * 20, 201),
        ("保証は新しい所有者に引き継がれます。" * 20, 300),
    ],
)
def test_an_estimate_is_as_near_as_it_says(text: str, tokens: int) -> None:
    assert tokens * 0.84 <= estimate_tokens(text) <= tokens * 1.25


# --- dry run -------------------------------------------------------------------------------------


def test_a_dry_run_counts_and_asks_nobody(metric: Path, server: JudgeServer) -> None:
    rows = [*runs.rows(10), {"question": "q10", "answer": None}]
    options = Options(judge="openai:gpt-4o", base_url=server.url, iterations=2)
    found = asyncio.run(dry_run(prepare(rows, [metric], options)))
    assert server.count == 0
    assert (found["rows"], found["calls"]) == (11, 20)
    entry = found["metrics"]["on_topic"]
    assert entry["not_asked"] == {"missing_input": 1}
    assert [message["role"] for message in found["messages"]] == ["system", "user"]
    paid = Price(2.5, 10.0).of(Usage(entry["prompt_tokens"], entry["completion_tokens"]))
    assert found["cost"] == pytest.approx(paid)


def test_a_dry_run_of_several_steps_counts_every_call(server: JudgeServer) -> None:
    rows = [{"query": "q", "ground_truth": "t", "context": ["a", "b", "c"]}] * 4
    options = Options(judge="openai:gpt-4o", base_url=server.url)
    found = asyncio.run(dry_run(prepare(rows, ["context_precision"], options)))
    assert found["calls"] == 4 * 3  # one a passage
    assert found["tokens"] > 0


# --- budget --------------------------------------------------------------------------------------


def test_a_budget_ends_the_run_and_resuming_finishes_it(
    metric: Path, server: JudgeServer, tmp_path: Path
) -> None:
    (tmp_path / "assay.toml").write_text('[prices."gpt-4o"]\ninput = 1000\noutput = 0\n')
    # 50 prompt tokens a call are 5 cents: twenty calls use a dollar up.
    run = evaluate(runs.rows(400), [metric], server, budget=1.0, max_in_flight=4)
    assert run.header["status"] == "budget"
    assert 20 <= server.count < 400
    assert run.summary["cost"] >= 1.0
    again = evaluate(runs.rows(400), [metric], server, resume=run.directory)
    assert again.header["status"] == "finished"
    assert again.metrics["on_topic.score"]["scored"] == 400
    assert server.count == 400


def test_a_budget_needs_a_price(metric: Path, server: JudgeServer) -> None:
    with pytest.raises(SetupError, match=r"needs a price for openai:nobody-knows.*assay\.toml"):
        evaluate(runs.rows(2), [metric], server, judge="openai:nobody-knows", budget=1.0)
    assert server.count == 0


# --- cache ---------------------------------------------------------------------------------------


def test_a_good_reply_is_not_asked_for_twice(metric: Path, server: JudgeServer) -> None:
    first = evaluate(runs.rows(6), [metric], server)
    second = evaluate(runs.rows(6), [metric], server)
    assert server.count == 6
    assert second.metrics == first.metrics
    assert (second.summary["calls"], second.summary["cached_calls"]) == (6, 6)
    assert second.summary["cost"] == 0.0


def test_an_edited_prompt_and_another_iteration_are_asked(
    metric: Path, server: JudgeServer, tmp_path: Path
) -> None:
    evaluate(runs.rows(3), [metric], server)
    evaluate(runs.rows(3), [metric], server, iterations=2)
    assert server.count == 6
    runs.write_metric(tmp_path, extra="Be strict.")
    evaluate(runs.rows(3), [metric], server)
    assert server.count == 9
    evaluate(runs.rows(3), [metric], server, cache=False)
    assert server.count == 12


def test_a_reply_that_could_not_be_read_is_not_kept(metric: Path, server: JudgeServer) -> None:
    server.reply = "no score at all"
    evaluate(runs.rows(2), [metric], server, reask=0)
    server.reply = runs.judged
    run = evaluate(runs.rows(2), [metric], server, reask=0)
    assert run.metrics["on_topic.score"]["scored"] == 2
    assert server.count == 4


def test_the_store_tells_what_it_holds_and_forgets(metric: Path, server: JudgeServer) -> None:
    evaluate(runs.rows(3), [metric], server)
    store = ReplyStore(cache_path())
    assert store.stats()["replies"] == {"openai:gpt-4o": 3}
    assert store.clear() == 3
    assert store.stats()["replies"] == {}
    store.close()


# --- rescore -------------------------------------------------------------------------------------


def test_a_new_threshold_and_scale_need_no_call(
    metric: Path, server: JudgeServer, tmp_path: Path
) -> None:
    run = evaluate(runs.rows(5), [metric], server)  # scores 1 2 3 4 5, threshold 3
    assert run.metrics["on_topic.score"]["pass_rate"] == pytest.approx(3 / 5)
    stricter = metric.read_text().replace("threshold: 3", "threshold: 5")
    metric.write_text(
        stricter.replace("maximum: 5", "maximum: 4").replace("threshold: 5", "threshold: 4")
    )
    again = rescore(run.directory)
    found = again.metrics["on_topic.score"]
    assert server.count == 5
    assert (found["scored"], found["invalid"], found["mean"]) == (4, 1, 2.5)
    assert found["pass_rate"] == pytest.approx(1 / 4)
    assert found["causes"] == {"out_of_scale": 1}
    assert again.header["rescored_from"] == str(run.directory)
    assert run.metrics["on_topic.score"]["scored"] == 5


def test_a_prompt_that_now_says_something_else_has_no_reply(
    metric: Path, server: JudgeServer, tmp_path: Path
) -> None:
    run = evaluate(runs.rows(3), [metric], server)
    runs.write_metric(tmp_path, extra="Be strict.")
    found = rescore(run.directory).metrics["on_topic.score"]
    assert (found["scored"], found["error"], found["causes"]) == (0, 3, {"not_recorded": 3})
    assert server.count == 3


def test_steps_are_read_again_from_their_replies(server: JudgeServer) -> None:
    server.reply = completion(json.dumps({"reason": "It helps.", "verdict": "yes"}))
    rows = [{"query": "q", "ground_truth": "t", "context": ["a", "b"]}]
    run = evaluate(rows, ["context_precision"], server, reask=0)
    before = run.metrics
    asked = server.count
    again = rescore(run.directory)
    assert server.count == asked
    assert again.metrics == before
