"""Both directions of interop with azure-ai-evaluation, where the package is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.run.progress import Silent
from tests.azure.conftest import SCORES, replies, write_metric

evaluation = pytest.importorskip(
    "azure.ai.evaluation", reason="azure-ai-evaluation is not installed: interop is not tried"
)
pytestmark = pytest.mark.filterwarnings("ignore")


def data(tmp_path: Path, column: str = "question") -> str:
    lines = [{column: question, "reference": "the capital"} for question in SCORES]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def metric(name: str) -> Any:
    return assay.load(write_metric(name), judge=assay.ScriptedJudge(replies(name)))


@pytest.mark.parametrize("door", ["sync", "async"])
def test_our_evaluators_in_their_evaluate(tmp_path: Path, door: str) -> None:
    chosen = {f"m{n}": metric(f"m{n}") for n in range(12)}
    evaluators = {n: e if door == "sync" else e.acall for n, e in chosen.items()}
    found = evaluation.evaluate(data=data(tmp_path), evaluators=evaluators)
    for name in chosen:
        assert found["metrics"][f"{name}.score"] == 3.0
        assert found["metrics"][f"{name}.binary_aggregate"] == 0.6
        assert [row[f"outputs.{name}.score_result"] for row in found["rows"]] == [
            *("fail", "fail", "pass"),
            *("pass", "pass"),
        ]


def test_their_column_mapping(tmp_path: Path) -> None:
    mapping = {"m": {"column_mapping": {"question": "${data.asked}"}}}
    found = evaluation.evaluate(
        data=data(tmp_path, "asked"), evaluators={"m": metric("m")}, evaluator_config=mapping
    )
    assert found["metrics"]["m.score"] == 3.0


def test_their_evaluators_in_ours() -> None:
    f1 = evaluation.F1ScoreEvaluator()

    def f1_score(response: str, ground_truth: str) -> Any:
        return f1(response=response, ground_truth=ground_truth)

    rows = [
        {"response": "the capital is Lima", "ground_truth": "the capital is Lima"},
        {"response": "nobody knows", "ground_truth": "the capital is Lima"},
    ]
    run = assay.evaluate(rows, {"f1": f1_score}, progress=Silent())
    assert [row["outputs.f1.f1_score"] for row in run.rows()] == [1.0, 0.0]
