"""A run that is on disk, finished or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from assay.config import load_config
from assay.errors import SetupError
from assay.judge.base import Usage
from assay.judge.prices import Prices
from assay.metric.score import Call, Score, flat, reason_of
from assay.prompty import Output
from assay.prompty.fields import read_outputs
from assay.run.journal import HEADER, ROWS, SCORES, SUMMARY, Index, read_json, write_json
from assay.run.spending import Spending
from assay.run.summary import Tally


class Run:
    """A run directory, read. Rows and scores come in input order, one at a time.

    A result file of azure-ai-evaluation, or a folder that holds its `evaluation_results.json`,
    is read like one; `source` is then that file. Raises RunError or DataError for neither.
    """

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self.source: Path | None = None
        if not (self.directory / HEADER).is_file():
            from assay.run.results import cached, results_file

            self.source = results_file(self.directory)
            self.directory = cached(self.source) if self.source else self.directory
        self.header = read_json(self.directory / HEADER)

    def __repr__(self) -> str:
        return f"Run({str(self.directory)!r})"

    @property
    def name(self) -> str:
        return str(self.header.get("name") or self.directory.name)

    @property
    def evaluators(self) -> Mapping[str, Mapping[str, Any]]:
        """Evaluator name to what the header says of it."""
        found: Mapping[str, Mapping[str, Any]] = self.header["evaluators"]
        return found

    @cached_property
    def outputs(self) -> Mapping[str, Mapping[str, Output]]:
        """Evaluator name to the outputs it declared."""
        return {n: read_outputs(found.get("outputs")) for n, found in self.evaluators.items()}

    @cached_property
    def keys(self) -> list[tuple[str, int]]:
        """(evaluator, iteration) of every score a row gets."""
        count = int(self.header.get("iterations", 1))
        return [(name, i) for name in self.evaluators for i in range(count)]

    def score_index(self) -> Index:
        return Index(self.directory / SCORES, self.keys)

    def row_index(self) -> Index:
        return Index(self.directory / ROWS)

    def records(self) -> Iterator[tuple[dict[str, Any], list[dict[str, Any] | None]]]:
        """(row line, its score lines in the order of `keys`) for every row, in input order."""
        nothing: list[dict[str, Any] | None] = [None] * len(self.keys)
        pairs = zip_longest(self.row_index().read(), self.score_index().read())
        for rows, scores in islice(pairs, self.header.get("rows")):
            row, (line,) = rows or (scores[0], [None])
            yield line or {"row": row, "columns": {}}, scores[1] if scores else nothing

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What summary.json holds; made anew from the journal where it is not there."""
        path = self.directory / SUMMARY
        return read_json(path) if path.exists() else self.summarise()

    def spending(self) -> Spending:
        """An empty account with this run's judges and today's prices."""
        judges = {name: found.get("judge") for name, found in self.evaluators.items()}
        return Spending(Prices(load_config()), judges)

    def summarise(self) -> dict[str, Any]:
        """Make the summary from the journal and write it."""
        tally = Tally(self.evaluators, self.spending())
        rows = self.header.get("rows")  # a resumed run may have lost rows
        for _, records in islice(self.score_index().read(), rows):
            tally.add(records)
        summary = {"run": str(self.directory), "rows": rows, **tally.as_dict()}
        write_json(self.directory / SUMMARY, summary)
        self.__dict__["summary"] = summary
        return summary

    @property
    def metrics(self) -> dict[str, Any]:
        """`<evaluator>.<output>` to mean, sd, ci95, pass_rate and all counts."""
        found: dict[str, Any] = self.summary["metrics"]
        return found

    def rows(self) -> Iterator[dict[str, Any]]:
        """One flat dict a row and iteration: `inputs.<column>`, `outputs.<target column>`,
        `outputs.<evaluator>.<key>`, in input order."""
        iterations = int(self.header.get("iterations", 1))
        for line, records in self.records():
            for iteration in range(iterations):
                flat_row: dict[str, Any] = {"row": line["row"], "id": line.get("id")}
                if iterations > 1:
                    flat_row["iteration"] = iteration
                flat_row |= {f"inputs.{k}": v for k, v in line["columns"].items()}
                flat_row |= {f"outputs.{k}": v for k, v in (line.get("target") or {}).items()}
                for (name, i), record in zip(self.keys, records, strict=True):
                    if i == iteration and record is not None:
                        for key, value in flat(score_of(record), self.outputs[name]).items():
                            flat_row[f"outputs.{name}.{key}"] = value
                yield flat_row

    @property
    def studio_url(self) -> str | None:
        """The link to the run in Azure, once the service confirmed it."""
        path = self.directory / "upload.json"
        found = read_json(path)["uploads"].values() if path.exists() else ()
        return next((e["url"] for e in reversed(list(found)) if e.get("url")), None)

    def frame(self) -> Any:
        """The rows as a pandas DataFrame (extra `frames`)."""
        try:
            import pandas
        except ImportError:
            raise SetupError('a frame needs pandas: pip install "assay[frames]"') from None
        return pandas.DataFrame(list(self.rows()))

    def beside(self, name: str) -> Path:
        """Where a file that is made of the run goes: in its directory, or beside the result file
        it was read from."""
        if self.source is None:
            return self.directory / name
        return self.source.with_name(f"{self.source.stem}-{name}")

    def report(self, path: str | Path | None = None) -> Path:
        """Write the run as one HTML file: `report.html` in its directory, or `path`."""
        # By name, since imports go down only: `report` stands above `run` and reads it.
        written: Path = import_module("assay.report").write_report(
            self, path if path is not None else self.beside("report.html")
        )
        return written


def score_of(record: Mapping[str, Any]) -> Score:
    """A Score from its journal line."""
    calls = tuple(
        Call(**{**call, "usage": Usage(**call.get("usage", {}))})
        for call in record.get("calls", ())
    )
    outputs = record.get("outputs") or {}
    return Score(
        evaluator=record["evaluator"],
        status=record["status"],
        outputs=outputs,
        reason=record.get("reason") or reason_of(outputs),
        cause=record.get("cause"),
        message=record.get("message"),
        calls=calls,
        evidence=record.get("evidence") or {},
    )


def line_of(
    score: Score,
    *,
    row: int,
    iteration: int,
    fingerprint: str,
    row_hash: str,
    outputs: Mapping[str, Output],
) -> dict[str, Any]:
    """A score as its journal line; what is empty is left out. The first three keys lead."""
    results = {
        name: outputs[name].result(value)
        for name, value in score.outputs.items()
        if name in outputs and outputs[name].scored
    }
    line: dict[str, Any] = {
        "row": row,
        "evaluator": score.evaluator,
        "iteration": iteration,
        "status": score.status,
        "cause": score.cause,
        "message": score.message,
        "outputs": dict(score.outputs),
        "results": results,
    }
    if score.reason and score.reason not in score.outputs.values():
        line["reason"] = score.reason
    line["calls"] = [_call_line(call) for call in score.calls]
    if score.evidence:
        line["evidence"] = dict(score.evidence)
    return line | {"fingerprint": fingerprint, "hash": row_hash}


def _call_line(call: Call) -> dict[str, Any]:
    usage = {
        name: value for name in Usage.__dataclass_fields__ if (value := getattr(call.usage, name))
    }
    line: dict[str, Any] = {"prompt": call.prompt, "reply": call.reply, "usage": usage}
    for name in ("latency", "attempts", "finish_reason", "model", "messages_sha"):
        line[name] = getattr(call, name)
    for name in ("inputs", "note", "cached"):
        if getattr(call, name):
            line[name] = getattr(call, name)
    return line
