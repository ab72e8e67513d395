"""How far the baseline judge agrees with people and with a recorded language model.

    python bench/baseline_agreement.py [--data ../shared/data]

Reads public data sets that are not part of the repository (see bench/baseline_agreement.md for
their sources and licences) where they are present, and prints a table. Even rows of a data set
were used to choose the judge's thresholds, odd rows give the figures, unless said otherwise.
"""

from __future__ import annotations

import argparse
import csv
import gc
import json
import random
import re
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata, spearmanr

from assay.errors import JudgeRefusal
from assay.judge import baseline
from assay.judge.baseline.lexical import coverage, read

ROOT = Path(__file__).resolve().parent.parent
Texts = dict[str, list[str]]

# Written for this benchmark, labelled 0..3 by the judge's author before it was run on them:
# 3 same meaning, 2 a detail missing, 1 a part or a contradicted part, 0 another subject.
PAIRS: list[tuple[int, str, str]] = [
    (3, "Paris", "The capital of France is Paris."),
    (3, "The library closes at 18:00 on Fridays.", "On Fridays the library shuts at 18:00."),
    (1, "The library closes at 18:00 on Fridays.", "On Fridays the library shuts at 21:00."),
    (
        3,
        "Water boils at 100 degrees Celsius at sea level.",
        "At sea level, the boiling point of water is 100 °C.",
    ),
    (
        1,
        "Water boils at 100 degrees Celsius at sea level.",
        "At sea level, the boiling point of water is 90 °C.",
    ),
    (
        0,
        "Water boils at 100 degrees Celsius at sea level.",
        "The museum has a collection of old coins.",
    ),
    (3, "Bees make honey from nectar.", "Honey is made by bees out of nectar."),
    (1, "Bees make honey from nectar.", "Bees live in hives."),
    (0, "Bees make honey from nectar.", "The train leaves from platform nine."),
    (
        3,
        "Employees may work from home two days a week.",
        "Staff are allowed to work from home on two days per week.",
    ),
    (1, "Employees may work from home two days a week.", "Employees may not work from home."),
    (
        1,
        "Employees may work from home two days a week.",
        "Employees may work from home four days a week.",
    ),
    (
        2,
        "Employees may work from home two days a week, after their first six months.",
        "Employees may work from home two days a week.",
    ),
    (
        2,
        "The recipe needs flour, eggs, milk and a pinch of salt.",
        "The recipe needs flour, eggs and milk.",
    ),
    (1, "The recipe needs flour, eggs, milk and a pinch of salt.", "You need eggs for it."),
    (0, "The recipe needs flour, eggs, milk and a pinch of salt.", "I am sorry, I do not know."),
    (
        3,
        "The recipe needs flour, eggs, milk and a pinch of salt.",
        "You will need flour, eggs, milk and a pinch of salt for this recipe.",
    ),
    (
        3,
        "Photosynthesis turns light into chemical energy stored in sugar.",
        "In photosynthesis, light is turned into chemical energy, which is stored in sugars.",
    ),
    (
        2,
        "Photosynthesis turns light into chemical energy stored in sugar.",
        "Photosynthesis turns light into energy.",
    ),
    (
        1,
        "Photosynthesis turns light into chemical energy stored in sugar.",
        "Photosynthesis happens in the leaves of plants.",
    ),
    (
        0,
        "Photosynthesis turns light into chemical energy stored in sugar.",
        "A mortgage is a loan for buying a house.",
    ),
    (3, "The bridge was opened in 1932.", "It was in 1932 that the bridge opened."),
    (1, "The bridge was opened in 1932.", "The bridge was opened in 1973."),
    (
        3,
        "Yes, dogs are allowed in the park on a leash.",
        "Dogs are allowed in the park if they are on a leash.",
    ),
    (1, "Yes, dogs are allowed in the park on a leash.", "No, dogs are never allowed in the park."),
    (2, "Yes, dogs are allowed in the park on a leash.", "Yes, dogs are allowed in the park."),
    (0, "Yes, dogs are allowed in the park on a leash.", "Tickets cost five euros."),
    (
        3,
        "Mount Everest is 8,849 metres high and lies on the border of Nepal and China.",
        "Everest, on the border between Nepal and China, has a height of 8849 metres.",
    ),
    (
        2,
        "Mount Everest is 8,849 metres high and lies on the border of Nepal and China.",
        "Mount Everest is 8,849 metres high.",
    ),
    (
        1,
        "Mount Everest is 8,849 metres high and lies on the border of Nepal and China.",
        "Mount Everest is a mountain in Asia.",
    ),
    (
        0,
        "Mount Everest is 8,849 metres high and lies on the border of Nepal and China.",
        "Use a soft cloth to clean the lens.",
    ),
    (
        3,
        "To reset the watch, hold both buttons for ten seconds.",
        "Hold both buttons for 10 seconds to reset the watch.",
    ),
    (
        2,
        "To reset the watch, hold both buttons for ten seconds and then put it on the charger.",
        "To reset the watch, hold both buttons for ten seconds.",
    ),
    (
        1,
        "To reset the watch, hold both buttons for ten seconds.",
        "The watch has two buttons and a charger.",
    ),
    (
        3,
        "The seminar takes place in room 204 on Tuesday morning.",
        "On Tuesday morning, the seminar is held in room 204.",
    ),
    (
        1,
        "The seminar takes place in room 204 on Tuesday morning.",
        "On Tuesday morning, the seminar is held in room 311.",
    ),
    (
        0,
        "The seminar takes place in room 204 on Tuesday morning.",
        "Carbon dioxide is a greenhouse gas.",
    ),
    (3, "Die Bibliothek ist sonntags geschlossen.", "Sonntags ist die Bibliothek geschlossen."),
    (
        1,
        "Die Bibliothek ist sonntags geschlossen.",
        "Die Bibliothek ist sonntags nicht geschlossen.",
    ),
    (
        2,
        "Die Bibliothek ist sonntags und an Feiertagen geschlossen.",
        "Die Bibliothek ist sonntags geschlossen.",
    ),
    (0, "Die Bibliothek ist sonntags geschlossen.", "Für den Kuchen braucht man drei Eier."),
    (
        3,
        "El museo abre a las 10 y cierra a las 19.",
        "El museo está abierto: abre a las 10 y cierra a las 19.",
    ),
    (1, "El museo abre a las 10 y cierra a las 19.", "El museo abre a las 9 y cierra a las 14."),
    (0, "El museo abre a las 10 y cierra a las 19.", "La receta lleva harina y huevos."),
    (3, "図書館は日曜日に閉まっています。", "日曜日は図書館が閉まっています。"),
    (0, "図書館は日曜日に閉まっています。", "このケーキには卵が三つ必要です。"),
    (2, "図書館は日曜日と祝日に閉まっています。", "図書館は日曜日に閉まっています。"),
    (
        3,
        "The contract ends automatically after twelve months unless it is renewed in writing.",
        "Unless it is renewed in writing, the contract ends automatically after 12 months.",
    ),
    (
        1,
        "The contract ends automatically after twelve months unless it is renewed in writing.",
        "The contract is renewed automatically and does not end after twelve months.",
    ),
    (
        2,
        "The contract ends automatically after twelve months unless it is renewed in writing.",
        "The contract ends automatically after twelve months.",
    ),
    (
        0,
        "The contract ends automatically after twelve months unless it is renewed in writing.",
        "Penguins cannot fly, but they swim well.",
    ),
    (
        3,
        "Vaccines train the immune system to recognise a virus.",
        "A vaccine teaches the immune system to recognise viruses.",
    ),
    (
        1,
        "Vaccines train the immune system to recognise a virus.",
        "Vaccines are given by injection.",
    ),
    (
        3,
        "Turn off the gas before you open the cover.",
        "Before opening the cover, turn the gas off.",
    ),
    (
        1,
        "Turn off the gas before you open the cover.",
        "Do not turn off the gas before you open the cover.",
    ),
    (
        2,
        "Turn off the gas, wait five minutes, and open the cover.",
        "Turn off the gas and open the cover.",
    ),
    (
        0,
        "Turn off the gas before you open the cover.",
        "The novel was translated into thirty languages.",
    ),
    (
        3,
        "The concert was cancelled because of heavy rain.",
        "Because of heavy rain, the concert was called off.",
    ),
    (
        2,
        "The concert was cancelled because of heavy rain, and tickets will be refunded.",
        "The concert was cancelled because of heavy rain.",
    ),
    (
        1,
        "The concert was cancelled because of heavy rain.",
        "The concert took place in spite of heavy rain.",
    ),
]


def auc(scores: Iterable[float], positive: Iterable[bool]) -> float:
    """Area under the ROC curve: how often a positive row scores above a negative one."""
    is_positive = np.array(list(positive), dtype=bool)
    ranks = rankdata(list(scores))
    n, m = int(is_positive.sum()), int((~is_positive).sum())
    return float((ranks[is_positive].sum() - n * (n + 1) / 2) / (n * m)) if n and m else np.nan


def kappa(one: Sequence[int], other: Sequence[int]) -> float:
    """Cohen's kappa with quadratic weights."""
    levels = range(min(*one, *other), max(*one, *other) + 1)
    seen = np.array([[sum(a == i and b == j for a, b in zip(one, other, strict=True))
                      for j in levels] for i in levels], dtype=float)  # fmt: skip
    weight = np.array([[(i - j) ** 2 for j in levels] for i in levels], dtype=float)
    chance = np.outer(seen.sum(1), seen.sum(0)) / seen.sum()
    return float(1 - (weight * seen).sum() / (weight * chance).sum()) if chance.any() else np.nan


def judge(metric: str, texts: Texts, low: int, high: int) -> tuple[float, int] | None:
    """Quality and level of one row, or None where the judge refuses the row."""
    try:
        quality = baseline.quality(metric, baseline.measure(metric, texts))
    except JudgeRefusal:
        return None
    steps = high - low + 1
    return quality, low + min(int(quality * steps), steps - 1)


class Table:
    """Prints one Markdown row per measurement."""

    def __init__(self) -> None:
        print(
            "| data | metric | n | refused | AUC | Spearman | quadratic kappa | exact | within 1 |"
        )
        print("|---|---|---|---|---|---|---|---|---|")

    def graded(
        self, data: str, metric: str, rows: Sequence[tuple[Texts, int]], low: int, high: int
    ) -> None:
        judged = [(judge(metric, texts, low, high), label) for texts, label in rows]
        kept = [(found, label) for found, label in judged if found is not None]
        qualities = [found[0] for found, _ in kept]
        levels, labels = [found[1] for found, _ in kept], [label for _, label in kept]
        off = np.abs(np.array(levels) - np.array(labels))
        self.row(
            data,
            metric,
            len(rows),
            len(rows) - len(kept),
            auc(qualities, [label > (low + high) / 2 for label in labels]),
            float(spearmanr(qualities, labels)[0]),
            kappa(levels, labels),
            float((off == 0).mean()),
            float((off <= 1).mean()),
        )

    def binary(self, data: str, metric: str, rows: Sequence[tuple[Texts, bool]]) -> None:
        """Two classes; `exact` is the agreement of a boolean output."""
        judged = [(judge(metric, texts, 1, 5), label) for texts, label in rows]
        kept = [(found[0], label) for found, label in judged if found is not None]
        agreed = [(quality >= baseline.PASS_QUALITY) == label for quality, label in kept]
        area = auc([quality for quality, _ in kept], [label for _, label in kept])
        exact = float(np.mean(agreed))
        self.row(data, metric, len(rows), len(rows) - len(kept), area, None, None, exact, None)

    def row(self, data: str, metric: str, n: int, refused: int, *figures: float | None) -> None:
        shown = ("" if figure is None else f"{figure:.2f}" for figure in figures)
        print("|", " | ".join([data, metric, str(n), str(refused), *shown]), "|")


def half(rows: Sequence[Any], odd: bool) -> list[Any]:
    return list(rows[int(odd) :: 2])


def clean(text: str) -> str:
    """Without the citations of ai_rag_chat."""
    return re.sub(r"\[[^\]\[]*\.(?:pdf|md)[^\]\[]*\]", "", text)


def begin(data: Path) -> list[tuple[Texts, bool]]:
    with (data / "begin" / "begin_dev_wow.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [
        (
            {"response": [row["response"]], "context": [row["knowledge"]]},
            row["begin_label"].startswith("Fully"),
        )
        for row in rows
    ]


def rag_chat(data: Path) -> list[dict[str, Any]]:
    path = data / "ai_rag_chat" / "baseline_eval_results.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def matched(rows: list[dict[str, Any]], one: str, other: str, roles: tuple[str, str]) -> list[Any]:
    """Each row's two columns together (True), and one of them with another row's (False)."""
    chance = random.Random(0)
    pairs: list[tuple[Texts, bool]] = []
    for i, row in enumerate(rows):
        strange = rows[(i + chance.randrange(1, len(rows))) % len(rows)]
        for partner, label in ((row, True), (strange, False)):
            texts = {roles[0]: [clean(row[one])], roles[1]: [clean(partner[other])]}
            pairs.append((texts, label))
    return pairs


def swap_number(text: str) -> str | None:
    changed = re.sub(r"(?<![\w.#=])(\d+)(?![\w.])", lambda m: str(int(m[1]) + 7), text, count=1)
    return changed if changed != text else None


def flip_negation(text: str) -> str | None:
    without = re.sub(r"\b(is|are|was|were|can|do|does|may|must|should) not\b", r"\1", text, count=1)
    if without != text:
        return without
    flipped = re.sub(r"\b(is|are|was|were|can|may|must|will)\b", r"\1 not", text, count=1)
    return flipped if flipped != text else None


def perturbed(metric: str, rows: Sequence[Texts], change: Callable[[str], str | None]) -> str:
    """How many changed answers fall below the unchanged one."""
    drops = total = 0
    for texts in rows:
        changed = change(texts["response"][0])
        if changed is None:
            continue
        before, after = (
            judge(metric, texts | {"response": [answer]}, 1, 5)
            for answer in (texts["response"][0], changed)
        )
        if before and after:
            total += 1
            drops += after[0] < before[0] * 0.9
    return f"{drops} of {total}"


def tuning(data: Path | None) -> None:
    """What the tuning halves say about the thresholds, to compare with KNOTS."""
    rows = [
        (raw_of("similarity", {"ground_truth": [truth], "response": [answer]}), level)
        for level, truth, answer in half(PAIRS, odd=False)
    ]
    grid = [i / 50 for i in range(3, 48)]
    labels = [level for _, level in rows]
    best = max(
        combinations(grid, 3),
        key=lambda cuts: kappa([sum(raw >= cut for cut in cuts) for raw, _ in rows], labels),
    )
    print("similarity, pairs: best cuts of a four-level scale", best)
    if data:
        raws = [(raw_of("groundedness", t), label) for t, label in half(begin(data), odd=False)]
        cut = max(grid, key=lambda c: sum((raw >= c) == label for raw, label in raws))
        print(f"groundedness, BEGIN: best cut between attributable and not {cut:.2f}")
        for metric, other, roles in (
            ("relevance", "answer", ("query", "response")),
            ("retrieval", "context", ("query", "context")),
        ):
            pairs = matched(half(rag_chat(data), odd=False), "question", other, roles)
            for label in (True, False):
                own = [texts for texts, is_own in pairs if is_own == label]
                found = [raw_of(metric, texts) for texts in own if judge(metric, texts, 1, 5)]
                marks = np.quantile(found, [0.05, 0.25, 0.5, 0.75, 0.95]).round(2).tolist()
                print(f"{metric}, ai_rag_chat, own {label}: 5, 25, 50, 75, 95 % {marks}")


def raw_of(metric: str, texts: Texts) -> float:
    return baseline.measure(metric, texts).raw


def support_desk(table: Table) -> None:
    """The project's own sample, labelled by someone who did not see this judge."""
    path = ROOT / "datasets" / "support_desk.jsonl"
    if not path.exists():
        return
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    flaws: dict[str, list[str]] = {}
    for metric, low, high in (("similarity", 0, 3), ("groundedness", 1, 5), ("relevance", 1, 5)):
        labelled = [(texts_of(row), row["expected"][metric]) for row in rows]
        table.graded("support_desk (not used to choose)", metric, labelled, low, high)
        for row, (texts, label) in zip(rows, labelled, strict=True):
            found = judge(metric, texts, low, high)
            flaws.setdefault(row["flaw"], []).append(
                f"{metric[0]}{label}>{found[1] if found else '-'}"
            )
    print(
        "\nsupport_desk by flaw (s similarity, g groundedness, r relevance; expected>baseline):\n"
    )
    for flaw, marks in sorted(flaws.items()):
        print(f"- {flaw}: {' '.join(marks)}")


def texts_of(row: dict[str, Any]) -> Texts:
    return {
        "query": [row["question"]],
        "response": [row["answer"]],
        "context": row["contexts"],
        "ground_truth": [row["ground_truth"]],
    }


def summaries(data: Path) -> str:
    """Spearman of coverage against human faithfulness on abstractive summaries."""
    shares, faithful = [], []
    path = data / "summeval_op" / "summeval-op-detailed.jsonl"
    for line in path.read_text(encoding="utf-8").splitlines():
        item = json.loads(line)
        known = read("\n\n".join(item["reviews"])).term_set
        shares += [coverage(read(summary).terms, known) for summary in item["summaries"]]
        faithful += [sum(votes) / len(votes) for votes in item["fa"]]
    return f"{float(spearmanr(shares, faithful)[0]):.2f} (n {len(shares)})"


def cost(rows: list[dict[str, Any]]) -> str:
    """CPU microseconds a row of a 60-word answer and three 60-word passages.

    No text comes twice, but the words do, as in any data set of one subject.
    """
    gc.freeze()  # what this script has imported is not the judge's to look through
    chance = random.Random(1)
    pool = " ".join(row["truth"] for row in rows).split()[:2_000]

    def cut(text: str) -> str:
        words = text.split()
        start = chance.randrange(max(1, len(words) - 60))
        return " ".join(words[start : start + 56] + chance.choices(pool, k=4))

    def row_of(row: dict[str, Any]) -> Texts:
        return {
            "query": [f"{row['question']} {' '.join(chance.choices(pool, k=4))}"],
            "response": [cut(row["answer"])],
            "ground_truth": [cut(row["answer"])],
            "context": [cut(row["context"]) for _ in range(3)],
        }

    found = []
    for metric in baseline.METRICS:
        times = []
        for _ in range(7):
            fresh = [row_of(row) for row in rows * 5]
            start = time.process_time()
            for texts in fresh:
                judge(metric, texts, 1, 5)
            times.append((time.process_time() - start) / len(fresh) * 1e6)
        found.append(f"{metric} {min(times):.0f}")
    times = []
    for _ in range(200):
        start = time.process_time()
        sum(range(100_000))
        times.append((time.process_time() - start) * 1e6)
    return f"{', '.join(found)} (this machine sums range(100000) in {min(times):.0f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--tuning", action="store_true", help="show the tuning halves as well")
    chosen = parser.parse_args()
    data: Path | None = chosen.data if chosen.data.is_dir() else None
    if chosen.tuning:
        tuning(data)
        print()
    table = Table()
    pairs = [({"ground_truth": [t], "response": [a]}, level) for level, t, a in PAIRS]
    table.graded("own pairs, held-out half", "similarity", half(pairs, odd=True), 0, 3)
    if data:
        rows = rag_chat(data)
        attributed = half(begin(data), odd=True)
        table.binary("BEGIN dev, held-out half", "groundedness", attributed)
        for metric, key in (("groundedness", "gpt_groundedness"), ("relevance", "gpt_relevance")):
            recorded = [
                (
                    {
                        "query": [row["question"]],
                        "response": [clean(row["answer"])],
                        "context": [row["context"]],
                    },
                    int(row[key]),
                )
                for row in rows
            ]
            table.graded("ai_rag_chat, recorded gpt", metric, recorded, 1, 5)
        for metric, columns, roles in (
            ("relevance", ("question", "answer"), ("query", "response")),
            ("retrieval", ("question", "context"), ("query", "context")),
            ("similarity", ("truth", "answer"), ("ground_truth", "response")),
            ("response_completeness", ("truth", "answer"), ("ground_truth", "response")),
        ):
            told = matched(half(rows, odd=True), *columns, roles)
            table.binary("ai_rag_chat, own or another row's, held-out half", metric, told)
    support_desk(table)
    if data:
        supported = [texts for texts, label in begin(data) if label]
        truths = [{"ground_truth": [t], "response": [t]} for t in (clean(r["truth"]) for r in rows)]
        print("\nChanged answers that lose a tenth of their quality or more:\n")
        for name, change in (
            ("a number swapped", swap_number),
            ("a negation flipped", flip_negation),
        ):
            print(
                f"- {name}: groundedness on BEGIN {perturbed('groundedness', supported, change)},"
            )
            print(f"  similarity on ai_rag_chat {perturbed('similarity', truths, change)}")
        print(f"\nCoverage against faithfulness on SummEval-OP, Spearman: {summaries(data)}")
        print(f"\nCPU microseconds a row: {cost(rows)}")


if __name__ == "__main__":
    main()
