"""From one dialect of .prompty to another: the front matter is rewritten, the body never.

Only `model`, `inputs`, `outputs` and `template` differ between the dialects. Everything else,
known or not, stays as it is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from assay.errors import PromptyError
from assay.prompty.convert_fields import (
    fields_to_classic,
    fields_to_v2,
    outputs_to_v2,
    template_to_classic,
    template_to_v2,
)
from assay.prompty.dialect import CONNECTION, PARAMETERS, PROVIDERS, in_plain_words
from assay.prompty.model import loads
from assay.prompty.rewrite import replace_blocks
from assay.prompty.source import normal

Target = Literal["classic", "v2"]

_TO_V2_OPTION = {
    "temperature": "temperature",
    "max_tokens": "maxOutputTokens",
    "top_p": "topP",
    "top_k": "topK",
    "stop": "stopSequences",
    "seed": "seed",
    "frequency_penalty": "frequencyPenalty",
    "presence_penalty": "presencePenalty",
    "reasoning_effort": "reasoningEffort",
}
_NOT_SENT = ("stream", "deployment_name", "model", "model_id")
"""Parameters that name something else than sampling: they never become wire settings."""
_CLASSIC_WORDS = {
    "azure": ("azure_deployment", "azure_endpoint"),
    "project": ("byo_model", "project_endpoint"),
}
"""What a classic file calls the model and the address of a provider."""
_MODEL_BLOCKS = ("api", "apiType", "configuration", "connection", "parameters", "options", "id")


@dataclass(frozen=True, slots=True)
class Converted:
    """The converted text, and what a person should know about it."""

    text: str
    notes: list[str] = field(default_factory=list)


def convert(text: str, to: Target, path: Path | None = None) -> Converted:
    """The file in the dialect `to`. Raises PromptyError where it cannot be loaded.

    The body stays byte for byte. Settings without a place in the other dialect are named in
    the notes.
    """
    prompty = loads(normal(text), path)
    if prompty.dialect == "G":
        return Converted(text, ["the file has no front matter: nothing to convert"])
    notes: list[str] = []
    blocks: dict[str, Any] = {}
    for key, build in _BLOCKS[to].items():
        value = prompty.front.get(key)
        made = build(value, notes) if value is not None else None
        if made is not None and made != value:
            blocks[key] = made
    if not blocks:
        return Converted(text, [*notes, f"nothing to convert: the file is written as {to} already"])
    result, more = replace_blocks(text, blocks, path)
    converted = loads(normal(result), path)
    if converted.body != prompty.body:
        raise PromptyError("the conversion would change the body", path=path)
    return Converted(result, [*notes, *more])


def _model_to_v2(model: Any, notes: list[str]) -> Any:
    if not isinstance(model, Mapping):
        return None
    settings, rest, name = _connection_settings(model, notes)
    parameters = _merged(model)
    made: dict[str, Any] = {}
    deployment = model.get("id", settings.pop("deployment", None))
    for key in ("deployment_name", "model", "model_id"):
        deployment = deployment or parameters.get(key)
    if deployment is not None:
        made["id"] = deployment
    provider = settings.pop("provider", None)
    if provider is not None:
        made["provider"] = "foundry" if provider == "azure_openai" else provider
    api = model.get("apiType", model.get("api"))
    if api is not None:
        made["apiType"] = api
    made |= {key: value for key, value in model.items() if _is_own(key)}
    connection: dict[str, Any] = {}
    if name is not None:
        connection = {"kind": "reference", "name": name}
    elif settings or rest:
        connection = {"kind": "key"}
    words = {"api_key": "apiKey", "api_version": "apiVersion"}
    connection |= {words.get(key, key): value for key, value in settings.items()} | rest
    reference = _reference(model, "configuration", "connection")
    if reference and connection:
        lost = ", ".join(key for key in connection if key != "kind")
        notes.append(f"{lost} cannot be carried over: the connection is {reference}")
    made["connection"] = reference or connection
    made["options"] = _reference(model, "parameters", "options") or _options(parameters)
    return {key: value for key, value in made.items() if value != {}}


def _model_to_classic(model: Any, notes: list[str]) -> Any:
    if isinstance(model, str) and "${" not in model:
        return {"configuration": {"model": model}}
    if not isinstance(model, Mapping):
        return None
    settings, rest, name = _connection_settings(model, notes)
    made: dict[str, Any] = {}
    api = model.get("api", model.get("apiType"))
    if api is not None:
        made["api"] = api
    made |= {key: value for key, value in model.items() if _is_own(key)}
    provider = settings.pop("provider", None)
    if provider in ("foundry", "azure"):
        provider = "azure_openai"
    named, at = _CLASSIC_WORDS.get(PROVIDERS.get(str(provider), ""), ("model", "base_url"))
    configuration: dict[str, Any] = {}
    if provider is not None and (provider != "project" or "endpoint" not in settings):
        configuration["type"] = provider
    if name is not None:
        configuration["connection"] = name
    deployment = model.get("id", settings.pop("deployment", None))
    settings.pop("deployment", None)
    if deployment is not None:
        configuration[named] = deployment
    if "endpoint" in settings:
        configuration[at] = settings.pop("endpoint")
    configuration |= settings | rest
    reference = _reference(model, "configuration", "connection")
    if reference:
        made |= configuration  # beside the reference, where the loader reads it too
    made["configuration"] = reference or configuration
    parameters = {PARAMETERS.get(key, key): value for key, value in _merged(model).items()}
    made["parameters"] = _reference(model, "parameters", "options") or parameters
    return {key: value for key, value in made.items() if value != {}}


def _reference(model: Mapping[str, Any], *keys: str) -> str | None:
    """A block that is a `${file:...}` as a whole: it stays one."""
    found = [model.get(key) for key in keys]
    return next((text for text in found if isinstance(text, str) and text.startswith("${")), None)


def _is_own(key: str) -> bool:
    """Keys of `model` that are neither blocks nor connection settings: they stay."""
    words = {word for spellings in CONNECTION.values() for word in spellings}
    return key not in _MODEL_BLOCKS and key not in words


def _connection_settings(
    model: Mapping[str, Any], notes: list[str]
) -> tuple[dict[str, Any], dict[str, Any], str | None]:
    """(settings by our words, the service's own words, name of a connection to look up)."""
    settings: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    name: str | None = None
    for place in (model, model.get("connection"), model.get("configuration")):
        if isinstance(place, str) and not place.startswith("${"):
            name = place
        if not isinstance(place, Mapping):
            continue
        block = dict(place)
        if place is model:
            block = {key: value for key, value in block.items() if not _is_own(key)}
            for key in _MODEL_BLOCKS:
                block.pop(key, None)
        kind = block.pop("kind", None)
        if kind == "reference" and isinstance(block.get("name"), str):
            name = block.pop("name")
        elif kind not in (None, "key", "reference"):
            notes.append(f"connection.kind `{kind}` cannot be carried over: say how to log in")
        if isinstance(block.get("connection"), str):
            name = block.pop("connection")
        block = in_plain_words(block)
        for word, spellings in CONNECTION.items():
            given = [key for key in spellings if block.get(key) is not None]
            if given:
                settings[word] = block[given[0]]
            for key in given[1:]:
                notes.append(f"`{key}` cannot be carried over: `{given[0]}` says the same")
            for key in spellings:
                block.pop(key, None)
        rest |= block
    return settings, rest, name


def _merged(model: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of both spellings in one, what `additionalProperties` holds among them."""
    merged: dict[str, Any] = {}
    for key in ("options", "parameters"):
        block = model.get(key)
        if isinstance(block, Mapping):
            merged |= block
    extra = merged.pop("additionalProperties", None)
    if isinstance(extra, Mapping):
        merged = dict(extra) | merged
    return merged


def _options(parameters: Mapping[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, value in parameters.items():
        wire = PARAMETERS.get(key, key)
        if wire in _TO_V2_OPTION:
            options[_TO_V2_OPTION[wire]] = value
        elif wire in _NOT_SENT or value is None:
            options[wire] = value
        else:
            extra[wire] = value
    if extra:
        options["additionalProperties"] = extra
    return options


_BLOCKS: Mapping[Target, Mapping[str, Any]] = {
    "v2": {
        "model": _model_to_v2,
        "inputs": fields_to_v2,
        "outputs": outputs_to_v2,
        "template": template_to_v2,
    },
    "classic": {
        "model": _model_to_classic,
        "inputs": fields_to_classic,
        "outputs": fields_to_classic,
        "template": template_to_classic,
    },
}
