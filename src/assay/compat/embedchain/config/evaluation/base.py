"""Configurations of Embedchain's metrics, with the fields and defaults they have there."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from string import Template

Prompt = str | Path | Template | None
"""The path of a .prompty file, or a text with `$question`, `$context`, ... in it; None is ours."""


@dataclass(frozen=True)
class BaseConfig:
    """model: an OpenAI model, or a judge by its name (`azure:gpt-4o`, `ollama:llama3`).
    api_key: OPENAI_API_KEY where it is left out."""

    model: str = "gpt-4"
    api_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class ContextRelevanceConfig(BaseConfig):
    """language: taken and not needed, sentences are cut by their script. prompt: with
    `$question` and `$context`."""

    language: str = "en"
    prompt: Prompt = None


@dataclass(frozen=True)
class AnswerRelevanceConfig(BaseConfig):
    """embedder: an OpenAI embedding model, or an embedder by its name (`baseline`). prompt:
    with `$answer` and `$num_gen_questions`."""

    embedder: str = "text-embedding-ada-002"
    num_gen_questions: int = 1
    prompt: Prompt = None


@dataclass(frozen=True)
class GroundednessConfig(BaseConfig):
    """answer_claims_prompt: with `$question` and `$answer`. claims_inference_prompt: with
    `$context` and `$claim_statements`."""

    answer_claims_prompt: Prompt = None
    claims_inference_prompt: Prompt = None
