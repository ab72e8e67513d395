"""`assay.toml`: what a team sets once, found in the working folder or above it.

judge = "azure:gpt-4o"

[connections.open_ai_connection]
type = "azure_openai"
azure_endpoint = "https://name.openai.azure.com"
api_key = "${env:AZURE_OPENAI_API_KEY}"
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay.errors import SetupError

NAME = "assay.toml"


def load_config(start: Path | None = None) -> Mapping[str, Any]:
    """The nearest `assay.toml` from `start` (the working folder) upwards; {} where none is."""
    folder = (start or Path.cwd()).resolve()
    for place in (folder, *folder.parents):
        path = place / NAME
        if path.is_file():
            try:
                return tomllib.loads(path.read_text("utf-8"))
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                raise SetupError(f"{path}: not valid TOML: {error}") from None
    return {}
