"""The benchmark: what a row costs, against the least it can cost. `make bench`.

rows/s is from the first to the last request, `overall` from the call to the finished summary.
Everything runs on loopback, bounded in count; it takes about four minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ANSWER = '{"reason": "The same facts.", "similarity": 2}'


class Server:
    """The mock judge as a process of its own."""

    def __init__(self, latency_ms: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "mock_server.py"), "--port", "0"]
            + ["--latency-ms", str(latency_ms), "--answer", ANSWER],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.port = self.process.stdout.readline().split()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def stats(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/stats") as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


def measure(kind: str, rows: int, in_flight: int, latency_ms: int, repeat: int) -> dict[str, float]:
    """Medians over `repeat` fresh processes, each with a fresh server and an empty cache."""
    found: list[dict[str, float]] = []
    for _ in range(repeat):
        server = None if kind == "baseline" else Server(latency_ms)
        with tempfile.TemporaryDirectory() as work:
            command = [sys.executable, str(HERE / "driver.py"), kind, str(rows), str(in_flight)]
            command += [server.url if server else "-", work]
            environment = {**os.environ, "ASSAY_CACHE": f"{work}/replies.sqlite"}
            done = subprocess.run(
                command, stdout=subprocess.PIPE, check=True, env=environment, cwd=work
            )
            result = json.loads(done.stdout)
        if server is not None:
            stats = server.stats()
            result["rows_per_s"] = rows / (stats["last"] - stats["first"])
            server.stop()
        if result["scored"] != rows:
            raise SystemExit(f"{kind}: {result['scored']} of {rows} rows have a score")
        found.append(result)
    return {key: statistics.median(result[key] for result in found) for key in found[0]}


def imports() -> str:
    """Modules and CPU of `import assay`, and CPU of `assay --help`, in fresh processes."""
    code = (
        "import sys, time; a = time.process_time(); import assay; "
        "print(len(sys.modules), round(time.process_time() - a, 3))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    help_code = (
        "import time, sys; sys.argv = ['assay', '--help']\n"
        "from assay.cli import app\n"
        "try: app()\n"
        "except SystemExit: pass\n"
        "print(time.process_time(), file=sys.stderr)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", help_code], capture_output=True, text=True, check=True
    )
    modules, cpu = done.stdout.split()
    help_cpu = float(shown.stderr.strip().splitlines()[-1])
    return f"import assay: {modules} modules, {cpu} s of CPU; assay --help: {help_cpu:.2f} s of CPU"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3, help="processes a cell; medians are shown")
    parser.add_argument("--quick", action="store_true", help="no 100,000-row cells")
    chosen = parser.parse_args()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}")
    print(imports())
    head = f"{'what':<10}{'rows':>8}{'in flight':>11}{'latency':>9}"
    print(head + f"{'CPU s/1k':>10}{'rows/s':>8}{'overall':>9}{'peak MB':>9}")
    cells = [
        ("floor", 1000, 64, 200, chosen.repeat),
        ("assay", 1000, 64, 200, chosen.repeat),
        ("floor", 1000, 256, 200, chosen.repeat),
        ("assay", 1000, 256, 200, chosen.repeat),
        ("assay", 1000, 64, 0, chosen.repeat),
        ("assay", 10_000, 64, 0, 1),
    ]
    if not chosen.quick:
        cells += [("assay", 100_000, 64, 0, 1), ("baseline", 100_000, 0, 0, 1)]
    for kind, rows, in_flight, latency, repeat in cells:
        got = measure(kind, rows, in_flight, latency, repeat)
        overall = rows / got["wall"]
        rate = got.get("rows_per_s", overall)
        print(
            f"{kind:<10}{rows:>8}{in_flight or '-':>11}{latency:>6} ms"
            f"{got['cpu'] / rows * 1000:>10.2f}{rate:>8.0f}{overall:>9.0f}{got['rss_mb']:>9.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
