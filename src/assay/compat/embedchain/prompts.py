"""Prompts of the caller's own in the place of the shipped ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Any

from assay.errors import SetupError
from assay.metric.expressions import Expression, compile_expression
from assay.metric.multistep import MetricEvaluator
from assay.metric.promptstep import PromptStep
from assay.prompty import Prompty, load

_SEVERAL = Path(__file__).parents[1] / "prompts" / "questions.prompty"

_VALUES = {
    "question": "query",
    "query": "query",
    "answer": "response",
    "response": "response",
    "context": "passages",
    "claim_statements": "claims | join('\\n')",
    "claims": "claims",
}
"""Variable of a prompt to the value it gets, where the metric has it at that step."""


def with_prompt(
    metric: MetricEvaluator, step: str, prompt: Any, *, number: int | None = None
) -> MetricEvaluator:
    """`metric` with another prompt in one of its steps; as it is where `prompt` is None.

    prompt: the path of a .prompty file, or a text with `$name` or `${name}` for values, as a
    string.Template; a `$` that names nothing stands for itself. The reply is read as the
    shipped prompt's is, so the prompt must ask for the same form.
    Raises SetupError for a variable that the step has no value for.
    """
    if prompt is None:
        return metric
    return _exchanged(metric, step, lambda old: _prompty(prompt, old), number)


def several_questions(metric: MetricEvaluator, step: str, number: int) -> MetricEvaluator:
    """`metric` with a prompt that asks for `number` questions instead of one."""
    if number < 1:
        raise SetupError(f"num_gen_questions must be 1 or more, not {number}")
    return _exchanged(metric, step, lambda old: load(_SEVERAL), number)


def _exchanged(
    metric: MetricEvaluator, name: str, change: Any, number: int | None
) -> MetricEvaluator:
    steps = list(metric.steps)
    index = next(i for i, step in enumerate(steps) if step.name == name)
    step = steps[index]
    assert isinstance(step, PromptStep)
    before = {*metric.inputs, *(earlier.name for earlier in steps[:index])}
    prompty = change(step.prompty)
    steps[index] = replace(step, prompty=prompty, given=_given(prompty, before, number))
    return replace(metric, steps=tuple(steps))


def _given(prompty: Prompty, scope: set[str], number: int | None) -> Mapping[str, Expression]:
    values = {**_VALUES, **({} if number is None else {"num_gen_questions": str(number)})}
    known = {
        name: expression
        for name, text in values.items()
        if (expression := compile_expression(text)).names <= scope
    }
    unknown = [n for n, item in prompty.inputs.items() if item.required and n not in known]
    if unknown:
        raise SetupError(
            f"the prompt uses {', '.join(unknown)}, which this step does not have; it has "
            f"{', '.join(known)}"
        )
    return {name: known[name] for name in prompty.inputs if name in known}


def _prompty(prompt: Any, old: Prompty) -> Prompty:
    """The prompt, with the outputs and settings of the one it replaces where it has none."""
    if isinstance(prompt, Path) or (isinstance(prompt, str) and prompt.endswith(".prompty")):
        found = load(prompt)
        return found if found.outputs else replace(found, outputs=old.outputs)
    text = prompt.template if isinstance(prompt, Template) else str(prompt)
    body = f"user:\n{_jinja(text)}\n"
    return replace(old, text=body, path=None, body=body, body_line=1, declared_inputs={}, front={})


def _jinja(text: str) -> str:
    """A string.Template as a Jinja template that says the same."""
    parts: list[str] = []
    end = 0
    for match in Template.pattern.finditer(text):
        parts.append(_literal(text[end : match.start()]))
        name = match["named"] or match["braced"]
        if name:
            parts.append("{{ " + name + " }}")
        else:
            parts.append("$")
        end = match.end()
    parts.append(_literal(text[end:]))
    return "".join(parts)


def _literal(text: str) -> str:
    return text.replace("{", "{{ '{' }}")
