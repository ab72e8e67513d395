"""A run where there is no browser: bars of block characters, and Markdown for pull requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from assay.metric.score import STATUSES
from assay.report import about, words
from assay.report.survey import Survey
from assay.run.record import Run

_BLOCKS = "▁▂▃▄▅▆▇█"
_PLAIN = "123456789"

MOST_BARS = 12


def level_bars(run: Run, *, blocks: bool = True) -> dict[str, str]:
    """Metric key to one character a level, as high as it was given often; a space for never.

    blocks: in block characters; else in digits, for consoles that have no others.
    """
    survey = Survey(run)
    return {
        metric.key: bar([b.count for b in survey.histogram(metric).bins], blocks=blocks)
        for metric in survey.metrics
    }


def bar(counts: Sequence[int], *, blocks: bool = True) -> str:
    """Counts as one character each; "" for none, or for more than there is room for."""
    most = max(counts, default=0)
    if not most or len(counts) > MOST_BARS:
        return ""
    signs = _BLOCKS if blocks else _PLAIN
    return "".join(
        signs[max(1, round(count / most * len(signs))) - 1] if count else ("·" if blocks else "0")
        for count in counts
    )


def speaks_unicode(encoding: str | None) -> bool:
    """Whether a console of that encoding can show block characters."""
    return (encoding or "").lower().replace("-", "").startswith(("utf8", "utf16"))


def summary_markdown(run: Run) -> str:
    """The summary as a Markdown table, for a pull request or a job's summary page."""
    survey = Survey(run)
    metrics = survey.summary["metrics"]
    shown = [s for s in STATUSES if s == "scored" or any(m[s] for m in metrics.values())]
    heads = ["metric", "mean", "95% interval", "pass", "levels", "rows", *map(words.state, shown)]
    lines = [_row(heads)]
    lines.append(_row(["---"] + ["---:"] * (len(heads) - 1)))
    for metric in survey.metrics:
        found = metrics[metric.key]
        counts = [entry.count for entry in survey.histogram(metric).bins]
        cells = [
            _escaped(metric.label),
            words.mean(found["mean"]),
            words.interval(found["ci95"]),
            words.percent(found["pass_rate"]),
            bar(counts) or words.NOTHING,
            f"{found['n']:,}",
            *(f"{found[status]:,}" for status in shown),
        ]
        lines.append(_row(cells))
    return "\n".join([_title(run), "", *lines, "", *_after(run, survey, metrics)]) + "\n"


def _title(run: Run) -> str:
    state = about.state_of(run)
    ended = "" if state == "finished" else f" ({words.RUN_WORDS.get(state, state)})"
    return f"### {_escaped(run.name)}{ended}"


def _after(run: Run, survey: Survey, metrics: Mapping[str, Any]) -> Iterable[str]:
    """What must stand below the numbers."""
    for metric in survey.metrics:
        causes = metrics[metric.key].get("causes")
        if causes:
            told = ", ".join(f"{count:,} {words.cause(c)}" for c, count in causes.items())
            yield f"{_escaped(metric.label)}: without a score {_escaped(told)}.  "
    if survey.found < survey.expected:
        yield f"{survey.found:,} of {survey.expected:,} scores are there.  "
    judges = ", ".join(run.header.get("judges") or {}) or "none"
    calls, tokens = survey.summary["calls"], survey.summary["tokens"]["total"]
    yield f"Judge {_escaped(judges)}, {calls:,} calls, {tokens:,} tokens."


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """Text that Markdown and the HTML in it take as text."""
    plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    for sign in "\\`*_[]|~":
        plain = plain.replace(sign, f"\\{sign}")
    return plain
