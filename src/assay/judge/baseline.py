"""The baseline judge: no key, no network, no language model, the same answer every time.

It measures what can be counted: which content words, numbers and negations of one text are in
the other (`assay.judge.lexical`), and how near two texts are by static word embeddings. That
separates an unrelated or invented answer from a good one, and knows no paraphrase, inference
or antonym. How far it agrees with people is in bench/baseline_agreement.md. What it cannot
measure it refuses, as a metric (`refuses`) or as a row (`JudgeRefusal`): it never guesses.

The embeddings are l2_supercat, 256 dimensions, of the package wordllama (MIT, extra
`baseline`). Its two data files are read where the wheel has put them. The package itself is
not imported: that would set up the root logger and bring in code that downloads.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from assay.errors import InputError, JudgeRefusal, SetupError
from assay.jsontext import dumps
from assay.judge.base import Message, Reply
from assay.judge.lexical import Text, content_words, coverage, language, negations_flipped, read

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from assay.prompty import Output, Prompty

    Vector = NDArray[np.float32]

EMBEDDER = "wordllama-l2-256"
NOTE = "a baseline, not a language model"
_INSTALL = 'pip install "assay[baseline]"'

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

METRICS = {
    "similarity": ("response", "ground_truth"),
    "groundedness": ("response", "context"),
    "relevance": ("query", "response"),
    "retrieval": ("query", "context"),
    "response_completeness": ("response", "ground_truth"),
}
"""What it can judge, and the inputs each needs."""

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

KNOTS: dict[str, tuple[float, ...]] = {
    "similarity": (0.0, 0.09, 0.33, 0.60, 0.82, 1.0),
    "groundedness": (0.0, 0.25, 0.50, 0.72, 0.87, 1.0),
    "relevance": (0.0, 0.20, 0.38, 0.55, 0.65, 1.0),
    "retrieval": (0.0, 0.25, 0.42, 0.56, 0.68, 1.0),
    "response_completeness": (0.0, 0.20, 0.42, 0.66, 0.85, 1.0),
}
"""Raw measure (0..1) at the quality 0, .2, .4, .6, .8, 1; linear between them.

So these are the cuts of a five-level scale. Chosen on one half of the data of
bench/baseline_agreement.py (`--tuning`), whose other half gives the figures of its table;
completeness by reasoning alone, for want of labels."""

PASS_QUALITY = 0.6
"""Quality from which a boolean output is true: the upper two of five levels."""

_NUMBERS_DIFFER = 0.45  # an answer with another number, or negated, is at most level 1 of 0..3
_NUMBER_UNSUPPORTED = 0.6
_NOT_AN_ANSWER = 0.39  # level 2 of 5: takes up the subject, answers nothing
_LONG_ANSWER = 25  # content words; ai_rag_chat's answers, where the cuts come from, have 38
_STRANGE = 0.4  # a raw measure below it may come of two languages
_NONCOMMITTAL = re.compile(
    r"\b(?:i (?:do not|don't|cannot|can't|am not able to) (?:know|answer|find|help)"
    r"|(?:is|are) not (?:specified|mentioned|clear|provided|stated)"
    r"|no (?:information|answer)\b|no (?:lo )?s[eé]\b|ich wei(?:ß|ss) (?:es )?nicht"
    r"|keine (?:information|angabe|antwort))|わかりません|分かりません|不知道"
)


class Measure(NamedTuple):
    """Raw measure (0..1, see KNOTS), and what was measured, in words."""

    raw: float
    found: str
    limit: float = 1.0  # the highest quality this row can have


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
        _folder()

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


def measure(metric: str, texts: Mapping[str, list[str]]) -> Measure:
    """Measure one row. `texts` by role: query, response, context (one a passage), ground_truth.

    Raises JudgeRefusal where a text has no content word, or the texts no common language.
    """
    for role in METRICS[metric]:
        if not any(read(text).terms for text in texts[role]):
            raise JudgeRefusal(
                f"the baseline judge finds no content word in the {role}",
                cause="nothing_to_measure",
            )
    measured = _MEASURES[metric](texts)
    if measured.raw < _STRANGE:
        spoken = {role: language(_joined(texts[role])) for role in METRICS[metric]}
        if None not in spoken.values() and len(set(spoken.values())) > 1:
            raise JudgeRefusal(
                f"the baseline judge cannot compare {' and '.join(spoken)} in different languages",
                cause="nothing_to_measure",
            )
    return measured


def quality(metric: str, measured: Measure) -> float:
    """Quality (0..1) of a measure of `metric`: see KNOTS."""
    knots, raw = KNOTS[metric], measured.raw
    at = min(bisect_right(knots, raw), len(knots) - 1)
    low, high = knots[at - 1], knots[at]
    reached = (at - 1 + (raw - low) / (high - low)) / (len(knots) - 1)
    return max(0.0, min(1.0, reached, measured.limit))


def similarity(texts: Mapping[str, list[str]]) -> Measure:
    """Embeddings and shared words of answer and ground truth; other numbers, other negation."""
    return _against_truth(texts, near=0.4, recall=0.5)


def _same(one: str, other: str) -> bool:
    return one.casefold().split() == other.casefold().split()


def response_completeness(texts: Mapping[str, list[str]]) -> Measure:
    """As similarity, but what the answer says beyond the ground truth does not count."""
    return _against_truth(texts, near=0.3, recall=0.7)


def _against_truth(texts: Mapping[str, list[str]], *, near: float, recall: float) -> Measure:
    response, truth = _joined(texts["response"]), _joined(texts["ground_truth"])
    if response.terms == truth.terms and _same(response.raw, truth.raw):
        return Measure(1.0, "the answer is the ground truth word for word")
    cosine = nearness(truth, response)
    found = coverage(truth.terms, response.term_set)
    backed = coverage(response.terms, truth.term_set)
    raw = near * cosine + recall * found + (1 - near - recall) * backed
    said = (
        f"{found:.0%} of the ground truth's content words are in the answer, embeddings are"
        f" {cosine:.2f} near"
    )
    extra, missing = response.numbers - truth.numbers, truth.numbers - response.numbers
    if extra and missing:
        raw *= _NUMBERS_DIFFER
        said += f", the answer has {_listed(extra)} where the ground truth has {_listed(missing)}"
    elif missing:
        raw *= 1 - (1 - _NUMBERS_DIFFER) * len(missing) / len(truth.numbers) / 2
        said += f", {_listed(missing)} is missing"
    if negations_flipped(response, [truth]):
        raw *= _NUMBERS_DIFFER
        said += ", one of the two is negated"
    return Measure(raw, said)


def groundedness(texts: Mapping[str, list[str]]) -> Measure:
    """Share of the answer's content words that are in the context, less what contradicts it.

    No embeddings: on BEGIN each mixture with them was worse than the words alone.
    """
    response, passages = _joined(texts["response"]), [read(text) for text in texts["context"]]
    known = frozenset[str]().union(*(passage.term_set for passage in passages))
    raw = coverage(response.terms, known)
    said = f"{raw:.0%} of the answer's content words are in the context"
    numbers = frozenset[str]().union(*(passage.numbers for passage in passages))
    if unsupported := response.numbers - numbers:
        raw *= 1 - _NUMBER_UNSUPPORTED * len(unsupported) / len(response.numbers)
        said += f", its {_listed(unsupported)} is not"
    if flipped := negations_flipped(response, passages):
        count = len(response.sentences)
        raw *= 1 - _NUMBER_UNSUPPORTED * flipped / count
        said += f", {flipped} of its {count} sentences negates the context or reverses a negation"
    return Measure(raw, said)


def relevance(texts: Mapping[str, list[str]]) -> Measure:
    """How near the answer is to the question: tells another subject, not a bad answer.

    A short answer need not repeat the question ("Paris"), so that being far from it says
    nothing: JudgeRefusal.
    """
    query, response = _joined(texts["query"]), _joined(texts["response"])
    raw, said = _about(query, response)
    if raw < KNOTS["relevance"][3] and len(response.terms) < _LONG_ANSWER:
        raise JudgeRefusal(
            "the baseline judge cannot tell whether a short answer that repeats little of the"
            " question answers it",
            cause="nothing_to_measure",
        )
    said += " in the answer"
    if _NONCOMMITTAL.search(response.raw.casefold().replace("’", "'")):
        return Measure(raw, f"{said}, and it reads like a refusal", _NOT_AN_ANSWER)
    return Measure(raw, said)


def retrieval(texts: Mapping[str, list[str]]) -> Measure:
    """The passage nearest to the question; each passage that stands above it costs a level."""
    query = _joined(texts["query"])
    measured = [_about(query, read(passage)) for passage in texts["context"]]
    best = max(raw for raw, _ in measured)
    rank = next(i for i, (raw, _) in enumerate(measured) if raw >= best - 0.05)
    said = f"{measured[rank][1]} in passage {rank + 1} of {len(measured)}, the nearest"
    return Measure(measured[rank][0], said, (1.0, 0.7, 0.5)[min(rank, 2)])


def _about(query: Text, text: Text) -> tuple[float, str]:
    cosine, found = nearness(query, text), coverage(query.terms, text.term_set)
    said = f"embeddings are {cosine:.2f} near and {found:.0%} of the question's content words are"
    return 0.6 * cosine + 0.4 * found, said


_MEASURES: dict[str, Callable[[Mapping[str, list[str]]], Measure]] = {
    "similarity": similarity,
    "groundedness": groundedness,
    "relevance": relevance,
    "retrieval": retrieval,
    "response_completeness": response_completeness,
}


def quote(query: str, passages: Sequence[str]) -> str:
    """One or two sentences of `passages` nearest to `query`, in their order; no new word."""
    asked = read(query)
    scored: list[tuple[float, str]] = []
    for sentence in (s for passage in passages for s in read(passage).sentences):
        cosine = float(_embed(sentence.pieces) @ _vector(query))
        near = 0.6 * cosine + 0.4 * coverage(asked.terms, sentence.term_set)
        scored.append((round(near, 6), sentence.text))
    best = sorted(range(len(scored)), key=lambda i: (-scored[i][0], i))[:2]
    if scored[best[0]][0] < KNOTS["retrieval"][1]:
        return "No sentence of the context is close to the question."
    chosen = [i for i in best if scored[i][0] >= 0.8 * scored[best[0]][0]]
    return " ".join(scored[i][1] for i in sorted(chosen))


def _joined(texts: list[str]) -> Text:
    return read(texts[0] if len(texts) == 1 else "\n\n".join(texts))


def _listed(numbers: frozenset[str]) -> str:
    shown = sorted(numbers)[:3]
    return ", ".join(shown) + (", ..." if len(numbers) > len(shown) else "")


def nearness(one: Text, other: Text) -> float:
    """Cosine of two texts' embeddings, cut to 0..1; 0 where one has no content word."""
    return min(1.0, max(0.0, float(_vector(one.raw) @ _vector(other.raw))))


def _vector(raw: str) -> Vector:
    return _vector_kept(raw) if len(raw) <= 4_000 else _embed(read(raw).pieces)


@lru_cache(maxsize=512)
def _vector_kept(raw: str) -> Vector:
    return _embed(read(raw).pieces)


def _embed(pieces: Sequence[str]) -> Vector:
    """Unit vector of the mean over the tokens of the content words; zeros where there are none.

    The tokenizer sees each piece between white space once, ever: its merges do not cross
    spaces, and to call it for a whole text costs 0.2 ms.
    """
    import numpy as np

    matrix = _table()[1]
    ids = list(chain.from_iterable(map(_tokens, pieces)))
    vector: Vector = np.add.reduce(matrix.take(ids, axis=0), axis=0) if ids else matrix[0] * 0
    vector /= max(float(vector @ vector) ** 0.5, 1e-9)
    return vector


@lru_cache(maxsize=50_000)
def _tokens(piece: str) -> tuple[int, ...]:
    encode = _table()[0].encode
    words = content_words(piece)
    return tuple(i for word in words for i in encode(word, add_special_tokens=False).ids)


def _folder() -> Path:
    """Where wordllama is installed. Raises SetupError with the install line where it is not."""
    spec = find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise SetupError(
            f"the baseline judge needs the package wordllama: {_INSTALL}"
            " (it has wheels for Python 3.11 to 3.13)"
        )
    return Path(spec.submodule_search_locations[0])


@cache
def _table() -> tuple[Any, NDArray[np.float32]]:
    """Tokenizer and embedding matrix (32,000 tokens x 256), read from the package's folder."""
    import numpy as np
    from safetensors import safe_open
    from tokenizers import Tokenizer

    folder = _folder()
    weights = folder / "weights" / "l2_supercat_256.safetensors"
    vocabulary = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
    for path in (weights, vocabulary):
        if not path.is_file():
            raise SetupError(f"wordllama came without {path.name}: {_INSTALL} --force-reinstall")
    with safe_open(weights, framework="np") as file:
        matrix = file.get_tensor("embedding.weight").astype(np.float32)
    return Tokenizer.from_file(str(vocabulary)), matrix


def embed_texts(texts: Sequence[str]) -> list[list[float]]:
    """A unit vector a text: the mean of its words' static embeddings (256 dimensions)."""
    vectors: list[list[float]] = [_vector(text).tolist() for text in texts]
    return vectors
