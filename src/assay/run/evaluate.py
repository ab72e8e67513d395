"""`evaluate`: from a data set and evaluators to a run on disk."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from assay import sync
from assay.errors import RunError, SetupError
from assay.judge.base import Judge
from assay.judge.cache import Cached, ReplyStore, cache_path
from assay.judge.connection import Connection
from assay.judge.limits import Limited
from assay.run.directory import make_directory
from assay.run.engine import Engine, Progress, Task
from assay.run.header import make_header, now, settle_scales
from assay.run.interrupt import Interrupts
from assay.run.journal import HEADER, ROWS, SCORES, SUMMARY, Lines, Lock, read_json, write_json
from assay.run.plan import Options, Plan, Source, prepare, try_target
from assay.run.progress import default_progress
from assay.run.record import Run
from assay.run.resume import Remaining, bind_as_before


def evaluate(
    data: Any,
    evaluators: Source | Iterable[Source] | Mapping[str, Source],
    *,
    progress: Progress | None = None,
    **options: Any,
) -> Run:
    """Score every row of `data` with every evaluator; the result is a run directory.

    data: a path to JSONL, JSON, CSV, TSV, Excel or Parquet; a list of dicts; a DataFrame.
    evaluators: names, .prompty paths, callables or evaluators; a mapping gives them names.
    judge: `openai:MODEL`, `azure:DEPLOYMENT`, `project:CONNECTION/DEPLOYMENT`, `ollama:MODEL`,
        `baseline`, `scripted:FILE` or a Judge; left out, each file's own model settings,
        ASSAY_JUDGE or assay.toml.
    columns: input to column, `{"answer": "response"}`, or the same under an evaluator's name.
    target: a callable or a flow folder that adds columns to each row before it is judged;
        target_model: the judge that answers for it.
    iterations: times each row is judged. name: part of the run directory's name.
    limit: only the first rows. resume: a run directory to finish; retry_failed: also redo its
        rows that have no score. reask: further tries for an invalid reply.
    embedder: what gives vectors to metrics that compare them; the embedded one by default.
    cache: keep good replies and use them again. budget: dollars after which the run stops.
    max_in_flight: requests at once, at most. base_url, credential, timeout: of the judge.
    azure_ai_project: where the finished run is shown, too: a Foundry endpoint, a hub project's
        dict, or True for the environment and assay.toml. It is tried before the first call.

    Every score is on disk when it is finished: an interrupted run can be resumed. Works inside
    a running event loop. Raises SetupError, DataError or PromptyError before any call is made.
    """
    unknown = options.keys() - Options.__dataclass_fields__.keys()
    if unknown:
        raise SetupError(f"evaluate() takes no {', '.join(sorted(unknown))}")
    plan = prepare(data, evaluators, Options(**options))
    shown = progress or default_progress()
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        try:
            return asyncio.run(_execute_and_show(plan, shown))
        except asyncio.CancelledError:  # the second signal
            raise KeyboardInterrupt from None
    return sync.run(_execute_and_show(plan, shown))


async def _execute_and_show(plan: Plan, progress: Progress) -> Run:
    """The run on disk first; then, if asked for, in an Azure AI project."""
    wanted, credential = plan.options.azure_ai_project, plan.options.credential
    if not wanted:
        return await execute(plan, progress)
    azure = import_module("assay.azure")  # by name, since imports go down only
    project = azure.find_project(wanted, credential if hasattr(credential, "get_token") else None)
    await azure.check_project(project)
    run = await execute(plan, progress)
    if run.header["status"] == "finished":
        await azure.log_run(run.directory, project)
    return run


async def execute(plan: Plan, progress: Progress) -> Run:
    """Make the calls, write the run, sum it up."""
    await _reach(plan)
    directory = _resumed(plan)
    if plan.target is not None and not plan.bindings and not bind_as_before(plan, directory):
        await try_target(plan)
    if directory is None:
        label = plan.options.name or "-".join(plan.evaluators)
        directory = make_directory(Path(plan.options.runs), label)
    lock = Lock(directory)
    store: ReplyStore | None = None
    try:
        store = ReplyStore(cache_path()) if plan.uses_cache() else None
        header = make_header(plan, directory)
        write_json(directory / HEADER, header)
        (directory / SUMMARY).unlink(missing_ok=True)
        header["status"] = await _run_engine(plan, directory, progress, store)
        header["judges"] = plan.describe_judges()
        header["ended"] = now()
        settle_scales(header, directory)
        write_json(directory / HEADER, header)
        run = Run(directory)
        run.summarise()
        return run
    finally:
        if store is not None:
            store.close()
        lock.release()
        for judge in plan.distinct_judges():
            await judge.close()
        for evaluator in plan.evaluators.values():
            embedder = getattr(evaluator, "embedder", None)
            if embedder is not None:
                await embedder.close()


async def _reach(plan: Plan) -> None:
    """Try every judge's address and login: neither a call nor a directory is made for nothing."""
    for judge in plan.distinct_judges():
        connection = judge.judge if isinstance(judge, Limited) else judge
        if isinstance(connection, Connection):
            await connection.reach()


async def _run_engine(
    plan: Plan, directory: Path, progress: Progress, store: ReplyStore | None
) -> str:
    """Score what is left of the run; `finished`, or why it ended early."""
    options = plan.options
    remaining = Remaining(plan, directory)
    judges = plan.distinct_judges()
    with Lines(directory / ROWS) as rows_file, Lines(directory / SCORES) as scores_file:
        engine = Engine(
            tasks=[_task(plan, name, store) for name in plan.evaluators],
            rows_file=rows_file,
            scores_file=scores_file,
            progress=progress,
            spending=remaining.run.spending(),
            judges=judges,
            budget=options.budget,
            target=plan.target,
            window=max(4 * options.max_in_flight, 8),
            reask=options.reask,
            row_timeout=options.row_timeout,
        )
        total = plan.survey.rows * len(engine.tasks) * options.iterations
        progress.start(total, remaining.done, engine.spending, judges)
        try:
            with _collecting_seldom(), Interrupts(engine, progress):
                await engine.run(remaining)
        finally:
            progress.stop()
    return engine.stopping or "finished"


@contextlib.contextmanager
def _collecting_seldom() -> Iterator[None]:
    """What was set up lives as long as the run, and many rows are under way at once: to look
    through them for garbage as often as Python does by itself costs up to a tenth of the CPU."""
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(10_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def _task(plan: Plan, name: str, store: ReplyStore | None) -> Task:
    evaluator, judge = plan.evaluators[name], plan.judges[name]
    judges: list[Judge | None] = [judge] * plan.options.iterations
    if store is not None and isinstance(judge, Limited):
        judges = [Cached(judge, store, iteration) for iteration in range(len(judges))]
    return Task(evaluator, plan.bindings[name], tuple(judges), evaluator.outputs)


def _resumed(plan: Plan) -> Path | None:
    """The directory to finish. Raises RunError where it cannot be finished with this plan."""
    if plan.options.resume is None:
        return None
    directory = Path(plan.options.resume)
    header = read_json(directory / HEADER)
    earlier = header["evaluators"]
    if int(header.get("iterations", 1)) != plan.options.iterations or list(earlier) != list(
        plan.evaluators
    ):
        raise RunError(
            f"{directory} was made with other evaluators or iterations: "
            f"{', '.join(earlier)} x {header.get('iterations', 1)}"
        )
    for name, judge in plan.judges.items():
        asked = earlier[name].get("judge")
        if asked != (judge.name if judge else None):
            raise RunError(
                f"{directory}: {name} was judged by {asked}; finish it with that judge, or "
                "start another run"
            )
    return directory
