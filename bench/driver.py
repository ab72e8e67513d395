"""One measured process: score N rows against the mock server, print what it cost as JSON.

    python bench/driver.py assay 1000 64 http://127.0.0.1:PORT/v1 WORKDIR
    python bench/driver.py floor 1000 64 http://127.0.0.1:PORT/v1 WORKDIR
    python bench/driver.py baseline 100000 0 - WORKDIR

`floor` is no evaluator: it posts the same bodies over raw aiohttp, parses and appends a line.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

METRIC = "similarity"
FILLER = "The inverter restarts after a firmware update and reports to the app within a minute. "


def write_rows(path: Path, count: int) -> None:
    """Rows of about 1.4 kB, each with an id the server can find in the request."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            row = {
                "id": f"rid-{number:06d}",
                "question": f"What happens after an update? (rid-{number:06d})",
                "answer": FILLER * 4,
                "ground_truth": FILLER * 3,
                "context": FILLER * 8,
            }
            file.write(json.dumps(row) + "\n")


def run_assay(data: Path, in_flight: int, base_url: str, work: Path) -> int:
    """The public door, as a user opens it. Returns rows with a score."""
    import assay
    from assay.run.progress import Silent

    judge = "baseline" if base_url == "-" else "openai:mock"
    options = {} if base_url == "-" else {"base_url": base_url, "max_in_flight": in_flight}
    run = assay.evaluate(
        data, [METRIC], judge=judge, runs=work / "runs", progress=Silent(), **options
    )
    return int(next(iter(run.metrics.values()))["scored"])


def run_floor(data: Path, in_flight: int, base_url: str, work: Path) -> int:
    """Post, parse, append: the least any evaluator must do on this stack."""
    import aiohttp

    from assay import prompty

    template = prompty.load(Path(__file__).parents[1] / "evaluators" / f"{METRIC}.prompty")
    row = json.loads(data.open(encoding="utf-8").readline())
    values = {"query": "QUESTION", "response": row["answer"], "ground_truth": row["ground_truth"]}
    body = json.dumps({"model": "mock", "messages": template.render(values)})

    async def main() -> int:
        done = 0
        with data.open(encoding="utf-8") as rows, (work / "floor.jsonl").open("w") as out:
            connector = aiohttp.TCPConnector(limit=0)
            async with aiohttp.ClientSession(connector=connector) as session:

                async def worker() -> None:
                    nonlocal done
                    for line in rows:
                        found = json.loads(line)
                        text = body.replace("QUESTION", found["question"])
                        async with session.post(
                            f"{base_url}/chat/completions", data=text.encode()
                        ) as answer:
                            reply = json.loads(await answer.read())
                        score = json.loads(reply["choices"][0]["message"]["content"])
                        out.write(json.dumps({"id": found["id"], **score}) + "\n")
                        done += 1

                await asyncio.gather(*(worker() for _ in range(in_flight)))
        return done

    return asyncio.run(main())


def main() -> None:
    kind, count, in_flight, base_url, folder = sys.argv[1:6]
    work = Path(folder)
    work.mkdir(parents=True, exist_ok=True)
    data = work / f"rows-{count}.jsonl"
    if not data.exists():
        write_rows(data, int(count))
    runner: Callable[[Path, int, str, Path], int] = run_floor if kind == "floor" else run_assay
    import aiohttp  # noqa: F401  (imports are a fixed cost, shown apart)

    if kind != "floor":
        import assay.run.evaluate  # noqa: F401
    imported = time.process_time()
    started = time.perf_counter()
    scored = runner(data, int(in_flight), base_url, work)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(
        json.dumps(
            {
                "scored": scored,
                "cpu": time.process_time() - imported,
                "import_cpu": imported,
                "wall": time.perf_counter() - started,
                "rss_mb": usage.ru_maxrss / 1024,
            }
        )
    )


if __name__ == "__main__":
    main()
