"""What the baseline measures: a share of words, a nearness of vectors, and what contradicts."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from assay.errors import JudgeRefusal
from assay.judge.baseline.lexical import Text, coverage, language, negations_flipped, read
from assay.judge.baseline.vectors import embed_pieces, nearness, vector

METRICS = {
    "similarity": ("response", "ground_truth"),
    "groundedness": ("response", "context"),
    "relevance": ("query", "response"),
    "retrieval": ("query", "context"),
    "response_completeness": ("response", "ground_truth"),
}
"""What it can judge, and the inputs each needs."""

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
        cosine = float(embed_pieces(sentence.pieces) @ vector(query))
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
