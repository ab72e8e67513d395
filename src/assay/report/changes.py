"""What is different between two runs beside their scores."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.prompty import Output
from assay.report import about, words
from assay.run.record import Run


@dataclass(frozen=True, slots=True)
class Setting:
    """Something the runs were made with that is not the same in all. `values`: one a run."""

    name: str
    values: list[str]


@dataclass(frozen=True, slots=True)
class PromptDiff:
    """The lines in which a prompt of another run differs from the first run's."""

    file: str
    run: int
    lines: list[str]


def settings(runs: Sequence[Run]) -> list[Setting]:
    """Every setting that differs, by name; of metrics only those that all runs have."""
    shared = set.intersection(*(set(run.evaluators) for run in runs))
    told = [dict(_settings(run, shared)) for run in runs]
    names = list(dict.fromkeys(name for entry in told for name in entry))
    found = [Setting(name, [entry.get(name, words.NOTHING) for entry in told]) for name in names]
    return [entry for entry in found if len(set(entry.values)) > 1]


def prompt_diffs(runs: Sequence[Run]) -> list[PromptDiff]:
    """Diffs of every prompt that the first run and another one both have."""
    first = _texts(runs[0])
    found = []
    for place, run in enumerate(runs[1:], 1):
        for key, (file, text) in _texts(run).items():
            before = first.get(key)
            if before is not None and before[1] != text:
                found.append(PromptDiff(file, place, _diff(before, (file, text))))
    return found


def scale_difference(one: Output | None, other: Output | None) -> str | None:
    """Why two runs' numbers of a metric cannot be compared; None where they can."""
    if one is None or other is None:
        return None  # undeclared in one of them: nothing says that it is another scale
    for what, a, b in (
        ("scale", one.scale or one.type, other.scale or other.type),
        ("levels", _levels(one), _levels(other)),
        ("direction", one.direction, other.direction),
    ):
        if a != b:
            return f"its {what} is {a} in the first run and {b} in the other"
    return None


def warnings(runs: Sequence[Run], shared: Sequence[str]) -> list[str]:
    """What can move a difference beside the application: sentences, most serious first."""
    found = []
    base = runs[0]
    for run in runs[1:]:
        for name in shared:
            one, other = base.evaluators[name], run.evaluators[name]
            judge, other_judge = one.get("judge"), other.get("judge")
            if judge != other_judge:
                found.append(
                    f"{name} was judged by {judge} in {base.name}, by {other_judge} in "
                    f"{run.name}: a difference may come from the judge."
                )
            if one.get("fingerprint") != other.get("fingerprint"):
                found.append(
                    f"{name} is another metric in {run.name}: what the judge sees, or "
                    "how its reply is read, was changed."
                )
            found += _thresholds(base, run, name)
        state = about.state_of(run)
        if state != "finished":
            found.append(f"{run.name} is not finished ({words.RUN_WORDS.get(state, state)}).")
    if about.state_of(base) != "finished":
        found.insert(0, f"{base.name} is not finished.")
    return list(dict.fromkeys(found))


def _thresholds(base: Run, run: Run, name: str) -> Iterator[str]:
    for output, declared in base.outputs[name].items():
        other = run.outputs[name].get(output)
        if other is not None and other.threshold != declared.threshold:
            yield (
                f"{name}.{output} passes from {words.number(declared.threshold)} in {base.name}, "
                f"from {words.number(other.threshold)} in {run.name}: rows may flip for that "
                "alone."
            )


def _levels(output: Output) -> str:
    return ", ".join(map(str, output.levels)) or "not listed"


def _settings(run: Run, shared: Collection[str]) -> Iterator[tuple[str, str]]:
    header = run.header
    yield "assay", str(header.get("assay"))
    yield "python", str(header.get("python"))
    for name, value in header["data"].items():
        yield f"data {name}", words.plain(value)
    for name in ("rows", "iterations", "reask"):
        yield name, words.plain(header.get(name))
    yield "target", words.plain(header.get("target"))
    for name, judge in (header.get("judges") or {}).items():
        for key, value in judge.items():
            yield f"judge {name}: {words.cause(key)}", words.plain(value)
    for name, value in (header.get("options") or {}).items():
        yield f"option {name}", words.plain(value)
    for name in (name for name in run.evaluators if name in shared):
        entry = run.evaluators[name]
        yield f"{name}: file hash", str(entry.get("sha256"))[:12]
        yield f"{name}: judge", words.plain(entry.get("judge"))
        yield f"{name}: columns", words.plain(entry.get("columns"))
        for output, declared in (entry.get("outputs") or {}).items():
            plain = {k: v for k, v in declared.items() if k not in ("levels", "type", "is_primary")}
            if plain:
                yield f"{name}.{output}", words.plain(plain)


def _texts(run: Run) -> dict[tuple[str, str], tuple[str, str]]:
    """(evaluator, file name) to (path, text)."""
    found = {}
    for name, entry in run.evaluators.items():
        if entry.get("text"):
            found[name, ""] = (str(entry.get("path") or name), str(entry["text"]))
        for path, prompt in (entry.get("prompts") or {}).items():
            short = str(path).replace("\\", "/").rpartition("/")[2]
            found[name, short] = (str(path), str(prompt.get("text")))
    return found


def _diff(before: tuple[str, str], after: tuple[str, str]) -> list[str]:
    one, other = before[1].splitlines(), after[1].splitlines()
    return list(difflib.unified_diff(one, other, before[0], after[0], lineterm="", n=2))


def plain_setting(entry: Setting) -> Mapping[str, Any]:
    """For `--json`."""
    return {"name": entry.name, "values": entry.values}
