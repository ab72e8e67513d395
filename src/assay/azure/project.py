"""Which Azure AI project: a Foundry endpoint or a hub project, and how to log in to it.

The argument counts first, then AZURE_AI_PROJECT_ENDPOINT or AZURE_AI_PROJECT, then
`azure_ai_project` in assay.toml.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from assay.errors import SetupError
from assay.judge.project import FORM, checked_endpoint, environment_token, named_project

_HUB = ("subscription_id", "resource_group_name", "project_name")


@dataclass(frozen=True)
class Foundry:
    """A project of the Foundry portal, by its endpoint. The login is left out of what is shown."""

    endpoint: str
    credential: Any = field(default=None, repr=False, compare=False)

    @property
    def label(self) -> str:
        return self.endpoint

    @property
    def host(self) -> str:
        return urlsplit(self.endpoint).netloc


@dataclass(frozen=True)
class Hub:
    """A hub project of the old portal."""

    subscription_id: str
    resource_group_name: str
    project_name: str
    credential: Any = field(default=None, repr=False, compare=False)

    @property
    def label(self) -> str:
        return f"{self.subscription_id}/{self.resource_group_name}/{self.project_name}"

    def as_dict(self) -> dict[str, str]:
        """The dict azure-ai-evaluation takes."""
        return {name: getattr(self, name) for name in _HUB}


Project = Foundry | Hub


def find_project(given: Any = None, credential: Any = None) -> Project:
    """The project that is meant. Raises SetupError that shows the ways to name one.

    given: an endpoint, a dict with subscription_id, resource_group_name and project_name, the
    same as JSON or joined by `/`, or None or True for the environment and assay.toml.
    """
    named = None if given is True else given
    chosen = named or named_project()
    if not chosen:
        raise SetupError(
            f"no Azure AI project: give --azure-ai-project {FORM}, set "
            "AZURE_AI_PROJECT_ENDPOINT, or put azure_ai_project into assay.toml"
        )
    if isinstance(chosen, Foundry | Hub):
        return chosen
    return _read(chosen, credential or environment_token())


def _read(chosen: Any, credential: Any) -> Project:
    if isinstance(chosen, str):
        text = chosen.strip()
        if text.startswith("{"):
            try:
                return _read(json.loads(text), credential)
            except ValueError:
                raise SetupError(f"azure_ai_project {text!r} is not JSON") from None
        if "://" in text:
            return Foundry(checked_endpoint(text), credential)
        parts = re.split(r"[;/]", text.strip("/"))
        if len(parts) == 4 and ";" in text:  # the hub's connection string leads with its host
            parts = parts[1:]
        if len(parts) == 3 and all(parts):
            return _hub(dict(zip(_HUB, parts, strict=True)), credential)
    if isinstance(chosen, Mapping):
        missing = [name for name in _HUB if not chosen.get(name)]
        if missing:
            raise SetupError(f"azure_ai_project: a hub project also needs {', '.join(missing)}")
        return _hub(chosen, credential)
    raise SetupError(
        f"azure_ai_project {chosen!r} is neither {FORM} nor SUBSCRIPTION/RESOURCE_GROUP/PROJECT"
    )


def _hub(named: Mapping[str, Any], credential: Any) -> Hub:
    subscription, group, project = (str(named[name]) for name in _HUB)
    return Hub(subscription, group, project, credential)
