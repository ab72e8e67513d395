"""The runs in a folder: what each is, and how far one that is going has come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from assay.errors import AssayError
from assay.report import about, words
from assay.report.entry import metrics_of
from assay.report.survey import Survey
from assay.run.journal import HEADER, SCORES, SUMMARY, read_json
from assay.run.record import Run

Stamp = tuple[tuple[int, int] | None, ...]


class Listing:
    """Looks at a folder again and again, and reads only what is new. Writes nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._progress: dict[str, Progress] = {}
        self._metrics: dict[str, tuple[Stamp, list[dict[str, Any]]]] = {}

    def directories(self) -> dict[str, Path]:
        """Name to directory of every run in the folder; the folder itself where it is a run."""
        if (self.folder / HEADER).is_file():
            return {self.folder.resolve().name: self.folder}
        if not self.folder.is_dir():
            return {}
        inside = self.folder.resolve()
        return {
            path.name: path
            for path in sorted(self.folder.iterdir(), reverse=True)
            if (path / HEADER).is_file() and path.resolve().is_relative_to(inside)
        }

    def entries(self) -> list[dict[str, Any]]:
        """What the list shows of every run, the newest first."""
        found = [self._entry(name, path) for name, path in self.directories().items()]
        return sorted(found, key=lambda entry: str(entry.get("started") or ""), reverse=True)

    def _entry(self, name: str, path: Path) -> dict[str, Any]:
        try:
            run = Run(path)
            state = about.state_of(run)
            entry = {
                "id": name,
                "name": run.name,
                "state": state,
                "status": words.RUN_WORDS.get(state, state),
                "started": run.header.get("started"),
                "date": words.date(run.header.get("started")),
                "judges": list(run.header.get("judges") or {}),
                "data": run.header["data"].get("name"),
                "rows": run.header.get("rows"),
            }
            if state == "going":
                watched = self._progress.setdefault(name, Progress(path))
                return {**entry, "progress": watched.look(run), "metrics": []}
            self._progress.pop(name, None)
            return {**entry, "metrics": self._means(name, run)}
        except (AssayError, KeyError, TypeError) as error:
            return {"id": name, "name": name, "state": "unreadable", "status": "cannot be read",
                    "problem": str(error), "metrics": []}  # fmt: skip

    def _means(self, name: str, run: Run) -> list[dict[str, Any]]:
        """Label and mean of each metric; worked out once for every state of the directory."""
        now = stamp(run.directory)
        known = self._metrics.get(name)
        if known is None or known[0] != now:
            summary = run.directory / SUMMARY
            metrics = (read_json(summary) if summary.is_file() else Survey(run).summary)["metrics"]
            means = [
                {"label": metric.label, "mean": words.mean(metrics[metric.key]["mean"])}
                for metric in metrics_of(run, metrics)
            ]
            known = self._metrics[name] = (now, means)
        return known[1]


class Progress:
    """How many scores a run holds so far. Each look reads only what was written since."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / SCORES
        self._read = 0
        self._statuses: dict[int, str] = {}

    def look(self, run: Run) -> dict[str, Any]:
        """`done` and `total` scores, and how many there are of each status."""
        places = {key: place for place, key in enumerate(run.keys)}
        for line in self._new_lines():
            place = places.get((line["evaluator"], line["iteration"]))
            if place is not None:  # a later line for the same score counts
                self._statuses[line["row"] * len(places) + place] = line["status"]
        total = int(run.header.get("rows") or 0) * len(places)
        counted = Counter(self._statuses.values())
        return {"done": len(self._statuses), "total": total, "statuses": dict(counted)}

    def _new_lines(self) -> list[Mapping[str, Any]]:
        if not self.path.is_file():
            return []
        with self.path.open("rb") as file:
            file.seek(self._read)
            fresh = file.read()
        whole = fresh.rfind(b"\n") + 1  # the last line may still be being written
        self._read += whole
        return [orjson.loads(line) for line in fresh[:whole].splitlines()]


def stamp(directory: Path) -> Stamp:
    """Changes with the files of a run."""
    found: list[tuple[int, int] | None] = []
    for name in (HEADER, SCORES, SUMMARY):
        path = directory / name
        stat = path.stat() if path.is_file() else None
        found.append((stat.st_mtime_ns, stat.st_size) if stat else None)
    return tuple(found)
