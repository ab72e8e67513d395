"""How long a report takes to write and to open, by number of rows.

    python bench/report_pages.py 10000 100000

Writes synthetic runs of so many rows x 4 metrics to a temporary folder, reports each in a
process of its own, and opens the page in Chromium where there is one.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from assay.jsontext import digest, dumps
from assay.metric.ask import messages_sha
from assay.metric.evaluator import PromptEvaluator
from assay.metric.inputs import bind
from assay.metric.registry import load
from assay.run.header import describe_evaluator
from assay.run.journal import write_json

METRICS = ("similarity", "groundedness", "relevance", "coherence")
COLUMNS = {
    "query": "question",
    "response": "answer",
    "context": "contexts",
    "ground_truth": "ground_truth",
}
DATA = Path(__file__).parents[1] / "datasets" / "support_desk.jsonl"


def make_run(folder: Path, count: int) -> Path:
    """A run directory as `assay run` leaves it behind, with scores drawn at random."""
    folder.mkdir()
    metrics: dict[str, PromptEvaluator] = {name: load(name) for name in METRICS}
    evaluators = {
        name: {
            **describe_evaluator(metric),
            "judge": "openai:m",
            "columns": {n: COLUMNS[n] for n in metric.inputs},
            "aliases": {},
        }
        for name, metric in metrics.items()
    }
    header = {"name": folder.name, "status": "finished", "data": {"name": "synthetic"}}
    more = {"rows": count, "iterations": 1, "judges": {"openai:m": {"model": "m"}}}
    write_json(folder / "run.json", {**header, **more, "evaluators": evaluators})
    draw = random.Random(1)
    base = [json.loads(line) for line in DATA.read_text("utf-8").splitlines()]
    with (folder / "rows.jsonl").open("wb") as rows, (folder / "scores.jsonl").open("wb") as scores:
        for number in range(count):
            row = {**base[number % len(base)], "id": f"r{number}"}
            row["question"] += f" (case {number})"
            line = {"row": number, "id": row["id"], "hash": digest(row), "columns": row}
            rows.write(dumps(line) + b"\n")
            for name, metric in metrics.items():
                scores.write(dumps(_score(number, name, metric, row, draw)) + b"\n")
    return folder


def _score(
    number: int, name: str, metric: PromptEvaluator, row: dict[str, Any], draw: random.Random
) -> dict[str, Any]:
    output = metric.outputs[name]
    value = draw.randint(int(output.minimum or 0), int(output.maximum or 1))
    reason = f"The response says what was asked for in case {number}; one detail is vague."
    reply = {"reason": reason, name: value}
    values = {n: row[COLUMNS[n]] for n in metric.inputs}
    scored = draw.random() > 0.02
    call = {
        "prompt": f"{name}.prompty",
        "reply": json.dumps(reply),
        "usage": {"prompt_tokens": 900, "completion_tokens": 40},
        "latency": 0.8,
        "model": "m",
        "messages_sha": messages_sha(metric.prompty.render(bind(metric.inputs, values))),
    }
    return {
        "row": number,
        "evaluator": name,
        "iteration": 0,
        "status": "scored" if scored else "invalid",
        "cause": None if scored else "unparseable",
        "message": None if scored else "no JSON object was found",
        "outputs": reply if scored else {},
        "calls": [call],
        "fingerprint": metric.fingerprint,
        "hash": digest(row),
    }


def measure(folder: Path) -> None:
    """Write the report in a child process, then open it."""
    code = (
        f"from assay import Run; Run({str(folder)!r}).report(); "
        "print(open('/proc/self/status').read())"
    )
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    seconds = time.perf_counter() - started
    # Not ru_maxrss: a child starts with what its parent has used.
    peak = int(done.stdout.partition("VmHWM:")[2].split()[0]) / 1024
    page = folder / "report.html"
    size = page.stat().st_size / 1e6
    print(f"{folder.name}: written in {seconds:.1f} s, peak {peak:.0f} MB, page {size:.1f} MB")
    opened(page)


def opened(page: Path) -> None:
    """Seconds until the table is there, and what filtering and searching take."""
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        print("  not opened: apt-get install chromium chromium-driver")
        return
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium  # named, so that selenium looks for none on the network
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
    browser.set_script_timeout(60)
    browser.get(page.as_uri())
    loaded = browser.execute_script(
        "return performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
    )
    search, again, chosen = (browser.execute_async_script(_TIMED, what) for what in _TASKS)
    browser.quit()
    print(f"  opened in {loaded:.0f} ms; first search {search:.0f} ms, the next {again:.0f} ms, "
          f"a filter {chosen:.0f} ms")  # fmt: skip


_TASKS = (
    "const s = document.querySelector('#tools input'); s.value = 'case 42';"
    "s.dispatchEvent(new Event('input'));",
    "const s = document.querySelector('#tools input'); s.value = 'case 7';"
    "s.dispatchEvent(new Event('input'));",
    "const s = document.querySelectorAll('#tools select')[1]; s.value = '2';"
    "s.dispatchEvent(new Event('change'));",
)
_TIMED = """
const [task, done] = arguments, said = document.querySelector(".said");
const before = said.textContent, start = performance.now();
new Function(task)();
const timer = setInterval(() => {
  if (said.textContent === before || said.textContent === "Searching") return;
  clearInterval(timer);
  done(performance.now() - start);
}, 2);
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for count in map(int, sys.argv[1:] or ["10000"]):
            measure(make_run(Path(folder) / f"{count} rows", count))


if __name__ == "__main__":
    main()
