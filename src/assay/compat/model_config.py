"""The model configurations of azure-ai-evaluation and promptflow, as judges."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from assay.errors import SetupError
from assay.judge import responses, wire
from assay.judge.base import Judge
from assay.judge.credential import Credential, Entra, Key, NoCredential
from assay.judge.embed import Embedder, WireEmbedder, resolve_embedder
from assay.judge.limits import Limited
from assay.judge.project import checked_endpoint, project_login
from assay.judge.resolve import resolve
from assay.prompty import Prompty

_AZURE = {"azure_endpoint", "azure_deployment", "api_key", "api_version", "credential", "type"}
_OPENAI = {"model", "api_key", "base_url", "organization", "extra_headers", "type"}
_PROJECT = {"byo_model", "project_endpoint", "credential", "type"}
_AZURE_TYPES = ("azure_openai", "azure_open_ai", "azure")

_FIXED = ("temperature", "top_p", "presence_penalty", "frequency_penalty", "max_tokens")
"""Parameters a reasoning model does not take."""

REASONING_TOKENS = 60_000


def judge_of(model_config: Any, credential: Any = None) -> Judge:
    """A judge from a model configuration, which is not changed.

    model_config: `{azure_endpoint, azure_deployment, api_key?, api_version?, credential?}`,
    `{model, api_key, base_url?, organization?, extra_headers?}`,
    `{byo_model, project_endpoint, credential?}`, with or without `type`, an object with such
    attributes, or whatever `assay.judge.resolve` takes. credential: an object with
    `get_token`; it wins over a key.
    Raises SetupError that names what is missing or not known.
    """
    if isinstance(model_config, str) or hasattr(model_config, "complete"):
        judge = resolve(model_config, credential=credential)
        return judge if isinstance(judge, Limited) or hasattr(judge, "decide") else Limited(judge)
    found = _settings(model_config)
    if found.get("byo_model"):
        return Limited(_project(found, credential))
    kind = str(found.get("type") or "").lower()
    if kind in _AZURE_TYPES or (not kind and ("azure_endpoint" in found or "model" not in found)):
        return Limited(_azure(found, credential))
    if kind in ("", "openai"):
        return Limited(_openai(found, credential))
    raise SetupError(f"model_config: type is azure_openai or openai, not {found['type']!r}")


def for_reasoning(prompty: Prompty) -> Prompty:
    """The same prompt without the parameters a reasoning model refuses, and with room to think.

    `is_reasoning_model=True` asks for it; without it they are left out once the model says so.
    """
    kept = {n: v for n, v in prompty.model.parameters.items() if n not in _FIXED}
    kept["max_completion_tokens"] = REASONING_TOKENS
    return replace(prompty, model=replace(prompty.model, parameters=kept))


def _settings(model_config: Any) -> dict[str, Any]:
    if isinstance(model_config, Mapping):
        found = dict(model_config)
    elif hasattr(model_config, "__dict__"):
        found = {k: v for k, v in vars(model_config).items() if not k.startswith("_")}
    else:
        raise SetupError(f"model_config must be a dict, not {type(model_config).__name__}")
    return {key: value for key, value in found.items() if value is not None}


def _check(found: Mapping[str, Any], known: set[str], needed: tuple[str, ...]) -> None:
    unknown = sorted(found.keys() - known)
    if unknown:
        names = ", ".join(sorted(known))
        raise SetupError(f"model_config: unknown {', '.join(unknown)}; known are {names}")
    missing = [name for name in needed if not str(found.get(name) or "").strip()]
    if missing:
        raise SetupError(f"model_config: {', '.join(missing)} is missing")


def _azure(found: Mapping[str, Any], credential: Any) -> Judge:
    _check(found, _AZURE, ("azure_endpoint", "azure_deployment"))
    endpoint = str(found["azure_endpoint"])
    source = credential or found.get("credential")
    login: Credential
    if found.get("api_key") and source is None:
        login = Key(str(found["api_key"]), bearer=False)
    else:
        login = Entra(endpoint, source)
    return wire.azure(
        str(found["azure_deployment"]),
        endpoint=endpoint,
        credential=login,
        api_version=str(found["api_version"]) if found.get("api_version") else None,
    )


def _project(found: Mapping[str, Any], credential: Any) -> Judge:
    _check(found, _PROJECT, ("byo_model", "project_endpoint"))
    endpoint = checked_endpoint(found["project_endpoint"], "project_endpoint")
    login = project_login(endpoint, credential or found.get("credential"))
    return responses.project(str(found["byo_model"]), endpoint=endpoint, credential=login)


def _openai(found: Mapping[str, Any], credential: Any) -> Judge:
    url = str(found.get("base_url") or "https://api.openai.com/v1")
    needs_key = "base_url" not in found and credential is None
    _check(found, _OPENAI, ("model", "api_key") if needs_key else ("model",))
    login: Credential
    if credential is not None:
        login = Entra(url, credential)
    else:
        login = Key(str(found["api_key"])) if found.get("api_key") else NoCredential()
    extra = {str(k): str(v) for k, v in (found.get("extra_headers") or {}).items()}
    if found.get("organization"):
        extra["OpenAI-Organization"] = str(found["organization"])
    if extra:
        login = WithHeaders(login, extra)
    return wire.openai(str(found["model"]), base_url=url, credential=login)


@dataclass(frozen=True)
class WithHeaders:
    """A login with further headers beside it. Their values are kept as secret as a key."""

    login: Credential
    extra: Mapping[str, str] = field(repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        return (*self.login.secrets, *(value for value in self.extra.values() if len(value) >= 8))

    async def headers(self) -> Mapping[str, str]:
        return {**self.extra, **await self.login.headers()}


def openai_judge(model: str, api_key: str | None) -> Judge:
    """An OpenAI model as Embedchain's configurations name it, or any judge by its name.

    Without api_key OPENAI_API_KEY is used; OPENAI_BASE_URL names another server.
    Raises SetupError where there is no key.
    """
    if ":" in model and api_key is None:
        return Limited(resolve(model))
    return Limited(_openai_model(model, api_key))


def embedder_of(name: str, api_key: str | None) -> Embedder:
    """The same for an embedder; `baseline` is the embedded one."""
    if name == "baseline" or (":" in name and api_key is None):
        found = resolve_embedder(name)
    else:
        judge = _openai_model(name, api_key)
        assert isinstance(judge, wire.OpenAIJudge)
        found = WireEmbedder.from_judge(judge)
    return found


def _openai_model(model: str, api_key: str | None) -> Judge:
    if api_key is None:
        return resolve(f"openai:{model}")
    base_url = os.environ.get("OPENAI_BASE_URL")
    found = {"model": model, "api_key": api_key, **({"base_url": base_url} if base_url else {})}
    return _openai(found, None)
