"""The report of one run: an HTML file to look at, to keep and to send."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay.report import about, words
from assay.report.chart import chart_of
from assay.report.entry import STATES, Metric
from assay.report.messages import Messages
from assay.report.page import data_block, write_page
from assay.report.rows import BLOCK, Rows
from assay.report.survey import Survey
from assay.run.journal import ROWS, SCORES
from assay.run.record import Run

REPORT = "report.html"

MOST_ROWS = 10_000
MOST_BYTES = 60_000_000
FEWEST_ROWS = 200

_SCRIPTS = ("common.js", "table.js", "report.js")


def write_report(run: Run, path: str | Path | None = None, *, home: str | None = None) -> Path:
    """Write the report of a run, finished or not; in the run directory where no path is given.

    home: address of the list of runs, where the page is served beside one.
    Raises RunError where the file cannot be written.
    """
    target = Path(path) if path is not None else run.directory / REPORT
    survey = Survey(run)
    chosen = survey.choose(room_for(run, survey.rows))
    rows = Rows(run, survey, chosen)
    blocks = [data_block(_head(run, survey), "head")]
    context = {
        "title": run.name,
        "home": home,
        "run": run,
        "state": about.state_of(run),
        "facts": about.facts(run),
        "notes": _notes(run, survey, len(chosen)),
        "cards": _cards(run, survey),
        "sections": about.sections(run, survey.summary),
        "prompts": about.prompt_texts(run),
        "states": STATES,
    }

    def all_blocks() -> Any:
        yield from blocks
        yield from rows.blocks()

    return write_page(target, "report.html", context, all_blocks(), scripts=_SCRIPTS)


def room_for(run: Run, rows: int) -> int:
    """How many rows a page takes, so that it stays a file one can send and open."""
    files = (run.directory / name for name in (ROWS, SCORES))
    size = sum(file.stat().st_size for file in files if file.exists())
    fitting = int(MOST_BYTES / max(size / max(rows, 1), 1))
    return min(MOST_ROWS, max(fitting, FEWEST_ROWS))


def _head(run: Run, survey: Survey) -> dict[str, Any]:
    """What the page's script must know beside the rows."""
    return {
        "metrics": [_metric_head(survey, metric) for metric in survey.metrics],
        "block": BLOCK,
        "keys": run.keys,
        "states": [words.state(name) for name in STATES],
        "iterations": int(run.header.get("iterations", 1)),
    }


def _metric_head(survey: Survey, metric: Metric) -> dict[str, Any]:
    output = metric.output
    bins = survey.histogram(metric).bins
    return {
        "label": metric.label,
        "evaluator": metric.evaluator,
        "output": output.name,
        "threshold": output.threshold,
        "direction": output.direction,
        "scale": output.scale,
        "levels": {str(value): text for value, text in output.levels.items() if text},
        "bars": [entry.label for entry in bins],
    }


def _cards(run: Run, survey: Survey) -> list[dict[str, Any]]:
    """What each metric's card shows."""
    prompts = Messages(run)
    cards = []
    for place, metric in enumerate(survey.metrics):
        found = survey.summary["metrics"][metric.key]
        bins = survey.histogram(metric).bins
        cards.append(
            {
                "place": place,
                "metric": metric,
                "found": found,
                "description": prompts.description(metric.evaluator),
                "chart": chart_of(bins, found),
                "legend": [entry for entry in bins if entry.text],
                "counts": [(s, found[s]) for s in STATES if found.get(s)],
                "waiting": survey.rows_expected - found["n"],
                "passes": _passes(metric),
            }
        )
    return cards


def _passes(metric: Metric) -> str:
    """When a value passes, in words."""
    output = metric.output
    if output.direction == "neutral" or (output.threshold is None and output.type != "boolean"):
        return ""
    if output.threshold is None:
        return "yes" if output.direction == "increase" else "no"
    bound = "from" if output.direction == "increase" else "up to"
    return f"{bound} {words.number(output.threshold)}"


def _notes(run: Run, survey: Survey, shown: int) -> list[str]:
    """Sentences that must be read before the numbers."""
    notes = [str(note) for note in run.header.get("notes") or ()]
    state = about.state_of(run)
    if state != "finished":
        why = {
            "interrupted": "This run was interrupted",
            "budget": "This run stopped when its budget was used up",
            "going": "This run is still going",
        }.get(state, "This run ended without a word, as a killed process does")
        left = f"{survey.found:,} of {survey.expected:,} scores are there"
        finish = "" if state == "going" else f" Finish it with: assay run --resume {run.directory}"
        notes.append(f"{why}: {left}, and every number below is made from those.{finish}")
    if shown < survey.rows:
        notes.append(
            f"The table holds {shown:,} of {survey.rows:,} rows: those without a score or with "
            "a fail first, and an even sample of the others. All numbers and histograms are "
            "made from every row; the run directory holds them all."
        )
    return notes
