"""What the prompts of a metric are given from a row: the row's part of every step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import yaml

from assay.errors import AssayError
from assay.metric.columns import Binding
from assay.metric.inputs import bind, is_empty
from assay.prompty import Input
from assay.prompty.fields import read_inputs


class Given:
    """The row's values for each prompt of one evaluator, from the run's header."""

    def __init__(self, evaluator: Mapping[str, Any]) -> None:
        self._binding = Binding(evaluator.get("columns") or {}, evaluator.get("aliases") or {})
        self._inputs: Mapping[str, Input] = {}
        self._steps: dict[str, list[dict[str, str]]] = {}
        self.description = ""
        if evaluator.get("kind") == "metric":
            self._read(str(evaluator.get("text")))

    def values(self, prompt: str, columns: Mapping[str, Any]) -> list[dict[str, Any]]:
        """What the prompt may have been given: one possibility for each step that names it."""
        row = self._binding.values(columns)
        if not self._steps:
            return [row]
        try:
            scope = bind(self._inputs, row)
        except AssayError:
            return []
        for name, value in scope.items():
            if isinstance(value, str) and not value.strip():
                scope[name] = ""
            elif isinstance(value, list):
                scope[name] = [element for element in value if not is_empty(element)]
        return [
            {name: scope[source] for name, source in step.items() if source in scope}
            for step in self._steps.get(prompt, [])
        ]

    def _read(self, text: str) -> None:
        """The steps of a metric.yaml: prompt file to (input of the prompt: input of the metric)."""
        try:
            found = yaml.safe_load(text)
            inputs = read_inputs(found.get("inputs"))
            steps = [step for entry in found["steps"] for step in entry.values()]
        except (yaml.YAMLError, AssayError, AttributeError, KeyError, TypeError):
            return
        self.description = str(found.get("description") or "")
        self._inputs = {name: replace(item, required=False) for name, item in inputs.items()}
        for step in steps:
            if isinstance(step, Mapping) and isinstance(step.get("prompt"), str):
                given = {str(n): str(e) for n, e in (step.get("in") or {}).items()}
                self._steps.setdefault(PurePath(step["prompt"]).name, []).append(given)
