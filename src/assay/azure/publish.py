"""A .prompty file as a Foundry evaluator or grader: what is carried, what is lost, what cannot be.

prompt       an evaluator of the catalog: Foundry asks the judge
score_model  a grader for an eval's criteria: keeps roles and sampling, enters no catalog
endpoint     an evaluator of the catalog that asks `assay serve`: loses nothing
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from assay import __version__
from assay.azure.calls import evaluator_version
from assay.azure.client import Client, Patience
from assay.azure.payloads import EvaluatorBody
from assay.azure.project import Foundry
from assay.errors import PromptyError, SetupError
from assay.jsontext import digest
from assay.metric.conversation import conversation_input
from assay.prompty import Output, Prompty

Form = Literal["prompt", "score_model", "endpoint"]

_SAMPLING = {
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "max_tokens": "max_completions_tokens",
    "max_completion_tokens": "max_completions_tokens",
    "reasoning_effort": "reasoning_effort",
}
_TYPES = {"integer": "integer", "number": "number", "boolean": "boolean", "array": "array"}


@dataclass(frozen=True)
class Published:
    """What would be sent for one output, and what of the file stays behind."""

    name: str
    form: Form
    body: Mapping[str, Any]
    lost: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return {"name": self.name, "form": self.form, "body": self.body, "lost": self.lost}


def publication(
    prompty: Prompty,
    form: Form,
    *,
    output: str | None = None,
    deployment: str | None = None,
    connection: str | None = None,
) -> Published:
    """The payload for one scored output. Raises PromptyError that says what cannot be carried."""
    chosen = _chosen(prompty, output)
    if form == "endpoint":
        if not connection:
            raise SetupError(
                "an endpoint evaluator needs --connection: the project's connection that holds the "
                "address of `assay serve` and its key"
            )
        definition = {"type": "endpoint", "connection_name": connection, **_common(prompty, chosen)}
        return _evaluator(prompty, chosen, form, definition, [])
    _refuse(prompty, chosen)
    if form == "score_model":
        return _grader(prompty, chosen, deployment)
    lost = _lost(prompty, chosen)
    definition = {"type": "prompt", "prompt_text": _prompt_text(prompty, chosen)}
    return _evaluator(prompty, chosen, form, definition | _common(prompty, chosen), lost)


async def register(project: Foundry, published: Published, patience: Patience | None = None) -> str:
    """The version in the catalog: found by its fingerprint, else created."""
    mark = str(published.body["metadata"]["assay.fingerprint"])
    async with Client(project, patience) as client:
        wanted = EvaluatorBody(published.name, published.body, mark)
        return await evaluator_version(client, wanted, None)


def _chosen(prompty: Prompty, wanted: str | None) -> Output:
    """The output to publish: an evaluator there gives one."""
    scored = {name: output for name, output in prompty.outputs.items() if output.scored}
    if wanted is not None:
        if wanted not in scored:
            raise _no(prompty, f"it has no scored output {wanted!r}: {', '.join(scored) or 'none'}")
        return scored[wanted]
    if len(scored) != 1:
        names = ", ".join(scored)
        why = f"name one of {names} with --output" if scored else "it declares no scored output"
        raise _no(prompty, f"an evaluator in Foundry gives one score: {why}")
    return next(iter(scored.values()))


def _refuse(prompty: Prompty, output: Output) -> None:
    """What a judge of Foundry's own would silently do otherwise."""
    if output.direction == "decrease":
        raise _no(
            prompty,
            f"{output.name} is better when lower, which Foundry ignores for evaluators of one's "
            "own: turn the scale round in the prompt, or publish it --as endpoint",
        )
    if prompty.is_mustache and re.search(r"\{\{[#^/>]", prompty.body):
        raise _no(prompty, "its body has sections, which Foundry's templates do not know")
    logic = None if prompty.is_mustache else _logic(prompty.body)
    if logic:
        raise _no(
            prompty,
            f"its body has Jinja {logic}, which Foundry's templates do not know: only "
            "{{name}} is carried; publish it --as endpoint",
        )
    if output.levels and output.type not in ("integer", "number", "boolean"):
        raise _no(prompty, f"{output.name} is a word, not a number: publish it --as endpoint")


def _logic(body: str) -> str | None:
    """The first thing in a body that is more than text and plain variables."""
    from jinja2 import Environment, nodes

    for node in Environment().parse(body).body:
        if not isinstance(node, nodes.Output):
            return f"logic (line {node.lineno} of the body)"
        for part in node.nodes:
            if isinstance(part, nodes.TemplateData):
                if "{{" in part.data:
                    return f"raw text with braces (line {part.lineno} of the body)"
            elif not isinstance(part, nodes.Name):
                return f"an expression (line {part.lineno} of the body)"
    return None


def _messages(prompty: Prompty, form: str) -> list[tuple[str, str]]:
    """(role, text) of each message, with its variables as Foundry's templates say them."""
    values = {name: form % name for name in prompty.inputs}
    found = []
    for message in prompty.render(values):
        content = message.get("content")
        if not isinstance(content, str):
            raise _no(prompty, "it has images or tools, which Foundry's templates do not know")
        found.append((str(message["role"]), content.strip()))
    return found


def _prompt_text(prompty: Prompty, output: Output) -> str:
    parts = _messages(prompty, "{{%s}}")
    several = len(parts) > 1
    texts = [f"# {role.title()}\n{text}" if several else text for role, text in parts]
    return "\n\n".join([*texts, _contract(output)]) + "\n"


def _contract(output: Output) -> str:
    """Foundry reads these two keys and no other; nobody adds that to the prompt for us."""
    kind = {"integer": "a whole number", "boolean": "true or false"}.get(output.type, "a number")
    scale = ""
    if output.minimum is not None and output.maximum is not None:
        scale = f" from {output.minimum:g} to {output.maximum:g}"
    return (
        "# Output\nWhatever was said about the form of your reply, reply with one JSON object of "
        f'exactly these keys and nothing else:\n"reason": your reason, in one or two sentences\n'
        f'"result": {output.name}, {kind}{scale}'
    )


def _common(prompty: Prompty, output: Output) -> dict[str, Any]:
    """Settings, inputs and the metric in the catalog's words."""
    inputs = {
        name: {
            "type": _TYPES.get(item.type, "string"),
            **({"description": item.description} if getattr(item, "description", "") else {}),
        }
        for name, item in prompty.inputs.items()
    }
    kinds = {"integer": "ordinal", "boolean": "boolean"}
    metric = {
        "type": kinds.get(output.type, "continuous"),
        "desirable_direction": output.direction,
        "min_value": output.minimum,
        "max_value": output.maximum,
        "threshold": output.threshold,
        "is_primary": True,
    }
    return {
        "init_parameters": {
            "type": "object",
            "required": ["deployment_name", "threshold"],
            "properties": {
                "deployment_name": {"type": "string"},
                "threshold": {"type": "number"},
            },
        },
        "data_schema": {
            "type": "object",
            "required": [name for name, item in prompty.inputs.items() if item.required],
            "properties": inputs,
        },
        "metrics": {output.name: {k: v for k, v in metric.items() if v is not None}},
    }


def _evaluator(
    prompty: Prompty, output: Output, form: Form, definition: Mapping[str, Any], lost: list[str]
) -> Published:
    scored = [o for o in prompty.outputs.values() if o.scored]
    label = prompty.name if len(scored) == 1 else f"{prompty.name}-{output.name}"
    slug = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")[:200] or "metric"
    # A prompt evaluator is given columns alone; an endpoint takes what the metric takes.
    judges_conversations = form == "endpoint" and conversation_input(prompty.inputs) is not None
    level = "conversation" if judges_conversations else "turn"
    body = {
        "evaluator_type": "custom",
        "categories": ["quality"],
        "display_name": label,
        "description": (prompty.description or output.description)[:500],
        "supported_evaluation_levels": [level],
        "metadata": {
            "assay.fingerprint": digest(definition, 32),
            "assay.sha256": prompty.sha256,
            "assay.version": __version__,
        },
        "definition": dict(definition),
    }
    return Published(slug, form, body, lost)


def _grader(prompty: Prompty, output: Output, deployment: str | None) -> Published:
    """A score_model grader: a criterion to put into an eval."""
    if output.minimum is None or output.maximum is None:
        raise _no(prompty, f"{output.name} declares no minimum and maximum, which a grader needs")
    parameters = prompty.parameters
    sampling = {_SAMPLING[name]: v for name, v in parameters.items() if name in _SAMPLING}
    rest = [n for n in parameters if n not in _SAMPLING and n != "response_format"]
    body = {
        "type": "score_model",
        "name": prompty.name,
        "model": deployment or "<deployment>",
        "input": [
            {"role": role, "content": text} for role, text in _messages(prompty, "{{item.%s}}")
        ],
        "range": [output.minimum, output.maximum],
        "pass_threshold": output.threshold,
        "sampling_params": sampling,
    }
    lost = [f"parameters {', '.join(rest)}"] if rest else []
    others = [name for name in prompty.outputs if name != output.name]
    lost += [f"outputs {', '.join(others)}: a grader gives its score"] if others else []
    lost.append("the file's words on the form of the reply, which a grader overrides")
    shown = {name: value for name, value in body.items() if value not in (None, {})}
    return Published(prompty.name, "score_model", shown, lost)


def _lost(prompty: Prompty, output: Output) -> list[str]:
    """What of the file an evaluator of the catalog has no place for."""
    lost = []
    if len(_messages(prompty, "{{%s}}")) > 1:
        lost.append("roles: the messages become one text with headings")
    if prompty.parameters:
        lost.append(f"parameters {', '.join(prompty.parameters)}")
    if prompty.model.connection:
        lost.append("the connection: the deployment is named when an eval is made")
    others = [n for n in prompty.outputs if n != output.name and n != "reason"]
    if others:
        lost.append(f"outputs {', '.join(others)}")
    optional = [name for name, item in prompty.inputs.items() if not item.required]
    if optional:
        lost.append(f"defaults of {', '.join(optional)}")
    lost.append("scores that do not apply: Foundry has pass, fail and error alone")
    return lost


def _no(prompty: Prompty, why: str) -> PromptyError:
    return PromptyError(f"it cannot be published: {why}", path=prompty.path, code="publish")
