"""What tests of whole runs share: a metric, rows whose scores are known, and the command line.

Row n asks `q<n>` and the rule says its score is 1 + n % 5: a test computes by hand what a run
must hold, and the server needs no state to answer.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.server import Request

ASSAY = [sys.executable, "-c", "from assay.cli import main; main()"]
"""The command line in a process of its own."""

_METRIC = """---
name: On topic
description: How well the answer stays on the question.
model:
  api: chat
  parameters:
    temperature: 0
    max_tokens: 300
inputs:
  question:
    type: string
  answer:
    type: string
outputs:
  reason:
    type: string
  score:
    type: integer
    minimum: 1
    maximum: 5
    threshold: 3
---
system:
You mark answers. Reply with one JSON object that has the keys "reason" and "score".

user:
QUESTION: {{question}}
ANSWER: {{answer}}
"""

_ASKED = re.compile(r"QUESTION: q(\d+)\b")


def write_metric(folder: Path, name: str = "on_topic", *, extra: str = "") -> Path:
    """A metric file called `name`; `extra` is one more sentence for the judge."""
    path = folder / f"{name}.prompty"
    path.write_text(_METRIC.replace("You mark answers.", f"You mark answers. {extra}".strip()))
    return path


def write_lines(path: Path, records: Sequence[Mapping[str, Any]]) -> Path:
    """A JSONL file."""
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    path.write_text(text, "utf-8")
    return path


def rows(count: int) -> list[dict[str, Any]]:
    return [{"question": f"q{n}", "answer": f"a{n}"} for n in range(count)]


def asked(request: Request) -> int:
    """The number of the row a request is about."""
    found = _ASKED.search(request.text)
    assert found, request.text
    return int(found[1])


def score_for(number: int) -> int:
    return 1 + number % 5


def reply_for(number: int) -> str:
    return json.dumps({"reason": f"because of {number}", "score": score_for(number)})


def judged(request: Request) -> str:
    """A server's reply: every row gets the score its rule says."""
    return reply_for(asked(request))


def mean_of(numbers: Sequence[int]) -> float:
    return sum(score_for(number) for number in numbers) / len(numbers)


def refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def journal(directory: str | Path, name: str = "scores.jsonl") -> list[dict[str, Any]]:
    """The lines of a run directory's file, read without our own reader and strictly."""
    data = (Path(directory) / name).read_bytes()
    assert data.endswith(b"\n") or not data, "a half line stayed"
    lines = data.decode("utf-8").split("\n")[:-1]
    return [json.loads(line, parse_constant=refuse) for line in lines]


def latest(directory: str | Path) -> dict[tuple[int, str, int], dict[str, Any]]:
    """The line that counts for every row x evaluator x iteration: the last one."""
    return {
        (line["row"], line["evaluator"], line["iteration"]): line for line in journal(directory)
    }


def statuses(directory: str | Path) -> Counter[str]:
    return Counter(line["status"] for line in latest(directory).values())


def only_run(folder: Path) -> Path:
    """The one run directory below `folder`/runs."""
    found = list((folder / "runs").iterdir())
    assert len(found) == 1, found
    return found[0]


def command(
    *arguments: str | Path, cwd: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `assay` to its end in a process of its own."""
    return subprocess.run(
        [*ASSAY, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


@contextmanager
def start(*arguments: str | Path, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """`assay` in a process of its own, which a failing test does not wait for."""
    process = subprocess.Popen(
        [*ASSAY, *map(str, arguments)],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    with process:
        try:
            yield process
        finally:
            process.kill()
