"""The baseline judge: no key, no network, no language model, the same answer every time.

It measures what can be counted: which content words, numbers and negations of one text are in
the other (`lexical`), and how near two texts are by static word embeddings. That
separates an unrelated or invented answer from a good one, and knows no paraphrase, inference
or antonym. How far it agrees with people is in bench/baseline_agreement.md. What it cannot
measure it refuses, as a metric (`refuses`) or as a row (`JudgeRefusal`): it never guesses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from assay.errors import InputError, JudgeRefusal, SetupError
from assay.jsontext import dumps
from assay.judge.base import Message, Reply
from assay.judge.baseline.measures import METRICS, PASS_QUALITY, measure, quality, quote
from assay.judge.baseline.vectors import EMBEDDER, folder

if TYPE_CHECKING:
    from assay.prompty import Output, Prompty

NOTE = "a baseline, not a language model"

# First match wins: where a file has both, `context` is not what was retrieved.
ROLES = {
    "query": ("query", "question", "user_input", "prompt", "input"),
    "response": ("response", "answer", "output", "actual_output", "prediction", "completion"),
    "context": (
        "retrieved_contexts",
        "retrieval_context",
        "context",
        "contexts",
        "documents",
        "passages",
        "citations",
    ),
    "ground_truth": ("ground_truth", "reference", "expected_output", "truth", "target"),
}
"""What an input is, by the names people give it."""

_NAMES = {
    **{name: name for name in METRICS},
    "answer_similarity": "similarity",
    "semantic_similarity": "similarity",
    "faithfulness": "groundedness",
    "answer_relevance": "relevance",
    "answer_relevancy": "relevance",
    "response_relevance": "relevance",
    "context_relevance": "retrieval",
    "context_relevancy": "retrieval",
    "completeness": "response_completeness",
}
_DECORATION = re.compile(r"^(?:gpt|llm|qna|qa)_|_(?:score|evaluator|metric|judge|[a-z]{2})$")
_NAMELESS = ("score", "value", "result", "rating", "label", "")
_REASONS = ("reason", "reasoning", "explanation", "rationale", "thoughts", "thought")
_SUMMARY = re.compile("summar|zusammenfass|resum")


@dataclass(frozen=True, slots=True)
class _Plan:
    """How one prompty is judged. `metric` is None where it asks for an answer, not a score."""

    metric: str | None
    columns: Mapping[str, str]
    output: Output
    reasons: tuple[str, ...] = ()


@dataclass(slots=True)
class BaselineJudge:
    """Judges from the inputs alone; a `Judge` and a `Decider`.

    Raises SetupError where the embeddings are not installed.
    """

    _plans: dict[int, tuple[Prompty, _Plan | str]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        folder()

    def __reduce__(self) -> tuple[type[BaselineJudge], tuple[()]]:
        return BaselineJudge, ()  # plans hold compiled templates; another process makes its own

    @property
    def name(self) -> str:
        return "baseline"

    def describe(self) -> dict[str, Any]:
        return {"judge": self.name, "embedder": EMBEDDER, "note": NOTE}

    async def complete(self, messages: Sequence[Message], **settings: Any) -> Reply:
        """Always raises SetupError: there is no model that could read a prompt."""
        raise SetupError(
            "the baseline judge does not read prompts, it compares a metric's inputs: give it a"
            f" metric it knows ({', '.join(METRICS)}) or name another judge"
        )

    async def close(self) -> None:
        """Nothing is open."""

    def refuses(self, prompty: Prompty) -> str | None:
        """Why `prompty` cannot be judged, as one sentence; None where it can."""
        plan = self._plan(prompty)
        return plan if isinstance(plan, str) else None

    async def decide(self, prompty: Prompty, inputs: Mapping[str, Any]) -> Reply:
        """Judge one row: a JSON object with every declared output.

        Raises JudgeRefusal for a prompty it refuses and for a row with nothing to measure,
        InputError for an empty input.
        """
        plan = self._plan(prompty)
        if isinstance(plan, str):
            raise JudgeRefusal(plan, cause="not_judged_by_baseline")
        roles = METRICS[plan.metric] if plan.metric else ("query", "context")
        texts = {role: _texts(inputs.get(plan.columns[role]), plan.columns[role]) for role in roles}
        if plan.metric is None:
            found: dict[str, Any] = {plan.output.name: quote(texts["query"][0], texts["context"])}
        else:
            found = _decided(plan, texts)
        text = dumps(found).decode()
        return Reply(text=text, finish_reason="stop", model=f"baseline/{EMBEDDER}")

    def _plan(self, prompty: Prompty) -> _Plan | str:
        """The plan of a prompty, made once. The entry holds it, so that its id stays its own."""
        known = self._plans.get(id(prompty))
        if known is None:
            if len(self._plans) >= 256:
                self._plans.clear()
            known = self._plans[id(prompty)] = (prompty, make_plan(prompty))
        return known[1]


def make_plan(prompty: Prompty) -> _Plan | str:
    """How to judge `prompty`, or one sentence that says why not."""
    columns = {
        role: next(name for name in names if name in prompty.inputs)
        for role, names in ROLES.items()
        if any(name in prompty.inputs for name in names)
    }
    if (answer := _only_free_text(prompty)) and set(columns) == {"query", "context"}:
        return _Plan(None, columns, answer)
    metric = metric_of(prompty)
    output = prompty.primary
    if metric is None or output is None:
        return _cannot(f"{prompty.name!r}")
    if any(_SUMMARY.search(name.lower()) for name in (prompty.name, output.name, *prompty.inputs)):
        return _cannot("summaries, where shared words run against faithfulness")
    if missing := [role for role in METRICS[metric] if role not in columns]:
        return _cannot(f"{metric} without an input for {' and '.join(missing)}")
    if unread := _unread(prompty):
        return _cannot(f"{prompty.name!r}, whose input {unread!r} it does not understand")
    if _scale(output) is None or getattr(output, "direction", "increase") != "increase":
        return _cannot(f"{output.name!r}, which declares no rising scale of numbers")
    others = [name for name in prompty.outputs if name != output.name]
    if strange := [name for name in others if not _is_reason(prompty.outputs[name])]:
        return _cannot(f"the output {strange[0]!r} of {prompty.name!r}")
    return _Plan(metric, columns, output, tuple(others))


def metric_of(prompty: Prompty) -> str | None:
    """The metric a prompty asks for, by its primary output's name, then by its own."""
    output = prompty.primary
    if output is None:
        return None
    plain = _plain(output.name)
    return _NAMES.get(_plain(prompty.name) if plain in _NAMELESS else plain)


def _cannot(what: str) -> str:
    return (
        f"the baseline judge is {NOTE} and cannot judge {what}; it judges {', '.join(METRICS)}"
        " on numbers or booleans, not for summaries"
    )


def _plain(name: str) -> str:
    """gpt_similarity, Similarity Evaluator, similarity_es -> similarity."""
    snake = re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    return _DECORATION.sub("", _DECORATION.sub("", snake.strip("_")))


def _only_free_text(prompty: Prompty) -> Output | None:
    if len(prompty.outputs) != 1:
        return None
    output = next(iter(prompty.outputs.values()))
    return output if output.type == "string" and not output.scored else None


def _unread(prompty: Prompty) -> str | None:
    """A required input that plays no known role: the metric may hang on it."""
    known = {name for names in ROLES.values() for name in names}
    for name, declared in prompty.inputs.items():
        if name not in known and getattr(declared, "required", True):
            return name
    return None


def _is_reason(output: Output) -> bool:
    return output.type == "string" and not output.scored and output.name.endswith(_REASONS)


def _scale(output: Output) -> Callable[[float], int | float | bool] | None:
    """What turns a quality (0..1) into a value of the output; None without a numeric scale."""
    values = output.enum
    if output.type == "boolean":
        return lambda quality: quality >= PASS_QUALITY
    if values and not all(type(value) in (int, float) for value in values):
        return None
    if values:
        ordered = sorted(values)
        return lambda quality: ordered[min(int(quality * len(ordered)), len(ordered) - 1)]
    low, high = output.minimum, output.maximum
    if low is None or high is None or output.type not in ("integer", "number"):
        return None
    if output.type == "number":
        return lambda quality: round(low + quality * (high - low), 4)
    steps = int(high) - int(low) + 1
    return lambda quality: int(low) + min(int(quality * steps), steps - 1)


def _texts(value: Any, column: str) -> list[str]:
    """The texts of a value: one, or one a passage. Raises InputError where there are none."""
    items = value if isinstance(value, list | tuple) else [value]
    texts = [
        str(item.get("text") or item.get("content") or "") if isinstance(item, Mapping) else item
        for item in items
    ]
    found = [str(text) for text in texts if text is not None and str(text).strip()]
    if not found:
        raise InputError(f"{column!r} is empty: the baseline judge has nothing to compare")
    return found


def _decided(plan: _Plan, texts: Mapping[str, list[str]]) -> dict[str, Any]:
    metric = plan.metric or ""
    scale = _scale(plan.output)
    assert scale is not None, "make_plan refuses an output without a scale"
    measured = measure(metric, texts)
    reason = f"Baseline, not a language model: {measured.found}."
    return dict.fromkeys(plan.reasons, reason) | {
        plan.output.name: scale(quality(metric, measured))
    }
