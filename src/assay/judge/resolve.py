"""From a name, or from what a .prompty file says, to a judge."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from assay.config import load_config
from assay.errors import SetupError
from assay.judge.base import Judge
from assay.judge.credential import Credential, Entra, Key, NoCredential

if TYPE_CHECKING:
    from assay.prompty.dialect import Model

_KNOWN_HOSTS = ("api.openai.com", "localhost", "127.0.0.1", "::1")
_KNOWN_DOMAINS = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")

_ENVIRONMENT = re.compile(r"(?i)\$\{env:[^:{}]+\}(/[^{}]*)?")

WAYS_OUT = (
    "give one: --judge openai:MODEL (with OPENAI_API_KEY), --judge azure:DEPLOYMENT (with "
    "AZURE_OPENAI_ENDPOINT), --judge project:CONNECTION/DEPLOYMENT (with "
    "AZURE_AI_PROJECT_ENDPOINT), --judge ollama:MODEL, --base-url URL for any compatible server, "
    "--judge baseline (no key, no network; a baseline only), ASSAY_JUDGE, or `judge =` in "
    "assay.toml"
)


def resolve(
    name: str | Judge | None = None,
    *,
    model: Model | None = None,
    path: Path | None = None,
    base_url: str | None = None,
    credential: Any = None,
    timeout: float = 120.0,
) -> Judge:
    """The judge to use: `name`, else what the file's `model` says, ASSAY_JUDGE, assay.toml.

    name: `openai:MODEL`, `azure:DEPLOYMENT`, `project:CONNECTION/DEPLOYMENT`, `ollama:MODEL`,
    `baseline`, `scripted:FILE`, or a judge object. credential: an object with `get_token`, for
    Entra ID.
    Raises SetupError that shows the ways out where none is found or one is incomplete.
    """
    if name is not None and not isinstance(name, str):
        return name
    config = load_config()
    if name is None and model is not None:
        settings = _file_settings(model, path, config, credential)
        if settings is not None:
            return _connect(settings, base_url, credential, timeout)
    name = name or os.environ.get("ASSAY_JUDGE") or config.get("judge")
    if not name:
        named = model.connection_name if model is not None else None
        note = f"connection {named!r} of {path} is not in assay.toml; " if named else ""
        raise SetupError(f"no judge: {note}{WAYS_OUT}")
    provider, _, what = str(name).partition(":")
    if provider == "baseline":
        from assay.judge.baseline import BaselineJudge

        return BaselineJudge()
    if provider == "scripted" and what:
        from assay.judge.scripted import ScriptedJudge

        return ScriptedJudge.from_file(what)
    if provider not in ("openai", "azure", "project", "ollama") or not what:
        raise SetupError(f"unknown judge {name!r}: {WAYS_OUT}")
    return _connect({"provider": provider, "deployment": what}, base_url, credential, timeout)


def _file_settings(
    model: Model, path: Path | None, config: Mapping[str, Any], credential: Any
) -> dict[str, Any] | None:
    """The connection a file describes, its named connection filled in; None where it has none.

    Raises SetupError that lists every environment variable that is needed and not set.
    """
    from assay.prompty import references
    from assay.prompty.dialect import read_model

    settings = dict(model.connection)
    own = settings.get("endpoint")
    trusted = not own or _is_trusted(str(own))
    if model.connection_name:
        name = references.resolve_files(model.connection_name, path)
        named = _named_connection(config, str(name))
        if named is None and not (own or settings.get("api_key")):
            return None
        if named is not None:
            known = read_model({"model": {"configuration": named}}).connection
            settings = {**known, **{k: v for k, v in settings.items() if v}}
            trusted = trusted or own == known.get("endpoint")
            if not trusted and not model.connection.get("api_key"):
                settings.pop("api_key", None)
    if not settings.get("provider") and not settings.get("endpoint"):
        return None
    if credential is not None:
        settings.pop("api_key", None)
    missing = references.unset(settings)
    if missing:
        names = ", ".join(f"{name} ({why})" for name, why in missing.items())
        raise SetupError(f"{path or 'the file'}: environment variables needed: {names}")
    resolved: dict[str, Any] = references.resolve(settings, path)
    resolved["provider"] = _known_provider(settings)
    resolved["ambient"] = trusted
    return resolved


def _named_connection(config: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    connections = config.get("connections")
    named = connections.get(name) if isinstance(connections, Mapping) else None
    if named is not None and not isinstance(named, Mapping):
        raise SetupError(f"assay.toml: [connections.{name}] must be a table")
    return None if named is None else dict(named)


def _is_trusted(endpoint: str) -> bool:
    """Whether keys that a file does not name itself may go to the endpoint it names: files are
    half-trusted. An endpoint that is all the environment's is the user's own."""
    if _ENVIRONMENT.fullmatch(endpoint.strip()):
        return True
    host = _host(endpoint)
    return host in _KNOWN_HOSTS or host.endswith(_KNOWN_DOMAINS)


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _known_provider(settings: Mapping[str, Any]) -> str:
    from assay.prompty.dialect import PROVIDERS

    word = str(settings.get("provider") or "openai").lower()
    return PROVIDERS.get(word, word)


def _connect(
    settings: Mapping[str, Any], base_url: str | None, credential: Any, timeout: float
) -> Judge:
    provider = settings.get("provider")
    deployment = str(settings.get("deployment") or "").strip()
    if not deployment:
        raise SetupError(f"the {provider} connection names no model or deployment")
    if provider == "azure" and base_url is None:
        return _azure(deployment, settings, credential, timeout)
    if provider == "project":
        return _project(deployment, settings, base_url, credential, timeout)
    from assay.judge import wire

    if provider == "ollama":
        host = os.environ.get("OLLAMA_HOST") or "http://localhost:11434"
        host = host if "://" in host else f"http://{host}"
        url = base_url or settings.get("endpoint") or f"{host.rstrip('/')}/v1"
        login: Credential = NoCredential()
    elif provider in ("openai", "azure"):
        url = base_url or settings.get("endpoint") or os.environ.get("OPENAI_BASE_URL")
        login = _openai_login(settings, url, credential)
    else:
        raise SetupError(f"provider {provider!r} is not one assay can call: {WAYS_OUT}")
    return wire.openai(
        deployment,
        base_url=str(url or "https://api.openai.com/v1"),
        credential=login,
        name=f"{provider}:{deployment}",
        timeout=timeout,
    )


def _openai_login(settings: Mapping[str, Any], url: Any, credential: Any) -> Credential:
    if credential is not None:
        if not settings.get("ambient", True):
            raise SetupError(f"{url}: the login given in code is not sent where a file says")
        return Entra(str(url or ""), credential)
    key = _api_key(settings, "OPENAI_API_KEY")
    if key:
        return Key(key)
    if url and _host(str(url)) != "api.openai.com":
        return NoCredential()
    raise SetupError("no key for OpenAI: set OPENAI_API_KEY, or give --base-url for another server")


def _azure(deployment: str, settings: Mapping[str, Any], credential: Any, timeout: float) -> Judge:
    from assay.judge import wire

    endpoint = settings.get("endpoint") or os.environ.get("AZURE_OPENAI_ENDPOINT")
    if not endpoint:
        raise SetupError(
            f"azure:{deployment} needs its endpoint: set AZURE_OPENAI_ENDPOINT to "
            "https://NAME.openai.azure.com, or `azure_endpoint:` in the file or assay.toml"
        )
    key = _api_key(settings, "AZURE_OPENAI_API_KEY")
    login: Credential
    if key is None and not settings.get("ambient", True):
        raise SetupError(f"{endpoint}: no `api_key:`; the environment's login is not sent there")
    if key and credential is None:
        login = Key(key, bearer=False)
    else:
        login = Entra(str(endpoint), credential)
    version = settings.get("api_version") or os.environ.get("AZURE_OPENAI_API_VERSION")
    return wire.azure(
        deployment,
        endpoint=str(endpoint),
        credential=login,
        api_version=str(version) if version else None,
        timeout=timeout,
    )


def _project(
    model: str,
    settings: Mapping[str, Any],
    base_url: str | None,
    credential: Any,
    timeout: float,
) -> Judge:
    from assay.judge import project, responses

    given = base_url or settings.get("endpoint")
    named = given or project.named_project()
    if not named:
        raise SetupError(
            f"project:{model} needs its project: set AZURE_AI_PROJECT_ENDPOINT to "
            f"{project.FORM}, or `project_endpoint:` in the file, or azure_ai_project in assay.toml"
        )
    setting = "project_endpoint" if given else "azure_ai_project"
    endpoint = project.checked_endpoint(named, setting)
    if base_url is None and not settings.get("ambient", True):
        raise SetupError(f"{endpoint}: the environment's login is not sent where a file says")
    login = project.project_login(endpoint, credential)
    return responses.project(model, endpoint=endpoint, credential=login, timeout=timeout)


def _api_key(settings: Mapping[str, Any], variable: str) -> str | None:
    value = settings.get("api_key")
    if not value and settings.get("ambient", True):
        value = os.environ.get(variable)
    text = str(value).strip() if value else ""
    if text and not (text.isascii() and text.isprintable()):
        raise SetupError("the API key holds characters no key has; copy it again")
    return text or None
