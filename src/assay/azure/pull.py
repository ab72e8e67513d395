"""Evaluators of a Foundry project: what is there, and a prompt evaluator as a .prompty file."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote

import yaml

from assay.azure.calls import LIST_EVALUATORS, V1
from assay.azure.client import Client, Patience
from assay.azure.project import Foundry
from assay.azure.step import Step
from assay.errors import SetupError

_TYPES = {"ordinal": "integer", "continuous": "number", "boolean": "boolean"}
_LOGIC = re.compile(r"\{[%#]|\{\{(?!\s*\w+\s*\}\})")


async def list_evaluators(
    project: Foundry, patience: Patience | None = None
) -> list[dict[str, Any]]:
    """Name, version, kind and display name of every evaluator of the catalog."""
    async with Client(project, patience) as client:
        return [
            {
                "name": found.get("name"),
                "version": str(found.get("version") or ""),
                "kind": (found.get("definition") or {}).get("type"),
                "display_name": found.get("display_name") or "",
            }
            async for found in _pages(client, LIST_EVALUATORS, {**V1, "type": "all"})
        ]


async def fetch_evaluator(
    project: Foundry, name: str, version: str | None = None, patience: Patience | None = None
) -> str:
    """A prompt evaluator as the text of a .prompty file. Raises SetupError for another kind."""
    path = f"/evaluators/{quote(name, safe='')}/versions"
    async with Client(project, patience) as client:
        if version is not None:
            step = Step("reading the evaluator", "GET", f"{path}/{quote(version, safe='')}")
            _, found = await client.call(step, params=V1)
        else:
            step = Step("listing the evaluator's versions", "GET", path)
            every = [item async for item in _pages(client, step, V1)]
            if not every:
                raise SetupError(f"{name} has no version")
            found = max(every, key=_number)
    return to_prompty(name, found)


def to_prompty(name: str, found: Mapping[str, Any]) -> str:
    """The file for a prompt evaluator's version."""
    definition = found.get("definition") or {}
    kind, text = definition.get("type"), definition.get("prompt_text")
    if kind != "prompt" or not text:
        raise SetupError(
            f"{name} is a {kind} evaluator: the service gives no prompt of it, only of prompt ones"
        )
    if _LOGIC.search(text):
        raise SetupError(f"{name} holds braces that mean something else in a .prompty file")
    schema = definition.get("data_schema") or {}
    required = set(schema.get("required") or ())
    inputs = {
        key: {"type": str((spec or {}).get("type") or "string")}
        | ({} if key in required else {"required": False})
        for key, spec in (schema.get("properties") or {}).items()
    }
    metrics: Mapping[str, Mapping[str, Any]] = definition.get("metrics") or {}
    metric = next(iter(metrics.values()), {})
    scale = {
        "type": _TYPES.get(str(metric.get("type")), "number"),
        "minimum": _plain(metric.get("min_value")),
        "maximum": _plain(metric.get("max_value")),
        "threshold": _plain(metric.get("threshold")),
        "desirable_direction": metric.get("desirable_direction"),
    }
    front = {
        "name": str(found.get("display_name") or name),
        "description": str(found.get("description") or ""),
        "inputs": inputs,
        # These two keys are what a prompt evaluator replies with.
        "outputs": {
            "reason": {"type": "string"},
            "result": {key: value for key, value in scale.items() if value is not None},
        },
    }
    head = yaml.safe_dump(front, sort_keys=False, allow_unicode=True)
    return f"---\n{head}---\nuser:\n{text.strip()}\n"


async def _pages(
    client: Client, step: Step, params: Mapping[str, str]
) -> AsyncIterator[dict[str, Any]]:
    """The items of a list whose pages name the next one."""
    following: Mapping[str, str] | None = params
    while True:
        _, page = await client.call(step, params=following)
        for item in page.get("value") or []:
            yield item
        link = page.get("nextLink")
        if not link:
            return
        step, following = Step(step.title, "GET", str(link)), None


def _number(version: Mapping[str, Any]) -> tuple[int, str]:
    text = str(version.get("version") or "")
    return (int(text) if text.isdigit() else -1, text)


def _plain(value: Any) -> Any:
    """The service gives every whole number as a float."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
