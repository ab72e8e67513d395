"""Reading a metric.yaml: everything is checked when it is loaded, with the line.

description: Share of the response's claims that follow from the context.
variant: assay                # or ragas, deepeval, embedchain: whose number it reproduces
inputs:
  response: {type: string}
  context: {type: array}
outputs:
  faithfulness: {type: number, minimum: 0, maximum: 1, threshold: 0.8}
steps:
  - claims: {prompt: claims.prompty, in: {response: response}}
  - stop: {when: not claims.claims, status: not_applicable, because: no claims were found}
  - verdicts:
      prompt: verdicts.prompty
      in: {context: context}
      align: {claims: claims.claims}
  - supported: {map: verdicts, field: verdict, to: {yes: 1, no: 0, unknown: 0}}
score: ratio(sum(supported), len(claims.claims))
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay.errors import PromptyError
from assay.judge.base import Judge
from assay.metric.expressions import Expression, compile_expression
from assay.metric.multistep import MetricEvaluator
from assay.metric.score import STATUSES
from assay.metric.steps import EmbedStep, MapStep, PromptStep, Step, StopStep, ValueStep
from assay.prompty import load
from assay.prompty.fields import read_inputs, read_outputs
from assay.prompty.frontmatter import Positions, parse
from assay.prompty.source import decode

METRIC_FILE = "metric.yaml"

_TOP = {
    "name",
    "description",
    "variant",
    "inputs",
    "outputs",
    "steps",
    "score",
    "reason",
}
_KINDS = {
    "prompt": {"prompt", "in", "each", "align", "when", "repeat", "distribution"},
    "map": {"map", "field", "to"},
    "split": {"split", "by"},
    "join": {"join", "with"},
    "embed": {"embed"},
    "value": {"value"},
}
_STOP = {"when", "status", "score", "because"}


def load_metric(path: Path, judge: Judge | None = None) -> MetricEvaluator:
    """Read a metric.yaml and the prompts beside it.

    Raises PromptyError with file and line for unknown keys, expressions that are none, names
    that no input and no earlier step gives, and everything that is wrong with a prompt.
    """
    try:
        text = decode(path.read_bytes(), path)
    except OSError as error:
        raise PromptyError(f"cannot be read: {error.strerror}", path=path) from None
    data, positions = parse(text, 1, path)
    return _Reader(path, text, data, positions).evaluator(judge)


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
                raise self.error(f"unknown key `{key}`; known are {', '.join(sorted(_TOP))}", key)
        inputs = read_inputs(self.data.get("inputs"))
        outputs = read_outputs(self.data.get("outputs"))
        if not inputs:
            raise self.error("`inputs` must name at least one column", "inputs")
        if len(outputs) != 1 or not next(iter(outputs.values())).scored:
            raise self.error("`outputs` must declare the one number the metric gives", "outputs")
        known = set(inputs)
        steps: list[Step] = []
        for number, entry in enumerate(self.data.get("steps") or []):
            step = self._step(number, entry)
            unknown = step.names - known
            if unknown:
                raise self._unknown(unknown, known, "steps", number)
            steps.append(step)
            known.add(step.name)
        result = self._compile(self.data.get("score"), "score")
        reason = self.data.get("reason")
        explained = None if reason is None else self._compile(reason, "reason")
        for expression, key in ((result, "score"), (explained, "reason")):
            if expression is not None and expression.names - known:
                raise self._unknown(expression.names - known, known, key)
        return MetricEvaluator(
            path=self.path,
            name=str(self.data.get("name") or self.path.parent.name),
            text=self.text,
            inputs=inputs,
            outputs=outputs,
            steps=tuple(steps),
            result=result,
            reason=explained,
            description=str(self.data.get("description") or ""),
            variant=str(self.data.get("variant") or "assay"),
            judge=judge,
        )

    def _step(self, number: int, entry: Any) -> Step:
        if not isinstance(entry, Mapping) or len(entry) != 1:
            raise self.error("a step is one `name: {...}`", "steps", number)
        name, spec = next(iter(entry.items()))
        where = ("steps", number, name)
        if not isinstance(spec, Mapping):
            raise self.error(f"step `{name}` must be a mapping", *where)
        if name == "stop":
            return self._stop(number, spec, where)
        kind = next((kind for kind in _KINDS if kind in spec), None)
        if kind is None:
            raise self.error(f"step `{name}` has none of {', '.join(_KINDS)}", *where)
        extra = set(spec) - _KINDS[kind]
        if extra:
            raise self.error(f"step `{name}`: unknown {', '.join(map(str, extra))}", *where)
        if kind == "prompt":
            return self._prompt(name, spec, where)
        source = self._compile(spec[kind], *where, kind)
        if kind == "map":
            to = {str(key).casefold(): value for key, value in (spec.get("to") or {}).items()}
            if not to:
                raise self.error(f"step `{name}`: `to` must say what each word is worth", *where)
            return MapStep(name, source, str(spec.get("field", "verdict")), to)
        if kind == "embed":
            return EmbedStep(name, source)
        by = {"split": str(spec.get("by", "sentences")), "join": "join"}.get(kind, "value")
        if kind == "split" and by not in ("sentences", "lines"):
            raise self.error(f"step `{name}`: by is sentences or lines, not {by!r}", *where)
        return ValueStep(name, source, by, str(spec.get("with", "\n")))

    def _prompt(self, name: str, spec: Mapping[str, Any], where: tuple[Any, ...]) -> PromptStep:
        file = (self.path.parent / str(spec["prompt"])).resolve()
        if not file.is_relative_to(self.path.parent.resolve().parent):
            raise self.error(f"step `{name}`: {spec['prompt']} is outside the metrics", *where)
        prompty = load(file)
        given = {
            str(key): self._compile(value, *where, "in", key)
            for key, value in (spec.get("in") or {}).items()
        }
        align = None
        if "align" in spec:
            if not isinstance(spec["align"], Mapping) or len(spec["align"]) != 1:
                raise self.error(f"step `{name}`: align is one INPUT: LIST", *where, "align")
            target, source = next(iter(spec["align"].items()))
            align = (str(target), self._compile(source, *where, "align"))
        taken = {*given, *([align[0]] if align else [])}
        missing = [n for n, i in prompty.inputs.items() if i.required and n not in taken]
        unknown = [n for n in taken if n not in prompty.inputs]
        if missing or unknown:
            raise self.error(
                f"step `{name}`: {spec['prompt']} takes {', '.join(prompty.inputs)}; "
                f"missing {', '.join(missing) or 'none'}, unknown {', '.join(unknown) or 'none'}",
                *where,
            )
        distribution = spec.get("distribution")
        if distribution is not None and distribution not in prompty.outputs:
            raise self.error(f"step `{name}`: no output {distribution!r}", *where, "distribution")
        return PromptStep(
            name=name,
            prompty=prompty,
            given=given,
            each=self._compile(spec["each"], *where, "each") if "each" in spec else None,
            align=align,
            when=self._compile(spec["when"], *where, "when") if "when" in spec else None,
            repeat=int(spec.get("repeat", 1)),
            distribution=distribution,
        )

    def _stop(self, number: int, spec: Mapping[str, Any], where: tuple[Any, ...]) -> StopStep:
        extra = set(spec) - _STOP
        if extra or "when" not in spec or "because" not in spec:
            raise self.error("stop takes when, because, and status or score", *where)
        status = spec.get("status", "scored" if "score" in spec else "not_applicable")
        if status not in STATUSES or (status == "scored") != ("score" in spec):
            raise self.error("stop ends with `score: NUMBER`, or with another status", *where)
        score = self._compile(spec["score"], *where, "score") if "score" in spec else None
        when = self._compile(spec["when"], *where, "when")
        return StopStep(f"stop {number + 1}", when, status, score, str(spec["because"]))

    def _compile(self, text: Any, *where: Any) -> Expression:
        if text is None:
            raise self.error("an expression is missing", *where)
        try:
            return compile_expression(text)
        except PromptyError as error:
            raise self.error(error.message, *where) from None

    def _unknown(self, names: Any, known: set[str], *where: Any) -> PromptyError:
        return self.error(
            f"{', '.join(sorted(names))}: no input and no earlier step gives it; there are "
            f"{', '.join(sorted(known))}",
            *where,
        )

    def error(self, message: str, *where: Any) -> PromptyError:
        for length in range(len(where), 0, -1):
            place = self.positions.get(tuple(where[:length]))
            if place:
                return PromptyError(
                    message, path=self.path, line=place[0], column=place[1], code="metric"
                )
        return PromptyError(message, path=self.path, line=1, code="metric")
