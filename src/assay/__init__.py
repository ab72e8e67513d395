"""assay: LLM evaluation metrics as .prompty files, with numbers that are right or absent."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from assay import prompty
    from assay.errors import AssayError
    from assay.judge.base import Judge, Reply
    from assay.judge.scripted import ScriptedJudge
    from assay.metric.custom import metric
    from assay.metric.evaluator import Evaluator
    from assay.metric.registry import load
    from assay.metric.score import Score
    from assay.run.evaluate import evaluate
    from assay.run.record import Run

_HOMES = {
    "AssayError": "assay.errors",
    "Evaluator": "assay.metric.evaluator",
    "Judge": "assay.judge.base",
    "Reply": "assay.judge.base",
    "Run": "assay.run.record",
    "Score": "assay.metric.score",
    "ScriptedJudge": "assay.judge.scripted",
    "evaluate": "assay.run.evaluate",
    "load": "assay.metric.registry",
    "metric": "assay",
    "prompty": "assay",
}

__all__ = [
    "AssayError",
    "Evaluator",
    "Judge",
    "Reply",
    "Run",
    "Score",
    "ScriptedJudge",
    "__version__",
    "evaluate",
    "load",
    "metric",
    "prompty",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `import assay` costs next to nothing."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'assay' has no attribute {name!r}")
    if home == "assay":
        value: Any = import_module(f"assay.{name}")
    else:
        value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
