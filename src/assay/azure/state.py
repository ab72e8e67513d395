"""RUN/upload.json: how far an upload came, so that a repeat goes on from there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.run.journal import read_json, write_json

NAME = "upload.json"


@dataclass
class State:
    """The uploads of a run directory by their key: one for each project and content."""

    path: Path
    key: str
    all: dict[str, dict[str, Any]]

    @classmethod
    def read(cls, directory: Path, key: str) -> State:
        path = directory / NAME
        found = read_json(path).get("uploads", {}) if path.exists() else {}
        return cls(path, key, found)

    @property
    def entry(self) -> dict[str, Any]:
        """What is known of this upload."""
        return self.all.setdefault(self.key, {})

    def note(self, **facts: Any) -> None:
        """Keep what the service said, at once."""
        self.entry.update(facts)
        write_json(self.path, {"uploads": self.all})

    def result(self, directory: Path, rows: Any) -> dict[str, Any]:
        """What is printed: the ids under names of their own."""
        renamed = {"run": "run_id", "eval": "eval_id", "dataset": "dataset_id"}
        entry = {renamed.get(name, name): value for name, value in self.entry.items()}
        return {"run": str(directory), "rows": rows, **entry}
