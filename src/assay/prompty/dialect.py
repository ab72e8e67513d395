"""The dialects of .prompty as tables: where each one keeps its model settings.

| letter | dialect | told by |
|---|---|---|
| A | classic | `model.configuration` |
| B | classic without configuration | `model.parameters` or `model.api` |
| C | no model | no `model` |
| D | 2.x | `model.provider`, `model.apiType`, or `connection.kind` |
| E | 1.0 beta | `model.id` or `model.options` |
| F | model by name | `model: gpt-4o` |
| G | body only | no front matter |
| H | named connection | `model.connection: name` |

All of them end in one `Model`; a new dialect is a new row in the tables below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PROVIDERS = {
    "azure_openai": "azure",
    "azure_open_ai": "azure",
    "azure_openai_beta": "azure",
    "azureopenai": "azure",
    "azure": "azure",
    "foundry": "azure",
    "project": "project",
    "openai": "openai",
    "ollama": "ollama",
}
"""Provider words that assay can call. Any other loads and fails only when it is called."""

CONNECTION = {
    "endpoint": (
        *("azure_endpoint", "endpoint", "base_url", "baseUrl", "api_base", "project_endpoint"),
    ),
    "deployment": (
        *("azure_deployment", "deployment", "deployment_name", "model", "name", "byo_model"),
    ),
    "api_key": ("api_key", "apiKey", "key"),
    "api_version": ("api_version", "apiVersion"),
    "provider": ("type", "provider"),
    "organization": ("organization", "organisation", "org_id"),
}
"""Our word for a connection setting: the words of the dialects, most specific first."""

PARAMETERS = {
    "maxOutputTokens": "max_tokens",
    "maxTokens": "max_tokens",
    "maxCompletionTokens": "max_completion_tokens",
    "topP": "top_p",
    "topK": "top_k",
    "stopSequences": "stop",
    "frequencyPenalty": "frequency_penalty",
    "presencePenalty": "presence_penalty",
    "responseFormat": "response_format",
    "toolChoice": "tool_choice",
    "tools_choice": "tool_choice",
    "parallelToolCalls": "parallel_tool_calls",
    "reasoningEffort": "reasoning_effort",
}
"""Spellings of sampling parameters, to the wire's own."""

PARAMETER_PLACES = (("parameters",), ("model", "options"), ("model", "parameters"))
CONNECTION_PLACES = (
    ("connection",),
    ("configuration",),
    ("model",),
    ("model", "connection"),
    ("model", "configuration"),
)
"""Where settings stand, later places win."""

SETTINGS = ("connection", "configuration", "parameters", "options")
"""The blocks of `model`."""

_NOT_CONNECTION = {"api", "apiType", "parameters", "options", "configuration", "connection"}
_NOT_PARAMETERS = ("deployment_name", "model", "model_id", "additionalProperties", "stream")


@dataclass(frozen=True, slots=True)
class Model:
    """Model settings of any dialect. Values may still hold `${env:...}` references.

    connection: `endpoint`, `deployment`, `api_key`, `api_version`, `provider`, ... and every
        word we do not know, kept as it is.
    connection_name: a connection to look up in assay.toml.
    parameters: what goes on the wire beside the messages.
    """

    api: str = "chat"
    connection: Mapping[str, Any] = field(default_factory=dict)
    connection_name: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def provider(self) -> str | None:
        """`azure`, `openai`, `ollama`, or the file's own word for another."""
        word = str(self.connection.get("provider") or "").strip().lower()
        return PROVIDERS.get(word, word) or None


def letter(front: Mapping[str, Any] | None) -> str:
    """Which dialect a front matter is written in, A to H as in the table above."""
    if front is None:
        return "G"
    model = front.get("model")
    if model is None:
        return "C"
    if not isinstance(model, Mapping):
        return "F"
    connection = model.get("connection")
    if isinstance(connection, str):
        return "H"
    kinds = isinstance(connection, Mapping) and "kind" in connection
    if "provider" in model or "apiType" in model or kinds:
        return "D"
    if "id" in model or "options" in model:
        return "E"
    return "A" if "configuration" in model else "B"


def read_model(front: Mapping[str, Any]) -> Model:
    """The model settings of a front matter, whatever its dialect."""
    model = front.get("model")
    if isinstance(model, str):
        return Model(connection={"deployment": model})
    model = model if isinstance(model, Mapping) else {}
    name = None
    connection: dict[str, Any] = {}
    for place in CONNECTION_PLACES:
        found = _at(front, place)
        if isinstance(found, str):
            name = found
        elif isinstance(found, Mapping):
            by_reference = found.get("kind") == "reference"
            named = found.get("name") if by_reference else found.get("connection")
            name = named if isinstance(named, str) else name
            drop = _NOT_CONNECTION | {"name"} if by_reference else _NOT_CONNECTION
            connection |= _connection(found, drop)
    if "id" in model:
        connection["deployment"] = model["id"]
    raw: dict[str, Any] = {}
    for place in PARAMETER_PLACES:
        found = _at(front, place)
        raw |= found if isinstance(found, Mapping) else {}
    for key in ("deployment_name", "model", "model_id"):
        if raw.get(key) and not connection.get("deployment"):
            connection["deployment"] = raw[key]
    tools = front.get("tools")
    if tools and "tools" not in raw:
        raw["tools"] = tools
    return Model(
        api=str(model.get("api") or model.get("apiType") or "chat").strip().lower(),
        connection=connection,
        connection_name=name,
        parameters=_parameters(raw),
    )


def _at(front: Mapping[str, Any], place: tuple[str, ...]) -> Any:
    value: Any = front
    for key in place:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _connection(found: Mapping[str, Any], drop: set[str]) -> dict[str, Any]:
    """Canonical words for the known ones; `kind` of 2.x says how to log in, not who answers."""
    rest = {key: value for key, value in found.items() if key not in drop and key != "kind"}
    rest = in_plain_words(rest)
    result: dict[str, Any] = {}
    for word, spellings in CONNECTION.items():
        for spelling in spellings:
            if rest.get(spelling) is not None:
                result[word] = rest.pop(spelling)
                break
    for spelling in ("id", *CONNECTION["deployment"]):
        rest.pop(spelling, None)
    return rest | result


def in_plain_words(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Connection settings, where a `byo_model` with its `project_endpoint` counts before all
    that is said of another service."""
    byo = {key: settings.get(key) for key in ("byo_model", "project_endpoint")}
    if not all(isinstance(value, str) and value.strip() for value in byo.values()):
        return dict(settings)
    words = {key for word in ("endpoint", "deployment", "provider") for key in CONNECTION[word]}
    rest = {key: value for key, value in settings.items() if key not in words}
    deployment, endpoint = byo.values()
    return {**rest, "type": "project", "deployment": deployment, "endpoint": endpoint}


def _parameters(raw: Mapping[str, Any]) -> dict[str, Any]:
    extra = raw.get("additionalProperties")
    merged: dict[str, Any] = {}
    for block in (extra if isinstance(extra, Mapping) else {}, raw):
        for key, value in block.items():
            if key not in _NOT_PARAMETERS and value is not None:
                merged[PARAMETERS.get(key, key)] = value
    form = merged.get("response_format")
    if isinstance(form, str) and "${" not in form:
        form = {"type": form}
    if isinstance(form, Mapping) and isinstance(form.get("type"), str):
        merged["response_format"] = {**form, "type": form["type"].strip().lower()}
    return merged
