"""Azure: a run on disk, shown in an Azure AI project. Nothing here is loaded unless asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.azure.check import check_project
    from assay.azure.faults import UploadError
    from assay.azure.log import log_run
    from assay.azure.outline import preview_run
    from assay.azure.project import find_project

_HOMES = {
    "UploadError": "assay.azure.faults",
    "check_project": "assay.azure.check",
    "diagnose": "assay.azure.doctor",
    "find_project": "assay.azure.project",
    "log_run": "assay.azure.log",
    "preview_run": "assay.azure.outline",
}

__all__ = ["UploadError", "check_project", "find_project", "log_run", "preview_run"]


def __getattr__(name: str) -> Any:
    """Load a name when it is used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'assay.azure' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
