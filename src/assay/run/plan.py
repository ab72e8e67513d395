"""A run before its first call: everything that can be checked without one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.config import load_config
from assay.errors import SetupError
from assay.judge.base import Judge, is_decider
from assay.judge.embed import resolve_embedder
from assay.judge.limits import Limited
from assay.judge.model import ModelJudge
from assay.judge.prices import Prices
from assay.judge.resolve import resolve
from assay.judge.scripted import ScriptedJudge
from assay.metric.columns import Binding, bind_columns, check_mapping, mapping_for
from assay.metric.evaluator import Evaluator, PromptEvaluator
from assay.metric.multistep import MetricEvaluator
from assay.metric.registry import load
from assay.run.data import Data, Survey
from assay.run.target import Target, load_target

Source = str | Path | Callable[..., Any] | Evaluator


@dataclass(frozen=True)
class Options:
    """How a run is made. Every field has the same name as an argument of `evaluate`."""

    judge: str | Judge | None = None
    columns: Mapping[str, Any] | None = None
    target: Any = None
    target_model: str | Judge | None = None
    iterations: int = 1
    name: str | None = None
    limit: int | None = None
    encoding: str | None = None
    runs: str | Path = "runs"
    resume: str | Path | None = None
    retry_failed: bool = False
    reask: int = 1
    embedder: Any = None
    cache: bool = True
    budget: float | None = None
    max_in_flight: int = 64
    base_url: str | None = None
    credential: Any = field(default=None, repr=False)
    azure_ai_project: Any = None
    timeout: float = 120.0
    row_timeout: float = 1800.0

    def describe(self) -> dict[str, Any]:
        """What a run is resumed with; objects and secrets are left out."""
        kept = (
            "judge",
            "columns",
            "target",
            "target_model",
            "base_url",
            "embedder",
            "reask",
            "max_in_flight",
            "cache",
            "timeout",
            "row_timeout",
        )
        return {
            name: str(value) if isinstance(value, Path) else value
            for name in kept
            if isinstance(value := getattr(self, name), str | int | float | Mapping | Path)
        }


@dataclass
class Plan:
    """Everything that is known before the first call."""

    data: Data
    survey: Survey
    evaluators: dict[str, Evaluator]
    judges: dict[str, Judge | None]
    target: Target | None
    options: Options
    bindings: dict[str, Binding] = field(default_factory=dict)
    target_rows: dict[int, dict[str, Any]] = field(default_factory=dict)

    def distinct_judges(self) -> list[Judge]:
        """Every judge of the run once, the target's model included."""
        found = [judge for judge in self.judges.values() if judge is not None]
        if self.target is not None and self.target.model is not None:
            found.append(self.target.model)
        return list({id(judge): judge for judge in found}.values())

    def uses_cache(self) -> bool:
        """Whether any judge's replies are worth keeping: scripts and the baseline are free."""
        return self.options.cache and any(
            isinstance(judge, Limited) and not isinstance(judge.judge, ScriptedJudge)
            for judge in self.judges.values()
        )

    def describe_judges(self) -> dict[str, Any]:
        return {judge.name: judge.describe() for judge in self.distinct_judges()}


def prepare(data: Any, evaluators: Any, options: Options) -> Plan:
    """Check everything that can be checked without a call."""
    if options.budget is not None:
        _check_budget(options)
    if options.iterations < 1:
        raise SetupError("iterations must be 1 or more")
    chosen = _load_all(evaluators)
    rows = (
        data
        if isinstance(data, Data)
        else Data(data, encoding=options.encoding, limit=options.limit)
    )
    mapping = options.columns or {}
    check_mapping(mapping, {name: found.inputs for name, found in chosen.items()})
    survey = rows.survey()
    chosen = {name: _with_embedder(found, options) for name, found in chosen.items()}
    judges = _resolve_judges(chosen, options)
    for name, found in chosen.items():
        found.check(judges[name])
    target = _target(options, judges) if options.target is not None else None
    plan = Plan(rows, survey, chosen, judges, target, options)
    if target is not None:
        target.check(survey.columns)
    if target is None or target.outputs:
        bind_plan(plan, survey.columns + (target.outputs if target else ()))
    return plan


def _check_budget(options: Options) -> None:
    """A budget needs a price, or it would never be used up."""
    if not options.budget or options.budget <= 0:
        raise SetupError(f"a budget is more than 0 dollars, not {options.budget}")
    name = options.judge
    if isinstance(name, str) and Prices(load_config()).of(name) is None:
        model = name.partition(":")[2]
        raise SetupError(
            f'--budget needs a price for {name}: put [prices."{model}"] with input and output '
            "(dollars for a million tokens) into assay.toml"
        )


def bind_plan(plan: Plan, columns: tuple[str, ...]) -> None:
    """Decide the columns of every evaluator. Raises SetupError for what no row has."""
    for name, found in plan.evaluators.items():
        mapping = mapping_for(name, found.inputs, plan.options.columns)
        plan.bindings[name] = bind_columns(name, found.inputs, columns, mapping)


async def try_target(plan: Plan) -> None:
    """Find the columns a callable adds, from the first rows; what it answered is kept."""
    assert plan.target is not None
    why = ""
    for row in plan.data.rows():
        if row.index >= 3:
            break
        try:
            added = await plan.target.run(row.columns)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            continue
        plan.target_rows[row.index] = added
        bind_plan(plan, tuple(dict.fromkeys((*plan.survey.columns, *added))))
        return
    raise SetupError(f"the target {plan.target.name} failed on the first rows: {why[:300]}")


def _load_all(evaluators: Any) -> dict[str, Evaluator]:
    if isinstance(evaluators, Mapping):
        named = list(evaluators.items())
    else:
        single = isinstance(evaluators, str | Path) or callable(evaluators)
        single = single or hasattr(evaluators, "evaluate")
        named = [(None, source) for source in ([evaluators] if single else evaluators)]
    chosen: dict[str, Evaluator] = {}
    for name, source in named:
        found = load(source)
        if name is not None and name != found.name:
            found = _renamed(found, name)
        if found.name in chosen:
            raise SetupError(f"two evaluators are called {found.name!r}; give them names")
        chosen[found.name] = found
    if not chosen:
        raise SetupError("no evaluator: name one, such as similarity, or a .prompty file")
    return chosen


def _renamed(found: Any, name: str) -> Any:
    if not hasattr(found, "renamed"):
        raise SetupError(f"{found.name} cannot be called {name!r}")
    return found.renamed(name)


def _resolve_judges(chosen: Mapping[str, Evaluator], options: Options) -> dict[str, Judge | None]:
    """A judge for each evaluator; the same connection is shared, with its limits."""
    shared: dict[str, Judge] = {}
    judges: dict[str, Judge | None] = {}
    for name, found in chosen.items():
        judge = judge_for(found, options)
        judges[name] = None if judge is None else shared.setdefault(_identity(judge), judge)
    return judges


def judge_for(found: Evaluator, options: Options) -> Judge | None:
    """The judge of one evaluator, within limits; None for one that needs none.

    What `options` name comes first, then the evaluator's own, then what its file says.
    """
    if not found.needs_judge:
        return None
    if options.judge is None and found.judge is not None:
        return limited(found.judge, options)
    prompty = found.prompty if isinstance(found, PromptEvaluator) else None
    judge = resolve(
        options.judge,
        model=prompty.model if prompty else None,
        path=prompty.path if prompty else None,
        base_url=options.base_url,
        credential=options.credential,
        timeout=options.timeout,
    )
    return limited(judge, options)


def _with_embedder(found: Evaluator, options: Options) -> Evaluator:
    """Metrics that compare vectors get the run's embedder, unless they have their own."""
    if not isinstance(found, MetricEvaluator) or not found.needs_embedder:
        return found
    return found.with_embedder(
        resolve_embedder(
            options.embedder,
            base_url=options.base_url,
            credential=options.credential,
            timeout=options.timeout,
        )
    )


def limited(judge: Judge, options: Options) -> Judge:
    if is_decider(judge) or isinstance(judge, Limited):
        return judge
    return Limited(judge, max_in_flight=options.max_in_flight)


def _target(options: Options, judges: Mapping[str, Judge | None]) -> Target:
    target = load_target(options.target)
    if not target.wants_model:
        return target
    if options.target_model is None and options.judge is None:
        raise SetupError(f"the target {target.name} needs a model: give --target-model")
    chosen = options.target_model if options.target_model is not None else options.judge
    model = limited(
        resolve(
            chosen,
            base_url=options.base_url,
            credential=options.credential,
            timeout=options.timeout,
        ),
        options,
    )
    same = [judge for judge in judges.values() if judge and _identity(judge) == _identity(model)]
    model = same[0] if same else model  # one connection, one set of limits
    return Target(target.function, target.name, target.outputs, model, target.parameters)


def _identity(judge: Judge) -> str:
    """Equal for judges that are one: the same address and model, else the same object."""
    asked = judge.judge if isinstance(judge, Limited) else judge
    if isinstance(asked, ModelJudge):
        return json.dumps(asked.describe(), sort_keys=True, default=str)
    return f"object {id(asked)}"
