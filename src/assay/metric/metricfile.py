"""Reading a metric.yaml: everything is checked when it is loaded, with the line.

description: Share of the response's claims that follow from the context.
variant: assay                # or ragas 0.4.3, ...: whose number it reproduces
inputs:
  response: {type: string}
  context: {type: array}
may_be_empty: [context]       # [] and "" are values; the steps say what they mean
outputs:
  faithfulness: {type: number, minimum: 0, maximum: 1, threshold: 0.8}
steps:
  - found: {prompt: claims.prompty, in: {text: response}}
  - claims: {value: texts(found.claims)}
  - stop: {when: not claims, because: the response claims nothing, cause: no_claims}
  - stop: {when: not context, score: 0, because: nothing was retrieved}
  - verdicts: {prompt: supported.prompty, in: {context: context}, align: {claims: claims}}
  - supported: {map: verdicts, to: {yes: 1, no: 0, unknown: 0}}
score: ratio(sum(supported), len(claims))
reason: verdicts | map(attribute='reason') | join(' ')

`assay.metric.steps` has the table of steps, `assay.metric.functions` what expressions may call.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from assay.errors import PromptyError
from assay.judge.base import Judge
from assay.metric.expressions import Expression, compile_expression
from assay.metric.functions import FUNCTIONS
from assay.metric.multistep import MetricEvaluator
from assay.metric.stepreader import StepReader
from assay.metric.steps import Step
from assay.prompty.fields import read_inputs, read_outputs
from assay.prompty.frontmatter import Positions, parse
from assay.prompty.source import decode

METRIC_FILE = "metric.yaml"

_TOP = (
    "name",
    "description",
    "variant",
    "inputs",
    "may_be_empty",
    "outputs",
    "steps",
    "score",
    "reason",
)


def load_metric(path: Path, judge: Judge | None = None) -> MetricEvaluator:
    """Read a metric.yaml and the prompts it names.

    Raises PromptyError with file and line for unknown keys, expressions that are none, names
    that no input and no earlier step gives, and everything that is wrong with a prompt.
    """
    try:
        text = decode(path.read_bytes(), path)
    except OSError as error:
        raise PromptyError(f"cannot be read: {error.strerror}", path=path) from None
    data, positions = parse(text, 1, path)
    return _Reader(path, text, data, positions).evaluator(judge)


def places(text: str, *where: Any) -> tuple[int, int]:
    """Line and column of a key, or of the nearest key above it, in the text of a metric.yaml."""
    _, positions = parse(text, 1)
    return _nearest(positions, where)


def _nearest(positions: Positions, where: tuple[Any, ...]) -> tuple[int, int]:
    found = (positions.get(where[:n]) for n in range(len(where), 0, -1))
    return next((place for place in found if place), (1, 1))


class _Reader:
    """One file being read. Errors carry the line of the nearest key."""

    def __init__(
        self, path: Path, text: str, data: Mapping[str, Any], positions: Positions
    ) -> None:
        self.path = path
        self.text = text
        self.data = data
        self.positions = positions

    def evaluator(self, judge: Judge | None) -> MetricEvaluator:
        for key in self.data:
            if key not in _TOP:
                raise self.error(f"unknown key `{key}`; known are {', '.join(_TOP)}", key)
        inputs = self._declared("inputs", read_inputs)
        outputs = self._declared("outputs", read_outputs)
        if not inputs:
            raise self.error("`inputs` must name at least one column", "inputs")
        if len(outputs) != 1 or next(iter(outputs.values())).type not in ("number", "integer"):
            raise self.error("`outputs` must declare the one number the metric gives", "outputs")
        for name in inputs:
            self._check_name("input", name, (), "inputs", name)
        steps = self._steps(set(inputs))
        known = {*inputs, *(step.name for step in steps)}
        return MetricEvaluator(
            path=self.path,
            name=str(self.data.get("name") or self.path.resolve().parent.name),
            text=self.text,
            inputs=inputs,
            outputs=outputs,
            steps=steps,
            result=self._expression("score", known),
            reason=self._expression("reason", known) if "reason" in self.data else None,
            may_be_empty=self._may_be_empty(inputs),
            description=str(self.data.get("description") or "").strip(),
            variant=str(self.data.get("variant") or "assay"),
            judge=judge,
        )

    def _declared(self, key: str, read: Any) -> Any:
        try:
            return read(self.data.get(key))
        except PromptyError as error:
            raise self.error(error.message, key) from None

    def _steps(self, inputs: set[str]) -> tuple[Step, ...]:
        entries = self.data.get("steps") or []
        if not isinstance(entries, list):
            raise self.error("`steps` is a list of `- name: {...}`", "steps")
        known = set(inputs)
        steps: list[Step] = []
        reader = StepReader(self.path, self.compile, self.error)
        for number, entry in enumerate(entries):
            if not isinstance(entry, Mapping) or len(entry) != 1:
                raise self.error("a step is one `name: {...}`", "steps", number)
            name, spec = next(iter(entry.items()))
            where = ("steps", number, name)
            if name != "stop":
                self._check_name("step", name, known, *where)
            step = reader.read(number, name, spec, where)
            self._check_known(step.names, known, *where)
            steps.append(step)
            known.add(step.name)
        return tuple(steps)

    def _may_be_empty(self, inputs: Mapping[str, Any]) -> frozenset[str]:
        names = self.data.get("may_be_empty") or []
        if not isinstance(names, list) or any(name not in inputs for name in names):
            raise self.error("`may_be_empty` is a list of inputs", "may_be_empty")
        return frozenset(names)

    def _expression(self, key: str, known: set[str]) -> Expression:
        expression = self.compile(self.data.get(key), key)
        self._check_known(expression.names, known, key)
        return expression

    def _check_name(self, kind: str, name: Any, taken: Iterable[str], *where: Any) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise self.error(f"{kind} {name!r}: a name is one word of letters, digits, _", *where)
        if name in FUNCTIONS:
            raise self.error(f"{kind} `{name}` has the name of a function", *where)
        if name in taken:
            raise self.error(f"{kind} `{name}`: there is an input or a step of that name", *where)

    def _check_known(self, names: Iterable[str], known: set[str], *where: Any) -> None:
        unknown = sorted(set(names) - known)
        if not unknown:
            return
        near = difflib.get_close_matches(unknown[0], [*known, *FUNCTIONS], n=1)
        there = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}"
        raise self.error(
            f"{', '.join(unknown)}: no input, no earlier step and no function; {there}", *where
        )

    def compile(self, text: Any, *where: Any) -> Expression:
        """An expression. Raises PromptyError with the line where it is none."""
        if text is None:
            raise self.error("an expression is missing", *where)
        try:
            return compile_expression(text)
        except PromptyError as error:
            raise self.error(error.message, *where) from None

    def error(self, message: str, *where: Any) -> PromptyError:
        """An error at the nearest key above that has a place in the file."""
        line, column = _nearest(self.positions, where)
        return PromptyError(message, path=self.path, line=line, column=column, code="metric")
