"""docs/metrics.md, written from the metrics themselves.

python -m assay.metric.catalogue > docs/metrics.md
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

from assay.metric.functions import FUNCTIONS
from assay.metric.registry import load, shipped

_INTRO = """# The metrics

Each can be named (`assay run NAME ...`, `assay.load("NAME")`) and each is a file that can be read,
copied to `./evaluators` and edited there; those without a judge are Python. This page is written by
`python -m assay.metric.catalogue > docs/metrics.md`; a test keeps it up to date.

- **inputs**: in brackets where a row may lack them. Other names of a column are understood:
  `question`, `answer`, `contexts`, `reference`, ...
- **calls**: of the judge, for one row, at most. A policy may end a metric earlier; a reply that
  cannot be used is asked for again. `+ e`: texts are embedded as well.
- **range**: of the number, and from where on it passes.

Short names are ours: denominators are claims and never the verdicts that happened to come back, a
side that is empty is 0 where that is the truth, nothing on either side is not applicable, and a
word outside the vocabulary makes the score invalid. A name with a library in front gives that
library's number, where it gives one; [crosscheck.md](crosscheck.md) has both side by side, and
[metric-yaml.md](metric-yaml.md) tells how a metric is written.
"""

_FAMILIES = {
    "assay": "Ours",
    "ragas": "As ragas computes them",
    "deepeval": "As deepeval computes them",
    "embedchain": "As embedchain computes them",
    "azure": "As azure-ai-evaluation computes them",
}


def document() -> str:
    """The page."""
    groups: dict[str, list[Any]] = {}
    for name in shipped():
        evaluator = load(name)
        family = str(getattr(evaluator, "variant", "assay")).split()[0]
        title = _FAMILIES.get(family, f"As {family} computes them")
        if not evaluator.needs_judge and not getattr(evaluator, "needs_embedder", False):
            title = "Without a judge"
        groups.setdefault(title, []).append(evaluator)
    order = [*_FAMILIES.values(), *sorted(groups)]
    titles = dict.fromkeys(title for title in order if title in groups)
    return "\n".join([_INTRO, *(_section(title, groups[title]) for title in titles)])


def functions() -> str:
    """The rows of docs/metric-yaml.md that tell what an expression may call."""
    ours = {name: f for name, f in FUNCTIONS.items() if inspect.isfunction(f)}
    rows = [f"| `{name}({_parameters(f)})` | {_first_line(f)} |" for name, f in ours.items()]
    plain = ", ".join(f"`{name}`" for name in FUNCTIONS if name not in ours)
    return "\n".join([*rows, f"| {plain} | as in Python |"])


def _parameters(function: Any) -> str:
    found = inspect.signature(function).parameters.values()
    empty = inspect.Parameter.empty
    return ", ".join(p.name if p.default is empty else f"{p.name}={p.default}" for p in found)


def _first_line(function: Any) -> str:
    text = " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())
    return text.replace("|", "/").replace("Raises Undefined", "No value")


def _section(title: str, evaluators: Iterable[Any]) -> str:
    versions = {str(getattr(e, "variant", "assay")).partition(" ")[2] for e in evaluators} - {""}
    head = f"## {title}{' (' + ', '.join(sorted(versions)) + ')' if versions else ''}\n"
    rows = ["| metric | inputs | calls | range | |", "|---|---|---|---|---|"]
    return "\n".join([head, *rows, *map(_row, evaluators)]) + "\n"


def _row(evaluator: Any) -> str:
    inputs = ", ".join(n if i.required else f"[{n}]" for n, i in evaluator.inputs.items())
    calls = str(getattr(evaluator, "calls", "1" if evaluator.needs_judge else "0"))
    if getattr(evaluator, "needs_embedder", False):
        calls = "e" if calls == "0" else f"{calls} + e"
    scored = [output for output in evaluator.outputs.values() if output.scored]
    main = next((output for output in scored if output.is_primary), scored[0])
    scale = main.scale or main.type
    if main.threshold is not None:
        scale += f", passes {'from' if main.direction == 'increase' else 'to'} {main.threshold:g}"
    text = " ".join(evaluator.description.split())
    if main.description and main.description not in text:
        text = f"**{main.description.rstrip('.')}.** {text}"
    return f"| `{evaluator.name}` | {inputs} | {calls} | {scale} | {text.replace('|', '/')} |"


if __name__ == "__main__":
    print(document(), end="")
