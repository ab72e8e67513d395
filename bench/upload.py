"""What an upload of 10,000 rows x 4 metrics to Foundry costs: CPU seconds and peak memory.

The project is the loopback fake of the tests, in a process of its own, so that only the client's
own cost is counted.

    python bench/upload.py [ROWS]
"""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

METRICS = ("similarity", "groundedness", "relevance", "coherence")
WORDS = "the answer names the opening hours of the desk and where to ask for a refund "

CLIENT = """
import asyncio, json, resource, sys, time
from assay.azure import find_project, log_run
started = time.perf_counter()
found = asyncio.run(log_run(sys.argv[1], find_project(sys.argv[2])))
usage = resource.getrusage(resource.RUSAGE_SELF)
heavy = [name for name in sys.modules if name.startswith(("azure.ai", "openai", "pandas"))]
print(json.dumps({
    "rows": found["rows"], "counts": found["counts"],
    "cpu_s": usage.ru_utime + usage.ru_stime, "peak_mb": usage.ru_maxrss / 1024,
    "wall_s": time.perf_counter() - started, "modules": len(sys.modules), "heavy": heavy,
}))
"""


def make_run(folder: Path, rows: int) -> Path:
    """A run directory as `assay run` writes it, made without asking anybody."""
    folder.mkdir(parents=True)
    scale = {"type": "integer", "minimum": 1, "maximum": 5, "threshold": 3}
    outputs = {"reason": {"type": "string"}}
    header = {
        "assay": "bench",
        "name": "bench",
        "status": "finished",
        "rows": rows,
        "iterations": 1,
        "evaluators": {
            name: {"outputs": {**outputs, name: scale}, "scored": [name], "sha256": "0" * 64}
            for name in METRICS
        },
    }
    (folder / "run.json").write_text(json.dumps(header))
    with (folder / "rows.jsonl").open("w") as data, (folder / "scores.jsonl").open("w") as scores:
        for row in range(rows):
            columns = {"question": f"q{row} {WORDS}", "answer": WORDS * 4, "context": WORDS * 20}
            data.write(json.dumps({"row": row, "id": f"id{row}", "columns": columns}) + "\n")
            for name in METRICS:
                line = {
                    "row": row,
                    "evaluator": name,
                    "iteration": 0,
                    "status": "scored",
                    "outputs": {"reason": WORDS * 2, name: 1 + row % 5},
                    "calls": [{"prompt": name, "reply": WORDS * 2, "usage": {}}],
                }
                scores.write(json.dumps(line, separators=(",", ":")) + "\n")
    lines = (folder / "rows.jsonl").read_text().replace('{"row": ', '{"row":').replace(", ", ",")
    (folder / "rows.jsonl").write_text(lines)
    return folder


def serve(pipe: Connection, folder: str) -> None:
    """The fake project, until the other side says that it is done."""
    from tests.support.foundry import FakeFoundry
    from tests.support.tls import make_tls

    tls = make_tls(Path(folder))
    with FakeFoundry(tls) as running:
        pipe.send((running.endpoint, str(tls.cert)))
        pipe.recv()


def main() -> None:
    """Print what it cost as JSON."""
    from tests.support.foundry import TOKEN

    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as folder:
        run = make_run(Path(folder) / "run", rows)
        ours, theirs = multiprocessing.Pipe()
        server = multiprocessing.Process(target=serve, args=(theirs, folder))
        server.start()
        endpoint, cert = ours.recv()
        environment = {**os.environ, "SSL_CERT_FILE": cert, "AZURE_AI_PROJECT_TOKEN": TOKEN}
        command = [sys.executable, "-c", CLIENT, str(run), endpoint]
        started = time.perf_counter()
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        ours.send("done")
        server.join(10)
        if done.returncode:
            sys.exit(done.stderr)
        found = json.loads(done.stdout) | {"process_s": time.perf_counter() - started}
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
