"""A callable that declares no scale and tells its verdict and threshold with every row."""

from __future__ import annotations

from typing import Any

import pytest

import assay
from assay.run.progress import Silent

pytestmark = pytest.mark.usefixtures("folder")
ROWS = [{"harm": harm} for harm in (0, 2, 3, 5)]


def safe(harm: int) -> dict[str, Any]:
    verdict = "pass" if harm <= 2 else "fail"
    return {"level": "told", "level_score": harm, "level_result": verdict, "level_threshold": 2}


def test_the_rows_settle_the_scale() -> None:
    run = assay.evaluate(ROWS, {"safe": safe}, progress=Silent())
    output = run.outputs["safe"]["level"]
    assert (output.type, output.threshold, output.direction) == ("number", 2, "decrease")
    assert run.evaluators["safe"]["scored"] == ["level"]
    found = run.metrics["safe.level"]
    assert (found["mean"], found["pass_rate"]) == (2.5, 0.5)
    assert [row["outputs.safe.level_result"] for row in run.rows()] == [
        *("pass", "pass", "fail", "fail")
    ]


def test_a_resumed_run_settles_it_again() -> None:
    def broken(harm: int) -> dict[str, Any]:
        if harm > 2:
            raise ValueError("not yet")
        return safe(harm)

    first = assay.evaluate(ROWS, {"safe": broken}, progress=Silent())
    assert first.metrics["safe.level"]["pass_rate"] == 1.0
    run = assay.evaluate(ROWS, {"safe": safe}, progress=Silent(), resume=first.directory)
    assert run.metrics["safe.level"]["pass_rate"] == 0.5


def test_a_callable_that_tells_no_verdict_declares_nothing() -> None:
    run = assay.evaluate(ROWS, {"plain": lambda harm: harm}, progress=Silent())
    assert run.outputs["plain"] == {}
    assert run.metrics["plain.plain"]["pass_rate"] is None
