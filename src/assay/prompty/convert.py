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
from assay.prompty.dialect import CONNECTION, PARAMETERS, PROVIDERS
from assay.prompty.model import loads
from assay.prompty.rewrite import replace_blocks

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
_TO_V2_KIND = {
    "string": "string",
    "str": "string",
    "text": "string",
    "int": "integer",
    "integer": "integer",
    "number": "float",
    "float": "float",
    "bool": "boolean",
    "boolean": "boolean",
    "list": "array",
    "array": "array",
    "dict": "object",
    "object": "object",
}
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
    prompty = loads(text.replace("\r\n", "\n").replace("\r", "\n"), path)
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
    converted = loads(result.replace("\r\n", "\n").replace("\r", "\n"), path)
    if converted.body != prompty.body:
        raise PromptyError("the conversion would change the body", path=path)
    return Converted(result, [*notes, *more])


def _model_to_v2(model: Any, notes: list[str]) -> Any:
    if not isinstance(model, Mapping):
        return None
    settings, rest, name = _connection_settings(model, notes)
    parameters = _merged(model, notes)
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
    if connection:
        made["connection"] = connection
    options = _options(parameters)
    if isinstance(model.get("parameters"), str):
        options = model["parameters"]
    if options:
        made["options"] = options
    return made


def _model_to_classic(model: Any, notes: list[str]) -> Any:
    if isinstance(model, str):
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
    is_azure = PROVIDERS.get(str(provider)) == "azure"
    configuration: dict[str, Any] = {}
    if provider is not None:
        configuration["type"] = provider
    if name is not None:
        configuration["connection"] = name
    deployment = model.get("id", settings.pop("deployment", None))
    settings.pop("deployment", None)
    if deployment is not None:
        configuration["azure_deployment" if is_azure else "model"] = deployment
    if "endpoint" in settings:
        configuration["azure_endpoint" if is_azure else "base_url"] = settings.pop("endpoint")
    configuration |= settings | rest
    if configuration:
        made["configuration"] = configuration
    parameters = {PARAMETERS.get(key, key): value for key, value in _merged(model, notes).items()}
    if isinstance(model.get("options"), str):
        made["parameters"] = model["options"]
    elif parameters:
        made["parameters"] = parameters
    return made


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
        if isinstance(place, str):
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


def _merged(model: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    """Parameters of both spellings in one, what `additionalProperties` holds among them."""
    merged: dict[str, Any] = {}
    for key in ("options", "parameters"):
        block = model.get(key)
        if isinstance(block, Mapping):
            merged |= block
    extra = merged.pop("additionalProperties", None)
    if isinstance(extra, Mapping):
        unsent = [key for key in extra if key in _NOT_SENT]
        for key in unsent:
            notes.append(f"`additionalProperties.{key}` cannot be carried over")
        merged = {key: value for key, value in extra.items() if key not in unsent} | merged
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


def _fields_to_v2(declared: Any, notes: list[str]) -> Any:
    if not isinstance(declared, Mapping):
        return None
    if isinstance(declared.get("properties"), Mapping):
        notes.append("outputs written as one JSON Schema object stay as they are")
        return None
    return [_field_to_v2(name, spec, notes) for name, spec in declared.items()]


def _field_to_v2(name: Any, spec: Any, notes: list[str]) -> dict[str, Any]:
    made: dict[str, Any] = {"name": str(name)}
    if not isinstance(spec, Mapping):
        kind = _TO_V2_KIND.get(spec.strip().lower()) if isinstance(spec, str) else None
        made["kind"] = kind or "any"
        if spec is not None and kind is None:
            made["example"] = spec
        return made
    words = dict(spec)
    if words.pop("name", name) != name:
        notes.append(f"`{name}` has a key `name`, which is now taken: it cannot be carried over")
    declared = words.get("type", words.get("kind"))
    if isinstance(declared, list):
        made["kind"] = "any"
    else:
        made["kind"] = _TO_V2_KIND.get(str(declared).strip().lower(), declared or "any")
        if str(declared).strip().lower() in _TO_V2_KIND or declared is None:
            words.pop("type", None)
        words.pop("kind", None)
    if "sample" in words and "example" not in words:
        words["example"] = words.pop("sample")
    return made | words


def _outputs_to_v2(declared: Any, notes: list[str]) -> Any:
    made = _fields_to_v2(declared, notes)
    for entry in made or ():
        # An output that is declared by a word alone has no example: the word is its type.
        example = entry.pop("example", None) if len(entry) == 3 and entry["kind"] == "any" else None
        if isinstance(example, str):
            entry["kind"] = example
        elif example is not None:
            entry["example"] = example
    return made


def _fields_to_classic(declared: Any, notes: list[str]) -> Any:
    if not isinstance(declared, list):
        return None
    made: dict[str, Any] = {}
    for entry in declared:
        if isinstance(entry, str):
            made[entry] = {}
            continue
        words = dict(entry)
        name = str(words.pop("name", "") or "")
        if not name:
            notes.append("an entry without a name cannot be carried over")
            continue
        kind = words.pop("kind", None)
        if kind is not None and kind != "any" and "type" not in words:
            words = {"type": "number" if kind == "float" else kind, **words}
        if "example" in words and "sample" not in words:
            words["sample"] = words.pop("example")
        made[name] = words
    return made


def _template_to_v2(declared: Any, notes: list[str]) -> Any:
    format_, parser, extra = _template_parts(declared)
    if format_ is None:
        return None
    made: dict[str, Any] = {"format": {"kind": format_} | extra}
    return made | {"parser": {"kind": parser or "prompty"}}


def _template_to_classic(declared: Any, notes: list[str]) -> Any:
    format_, parser, extra = _template_parts(declared)
    if format_ is None or isinstance(declared, str):
        return None
    if extra:
        notes.append(f"template.format.{', '.join(extra)} cannot be carried over")
    return {"type": format_} | ({"parser": parser} if parser else {})


def _template_parts(declared: Any) -> tuple[Any, Any, dict[str, Any]]:
    """(language, parser, further options) of any form of `template`."""
    if not isinstance(declared, Mapping):
        return declared, None, {}
    format_, parser = declared.get("format", declared.get("type")), declared.get("parser")
    extra = {"strict": declared["strict"]} if "strict" in declared else {}
    if isinstance(format_, Mapping):
        extra |= {key: value for key, value in format_.items() if key != "kind"}
        format_ = format_.get("kind")
    return format_, parser.get("kind") if isinstance(parser, Mapping) else parser, extra


_BLOCKS: Mapping[Target, Mapping[str, Any]] = {
    "v2": {
        "model": _model_to_v2,
        "inputs": _fields_to_v2,
        "outputs": _outputs_to_v2,
        "template": _template_to_v2,
    },
    "classic": {
        "model": _model_to_classic,
        "inputs": _fields_to_classic,
        "outputs": _fields_to_classic,
        "template": _template_to_classic,
    },
}
