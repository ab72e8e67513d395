"""How a Foundry project compares runs: a paired t-test over rows that both runs scored."""

from __future__ import annotations

import math
from typing import Any

Json = dict[str, Any]

ALPHA = 0.05


def compare_runs(
    criteria: list[Json], items: dict[str, list[Json]], baseline: str, treatments: list[str]
) -> Json:
    """The result of a comparison. items: the output items of each run."""
    comparisons = []
    for criterion in criteria:
        scores = {run: _scores(items[run], criterion["name"]) for run in (baseline, *treatments)}
        comparisons.append(
            {
                "testingCriteria": criterion["name"],
                "metric": "result" if criterion["type"] == "azure_ai_evaluator" else "score",
                "evaluator": criterion.get("evaluator_name", criterion["type"]),
                "baselineRunSummary": _summary(baseline, scores[baseline]),
                "compareItems": [_item(run, scores[baseline], scores[run]) for run in treatments],
            }
        )
    return {"type": "EvaluationComparison", "method": "PairedTTest", "comparisons": comparisons}


def _scores(items: list[Json], criterion: str) -> dict[int, float]:
    """Row to score, where there is one."""
    return {
        item["datasource_item_id"]: float(result["score"])
        for item in items
        for result in item["results"]
        if result["name"] == criterion and result["status"] == "completed"
    }


def _summary(run: str, scores: dict[int, float]) -> Json:
    from scipy import stats

    values = list(scores.values())
    return {
        "runId": run,
        "sampleCount": len(values),
        "average": math.fsum(values) / len(values) if values else 0.0,
        "standardDeviation": float(stats.tstd(values)) if len(values) > 1 else 0.0,
    }


def _item(run: str, before: dict[int, float], after: dict[int, float]) -> Json:
    from scipy import stats

    rows = sorted(before.keys() & after.keys())
    pairs = [(before[row], after[row]) for row in rows]
    changes = {round(new - old, 9) for old, new in pairs}
    delta = math.fsum(new - old for old, new in pairs) / len(pairs) if pairs else 0.0
    if len(changes) > 1:
        p = float(stats.ttest_rel([new for _, new in pairs], [old for old, _ in pairs]).pvalue)
    else:  # all rows moved alike, for which the test is not made
        p = 0.0 if changes - {0.0} else 1.0
    if len(pairs) < 2:
        effect = "TooFewSamples"
    elif p >= ALPHA:
        effect = "Inconclusive"
    else:
        effect = "Improved" if delta > 0 else "Degraded"
    return {
        "treatmentRunId": run,
        "treatmentRunSummary": _summary(run, after),
        "deltaEstimate": delta,
        "pValue": p,
        "treatmentEffect": effect,
    }
