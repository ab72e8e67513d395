"""The page that shows runs side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.metric.score import reason_of
from assay.report import about, words
from assay.report.compare import Comparison, MetricComparison, Move, pair_dict
from assay.report.entry import STATES, by_evaluator
from assay.report.page import data_block, rows_block, write_page
from assay.report.report import MOST_ROWS
from assay.report.rows import BLOCK, cell, identity, preview, preview_columns
from assay.run.record import Run

_SCRIPTS = ("common.js", "table.js", "compare.js")


def write_comparison(
    found: Comparison, path: str | Path, *, home: str | None = None, most: int = MOST_ROWS
) -> Path:
    """Write the page. Rows that moved come first where not all fit.

    Raises RunError where the file cannot be written.
    """
    moves = found.moves[:most]
    context = {
        "title": " and ".join(run.name for run in found.runs[:2]),
        "home": home,
        "found": found,
        "labels": labels(found.runs),
        "states": [about.state_of(run) for run in found.runs],
        "matched": _matched(found, len(moves)),
        "rows": [_summary_row(metric) for metric in found.metrics],
        "facts": [dict(about.facts(run)) for run in found.runs],
    }
    return write_page(Path(path), "compare.html", context, _blocks(found, moves), scripts=_SCRIPTS)


def labels(runs: Sequence[Run]) -> list[str]:
    """Names of runs; the directory's where two are called the same."""
    names = [run.name for run in runs]
    return [run.directory.name if names.count(run.name) > 1 else run.name for run in runs]


def _summary_row(metric: MetricComparison) -> dict[str, Any]:
    """One line of the table of means."""
    pairs = [] if metric.problem else [pair_dict(entry) for entry in metric.pairs]
    return {
        "metric": metric.metric,
        "problem": metric.problem,
        "summaries": metric.summaries,
        "pairs": pairs,
        "tones": [_tone(metric, pair) for pair in pairs],
    }


def _tone(metric: MetricComparison, pair: dict[str, Any]) -> str:
    """`better` or `worse` where the interval leaves out nought; "" where nothing is shown."""
    if pair["ci95"] is None or pair["ci95"][0] <= 0 <= pair["ci95"][1]:
        return ""
    direction = metric.metric.output.direction
    if direction == "neutral":
        return ""
    return "better" if (pair["difference"] > 0) == (direction == "increase") else "worse"


def _matched(found: Comparison, shown: int) -> list[str]:
    """How rows were matched, in sentences."""
    keys = found.matching.keys
    by_id = sum(kind == "id" for kind, _, _ in keys)
    how = "by id" if by_id == len(keys) else "by content" if not by_id else "by id or content"
    told = [f"{words.plural(len(keys), 'row')} matched {how}."]
    for label, count in zip(labels(found.runs), found.matching.only, strict=True):
        if count:
            told.append(f"{words.plural(count, 'row')} of {label} not in every other run.")
    if shown < len(keys):
        told.append(f"The table holds the {shown:,} that moved most.")
    return told


def _blocks(found: Comparison, moves: Sequence[Move]) -> Iterator[bytes]:
    """The data of the page: rows in the order of the moves, in blocks."""
    head = {
        "block": BLOCK,
        "runs": labels(found.runs),
        "states": [words.state(name) for name in STATES],
        "metrics": [
            {
                "label": m.metric.label,
                "evaluator": m.metric.evaluator,
                "direction": m.metric.output.direction,
                "problem": m.problem,
            }
            for m in found.metrics
        ],
    }
    yield data_block(head, "head")
    wholes, lines = _read(found, moves)
    previews = preview_columns(found.runs[0], wholes[0]["columns"]) if wholes else []
    rows = []
    for move, whole, line in zip(moves, wholes, lines, strict=True):
        texts = [preview(whole["columns"].get(name)) for name in previews]
        cells = [[cell(entry) for entry in entries] for entries in move.entries]
        rows.append([line["row"], identity(line), texts, cells, round(move.size, 6)])
    for start in range(0, len(wholes), BLOCK):
        yield rows_block(wholes[start : start + BLOCK])
    yield data_block({"previews": previews, "rows": rows}, "lines")


def _read(
    found: Comparison, moves: Sequence[Move]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(all of a row, its line in the first run) for every move."""
    wholes: list[dict[str, Any]] = [{"runs": []} for _ in moves]
    lines: list[dict[str, Any]] = [{} for _ in moves]
    for place, run in enumerate(found.runs):
        wanted = {found.rows_of(move.place)[place]: i for i, move in enumerate(moves)}
        for number, (line, records) in enumerate(run.records()):
            index = wanted.get(number)
            if index is None:
                continue
            if place == 0:
                wholes[index]["columns"] = line["columns"]
                lines[index] = line
            wholes[index]["runs"].append(_side(found, run, line, records))
    return wholes, lines


def _side(
    found: Comparison, run: Run, line: dict[str, Any], records: Sequence[dict[str, Any] | None]
) -> dict[str, Any]:
    """What one run has of a row: what the target gave, and the judge's words."""
    grouped = by_evaluator(run, records)
    names = dict.fromkeys(metric.metric.evaluator for metric in found.metrics)
    told = {
        name: [_words(record) for record in grouped[name] if record is not None] for name in names
    }
    first = found.runs[0] is run
    changed = {} if first else {"columns": line["columns"]}
    return {"target": line.get("target"), "words": told, **changed}


def _words(record: Mapping[str, Any]) -> str:
    reason = record.get("reason") or reason_of(record.get("outputs") or {})
    absent = f"{words.cause(record.get('cause'))}: {record.get('message')}"
    return str(reason or "") if record["status"] == "scored" else absent
