"""A run as JUnit XML: what every CI server shows. One suite a metric, one case a row."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from assay.report import words
from assay.report.entry import Entry, Metric, by_evaluator, entry_of
from assay.report.rows import identity
from assay.report.survey import Survey
from assay.run.record import Run

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def parts(run: Run) -> Iterator[str]:
    """The file, part by part; the rows are read once for each metric, and none is held."""
    metrics = Survey(run).metrics
    counts = {
        metric.key: Counter(_verdict(e) for e, *_ in _cases(run, metric)) for metric in metrics
    }
    whole = sum(counts.values(), Counter[str]())
    yield '<?xml version="1.0" encoding="utf-8"?>\n'
    yield f"<testsuites name={_quoted(run.name)}{_totals(whole)}>\n"
    for metric in metrics:
        yield f"<testsuite name={_quoted(metric.key)}{_totals(counts[metric.key])}>\n"
        for entry, name, message in _cases(run, metric):
            yield _case(metric, entry, name, message)
        yield "</testsuite>\n"
    yield "</testsuites>\n"


def _cases(run: Run, metric: Metric) -> Iterator[tuple[Entry, str, str]]:
    """(entry, name, what the judge or the run says of it) of every row."""
    for number, (line, records) in enumerate(run.records()):
        found = by_evaluator(run, records)[metric.evaluator]
        entry = entry_of(metric, found)
        told = next((r for r in found if r is not None and r["status"] == entry.status), {})
        message = told.get("message") or told.get("reason") or ""
        reasons = [v for v in (told.get("outputs") or {}).values() if isinstance(v, str)]
        yield entry, identity(line) or f"row {number + 1}", str(message or " ".join(reasons))


def _verdict(entry: Entry) -> str:
    if entry.status in ("not_applicable", "missing"):
        return "skipped"
    if entry.status != "scored":
        return "errors"
    return "failures" if entry.result == "fail" else "passed"


def _totals(counts: Counter[str]) -> str:
    told = {"tests": counts.total(), **{k: counts[k] for k in ("failures", "errors", "skipped")}}
    return "".join(f' {name}="{count}"' for name, count in told.items())


def _case(metric: Metric, entry: Entry, name: str, message: str) -> str:
    start = f"<testcase classname={_quoted(metric.key)} name={_quoted(name)}"
    verdict = _verdict(entry)
    if verdict == "passed":
        return f"{start}/>\n"
    cause = words.cause(entry.cause) if entry.cause else words.state(entry.status)
    if verdict == "skipped":
        return f"{start}><skipped message={_quoted(f'{cause}: {message}')}/></testcase>\n"
    if verdict == "errors":
        kind = _quoted(entry.status)
        told = f"<error type={kind} message={_quoted(cause)}>{_text(message)}</error>"
    else:
        value = f"{metric.label} is {words.number(entry.value)}"
        told = f'<failure type="fail" message={_quoted(value)}>{_text(message)}</failure>'
    return f"{start}>{told}</testcase>\n"


def _quoted(text: str) -> str:
    return quoteattr(_NO_XML.sub("\ufffd", text))


def _text(text: str) -> str:
    return escape(_NO_XML.sub("\ufffd", text))
