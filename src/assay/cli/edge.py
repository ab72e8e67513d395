"""The way from a command to an edge of the house."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def edge(name: str) -> Any:
    """`assay.<name>`, loaded when a command needs it.

    By name, since edges never import each other: the command line is where they meet, and no
    other module of an edge may know another edge.
    """
    return import_module(f"assay.{name}")
