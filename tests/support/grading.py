"""How a Foundry project grades: code is run, templates are filled, rows are counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]


def run_criteria(criteria: list[Json], rows: list[Json], code: Callable[[Json], str]) -> list[Json]:
    """The output items of a run: every criterion on every row."""
    graders = {c["name"]: _compiled(code(c)) for c in criteria if c["type"] == "azure_ai_evaluator"}
    items = []
    for place, row in enumerate(rows):
        results = [
            _string_check(c, row) if c["type"] == "string_check" else _code(c, row, graders)
            for c in criteria
        ]
        items.append(
            {
                "id": f"item_{place}",
                "object": "eval.run.output_item",
                "datasource_item_id": place,
                "datasource_item": row,
                "results": results,
                "status": "pass" if _row_outcome(results) == "passed" else "fail",
                "sample": None,
            }
        )
    return items


def _compiled(source: str) -> Callable[[Json, Json], Any]:
    space: Json = {}
    exec(compile(source, "grader", "exec"), space)
    grade: Callable[[Json, Json], Any] = space["grade"]
    return grade


def _code(criterion: Json, row: Json, graders: dict[str, Callable[[Json, Json], Any]]) -> Json:
    mark = float(criterion["initialization_parameters"]["pass_threshold"])
    result = {
        "type": "azure_ai_evaluator",
        "name": criterion["name"],
        "metric": "result",
        "threshold": mark,
        "reason": None,
    }
    try:
        score = float(graders[criterion["name"]]({}, row))
        if not 0.0 <= score <= 1.0:
            raise ValueError(f"{score} is not within 0 to 1")
    except Exception as error:
        failed = {"error": {"code": type(error).__name__, "message": str(error)}}
        return {**result, "score": 0.0, "passed": False, "status": "error", "sample": failed}
    passed = score >= mark
    label = "pass" if passed else "fail"
    return {**result, "score": score, "passed": passed, "label": label, "status": "completed"}


def _string_check(criterion: Json, row: Json) -> Json:
    value: Any = row
    for part in criterion["input"].strip("{}").split(".")[1:]:
        value = value.get(part, "") if isinstance(value, dict) else ""
    passed = str(value) == criterion["reference"]
    return {
        "type": "string_check",
        "name": criterion["name"],
        "score": 1.0 if passed else 0.0,
        "passed": passed,
        "status": "completed",
    }


def _row_outcome(results: list[Json]) -> str:
    """Passed if one passed and none failed; those in error do not count."""
    sound = [r for r in results if r["status"] == "completed"]
    if any(not r["passed"] for r in sound):
        return "failed"
    return "passed" if sound else "errored"


def result_counts(items: list[Json]) -> Json:
    counts = Counter(_row_outcome(item["results"]) for item in items)
    names = ("passed", "failed", "errored", "skipped")
    return {"total": len(items), **{name: counts[name] for name in names}}
