"""From a name or a path to an evaluator."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

from assay.errors import SetupError
from assay.judge.base import Judge
from assay.metric.builtin import builtin, names
from assay.metric.custom import Evaluates, from_file, from_object, is_python
from assay.metric.evaluator import Evaluator, PromptEvaluator
from assay.metric.metricfile import METRIC_FILE, load_metric
from assay.prompty import load as load_prompty

SUFFIX = ".prompty"


def load(
    source: str | Path | Callable[..., Any] | Evaluator | Evaluates,
    *,
    judge: str | Judge | None = None,
    name: str | None = None,
    **options: Any,
) -> Any:
    """An evaluator from a .prompty file, a name that ships with assay, a callable, an object
    with `evaluate(dataset)`, or the metric of a Python file, `file.py:name`.

    A name is looked for in `./evaluators` first, so that an edited copy wins. judge: what
    answers, as in `assay.judge.resolve` with the same further options (`base_url`, ...); left
    out, the file, ASSAY_JUDGE and assay.toml are asked when the first row is scored.
    Raises SetupError for a name that is not known, PromptyError for a file that cannot be used.
    """
    chosen = None
    if judge is not None or options:
        from assay.judge.limits import Limited
        from assay.judge.resolve import resolve

        chosen = Limited(resolve(judge, **options))
    if isinstance(source, str | Path):
        if is_python(str(source)):
            return from_file(str(source))
        path = _file(source)
        if path is None:
            return builtin(str(source)) or _unknown(source)
        if path.name == METRIC_FILE:
            return load_metric(path, chosen)
        return PromptEvaluator(load_prompty(path), chosen)
    if hasattr(source, "score") and hasattr(source, "inputs"):
        return replace(source, judge=chosen) if chosen and is_dataclass(source) else source  # type: ignore[type-var]
    return from_object(source, name)


def find(source: str | Path) -> Path:
    """The file behind a name or a path. Raises SetupError with the nearest names."""
    return _file(source) or _unknown(source)


def _file(source: str | Path) -> Path | None:
    """The file behind a name or a path; None where a name has none."""
    path = Path(source)
    if path.suffix == SUFFIX or path.name == METRIC_FILE or path.is_file():
        if path.is_file():
            return path
        raise SetupError(f"no such file: {path}")
    if (path / METRIC_FILE).is_file():
        return path / METRIC_FILE
    if path.is_dir():
        raise SetupError(f"{path} is a folder without {METRIC_FILE}; name a {SUFFIX} file in it")
    if len(path.parts) == 1:
        for folder in folders():
            for candidate in (folder / f"{source}{SUFFIX}", folder / str(source) / METRIC_FILE):
                if candidate.is_file():
                    return candidate
    return None


def _unknown(source: str | Path) -> Any:
    known = shipped()
    near = difflib.get_close_matches(str(source), known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    raise SetupError(f"no evaluator {str(source)!r}: {hint}")


def folders() -> list[Path]:
    """Where names are looked for: the working folder's own, then what ships with assay."""
    package = Path(__file__).resolve().parents[1]
    places = [Path("evaluators"), package / "evaluators", package.parents[1] / "evaluators"]
    return [place for place in places if place.is_dir()]


def shipped() -> list[str]:
    """The names that can be given instead of a path."""
    files = {path.stem for folder in folders() for path in folder.glob(f"*{SUFFIX}")}
    metrics = {path.parent.name for f in folders() for path in f.glob(f"*/{METRIC_FILE}")}
    return sorted(files | metrics | set(names()))
