"""What a page says of a run beside its numbers: how it ended, and how it was made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.errors import RunError
from assay.report import words
from assay.run.journal import LOCK, Lock
from assay.run.record import Run

_SHORT_HASH = 12


def state_of(run: Run) -> str:
    """`finished`, `interrupted`, `budget`; `going`, or `broken` where nobody writes it any more."""
    status = str(run.header.get("status") or "finished")
    if status != "running":
        return status
    return "going" if is_going(run) else "broken"


def is_going(run: Run) -> bool:
    """Whether a process is writing the run now: it holds the lock."""
    if not (run.directory / LOCK).exists():
        return False
    try:
        Lock(run.directory).release()
    except RunError:
        return True
    except OSError:  # a folder that cannot be written is not being written
        return False
    return False


def facts(run: Run) -> list[tuple[str, str]]:
    """The line under the title: (what, value)."""
    header = run.header
    took = words.duration(header.get("started"), header.get("ended"))
    found = [("judge", ", ".join(header.get("judges") or {}) or "none")]
    found.append(("data", str(header["data"].get("name"))))
    found.append(("rows", f"{header.get('rows') or 0:,}"))
    if int(header.get("iterations", 1)) > 1:
        found.append(("iterations", str(header["iterations"])))
    if header.get("target"):
        found.append(("target", str(header["target"].get("name"))))
    found.append(("started", words.date(header.get("started"))))
    if took:
        found.append(("took", took))
    return found


def sections(run: Run, summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """How the run was made, as titled lists of (name, value)."""
    header = run.header
    data = {**header["data"], **({"target": header["target"]} if header.get("target") else {})}
    found = [{"title": "Use", "entries": _use(summary)}]
    found.append({"title": "Data", "entries": _entries(data)})
    for name, judge in (header.get("judges") or {}).items():
        entries = _entries({k: v for k, v in judge.items() if k != "judge"})
        found.append({"title": f"Judge {name}", "entries": entries})
    for name, entry in run.evaluators.items():
        found.append({"title": f"Metric {name}", "entries": _evaluator(entry)})
    settings = {
        **(header.get("options") or {}),
        "iterations": header.get("iterations"),
        "reask": header.get("reask"),
        "assay": header.get("assay"),
        "python": header.get("python"),
        "directory": str(run.directory),
    }
    if header.get("rescored"):
        settings["rescored"] = header["rescored"]
    found.append({"title": "Settings", "entries": _entries(settings)})
    return found


def prompt_texts(run: Run) -> list[tuple[str, str]]:
    """(name, text) of every file the run was made with."""
    found = []
    for name, entry in run.evaluators.items():
        if entry.get("text"):
            found.append((str(entry.get("path") or name), str(entry["text"])))
        for path, prompt in (entry.get("prompts") or {}).items():
            found.append((str(path), str(prompt.get("text"))))
    return found


def _use(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    tokens = summary["tokens"]
    found = [("calls", f"{summary['calls']:,}")]
    if summary["cached_calls"]:
        found.append(("of them from the cache", f"{summary['cached_calls']:,}"))
    found.append(("tokens sent", f"{tokens['prompt']:,}"))
    found.append(("tokens received", f"{tokens['completion']:,}"))
    if tokens.get("reasoning"):
        found.append(("of them reasoning", f"{tokens['reasoning']:,}"))
    cost = summary["cost"]
    found.append(("cost", "no price known" if cost is None else f"${cost:,.2f}"))
    if summary.get("no_price_for"):
        found.append(("no price for", ", ".join(summary["no_price_for"])))
    return found


def _evaluator(entry: Mapping[str, Any]) -> list[tuple[str, str]]:
    aliases = entry.get("aliases") or {}
    columns = [
        f"{name} from {column}{' (by its family)' if name in aliases else ''}"
        for name, column in (entry.get("columns") or {}).items()
        if name != column
    ]
    told = {
        key: value
        for key, value in entry.items()
        if key not in ("text", "outputs", "scored", "columns", "aliases", "prompts")
    }
    found = _entries(told)
    if columns:
        found.append(("columns", "; ".join(columns)))
    for path, prompt in (entry.get("prompts") or {}).items():
        found.append((str(path), f"sha256 {str(prompt.get('sha256'))[:_SHORT_HASH]}"))
    return found


def _entries(told: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names as words; what is not said is left out, except that nothing was rejected."""
    found = []
    for key, value in told.items():
        if value is None or (value == {} and key != "rejected_parameters"):
            continue
        found.append((words.cause(key), words.plain(value)))
    return found
