"""Rows as the page holds them: a short line each for the table, and the whole in blocks.

A short line is `[row, id, texts, cells]`, a cell `[value, state, result, bars]`. The blocks
are read by the page when a row is opened or searched, so that it opens at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from assay.metric.columns import FAMILIES
from assay.metric.score import reason_of
from assay.report.entry import STATES, Entry, by_evaluator, entry_of
from assay.report.messages import Messages, RowTexts
from assay.report.page import data_block, rows_block
from assay.report.survey import Survey, chosen_records
from assay.run.record import Run

BLOCK = 200
"""Rows in a block."""

PREVIEW = 140
"""Characters of a text that the table shows."""

_USUAL = {"attempts": 1, "finish_reason": "stop", "cached": False, "note": None, "inputs": None}
"""What a call is not told to be: it is what nearly all of them are."""


class Rows:
    """Writes the chosen rows. `lines` is complete when `blocks` has been read to its end."""

    def __init__(self, run: Run, survey: Survey, chosen: Sequence[int]) -> None:
        self.run = run
        self.survey = survey
        self.chosen = chosen
        self.lines: list[Any] = []
        self.texts: list[str] = []
        self.previews: list[str] = []

    def blocks(self) -> Iterator[bytes]:
        """The data blocks of the page, the short lines last."""
        messages = Messages(self.run)
        histograms = [self.survey.histogram(metric) for metric in self.survey.metrics]
        block: list[Any] = []
        for number, line, records in chosen_records(self.run, self.chosen):
            columns = {**line["columns"], **(line.get("target") or {})}
            if not self.previews:
                self.previews = preview_columns(self.run, columns)
            grouped = by_evaluator(self.run, records)
            cells = []
            for metric, histogram in zip(self.survey.metrics, histograms, strict=True):
                entry = entry_of(metric, grouped[metric.evaluator])
                cells.append(cell(entry, [histogram.place(v) for v in entry.verdicts]))
            texts = [preview(columns.get(name)) for name in self.previews]
            self.lines.append([number, identity(line), texts, cells])
            block.append(self._whole(line, records, RowTexts(columns), messages))
            if len(block) == BLOCK:
                yield rows_block(block)
                block = []
        if block:
            yield rows_block(block)
        yield data_block(messages.texts, "texts")
        yield data_block({"previews": self.previews, "rows": self.lines}, "lines")

    def _whole(
        self,
        line: Mapping[str, Any],
        records: Sequence[Mapping[str, Any] | None],
        row: RowTexts,
        messages: Messages,
    ) -> dict[str, Any]:
        found = {
            "hash": line.get("hash"),
            "columns": line["columns"],
            "target": line.get("target"),
            "problem": line.get("target_error"),
            "note": line.get("note"),
            "scores": [record and self._score(record, row, messages) for record in records],
        }
        return {key: value for key, value in found.items() if value is not None}

    def _score(
        self, record: Mapping[str, Any], row: RowTexts, messages: Messages
    ) -> dict[str, Any]:
        name = record["evaluator"]
        calls = record.get("calls") or []
        outputs = record.get("outputs") or {}
        declared = self.run.outputs[name]
        sent = messages.of(name, calls, row)
        found = {
            "status": STATES.index(record["status"]),
            "cause": record.get("cause"),
            "message": record.get("message"),
            "outputs": outputs,
            "results": {
                key: result
                for key, value in outputs.items()
                if key in declared and (result := declared[key].result(value))
            },
            "reason": record.get("reason") or reason_of(outputs),
            "calls": [_call(c, told) for c, told in zip(calls, sent, strict=True)],
            "evidence": record.get("evidence"),
        }
        return {key: value for key, value in found.items() if value or value == 0}


def _call(call: Mapping[str, Any], sent: Any) -> dict[str, Any]:
    told = {key: value for key, value in call.items() if key != "messages_sha"}
    for key, usual in _USUAL.items():
        if told.get(key) == usual:
            told.pop(key, None)
    return {**told, "messages": sent}


def cell(entry: Entry, places: Sequence[int | None] = ()) -> list[Any]:
    """An entry as the table holds it; trailing nothings are left out."""
    bars = sorted({place for place in places if place is not None})
    found = [entry.value, STATES.index(entry.status), entry.result, bars]
    if isinstance(entry.value, float):
        found[0] = round(entry.value, 6)
    while found and found[-1] in (None, []):
        found.pop()
    return found


def identity(line: Mapping[str, Any]) -> str | None:
    """The row's own id; None where it has none but its content."""
    found = line.get("id")
    return None if found is None or found == line.get("hash") else str(found)


def preview(value: Any) -> str:
    """The start of a value, on one line."""
    if isinstance(value, list):
        value = " / ".join(str(item) for item in value[:3])
    text = " ".join(str("" if value is None else value)[: 2 * PREVIEW].split())
    return text if len(text) <= PREVIEW else f"{text[: PREVIEW - 1]}…"


def preview_columns(run: Run, columns: Mapping[str, Any]) -> list[str]:
    """The two columns that tell rows apart: what was asked and what was answered, else the
    first texts."""
    used = [c for found in run.evaluators.values() for c in (found.get("columns") or {}).values()]
    known = list(dict.fromkeys(name for name in (*used, *columns) if name in columns))
    chosen = []
    for family in ("query", "response"):
        chosen += [name for name in FAMILIES[family] if name in known][:1]
    texts = [name for name in known if isinstance(columns[name], str) and name != "id"]
    return list(dict.fromkeys((*chosen, *texts)))[:2]
