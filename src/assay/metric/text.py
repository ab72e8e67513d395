"""Metrics that compare two texts without a judge: arithmetic over words and characters.

Every function takes the response and one or more reference texts and returns 0..1; of several
references the best counts (for BLEU, chrF and METEOR as their packages do it).

| metric | words | case | source |
|---|---|---|---|
| exact_match, f1 | SQuAD's, see `squad_words` | ignored | Rajpurkar et al. 2016 |
| rouge, gleu, meteor | `words`: runs of letters, marks and digits | ignored | Lin 2004; Wu et al. 2016; Lavie and Agarwal 2007 |
| bleu | sacrebleu's 13a over `spaced` text | counts | Papineni et al. 2002; Post 2018 |
| chrf | characters, no words | counts | Popović 2015 |

In scripts that are written without spaces (Chinese, Japanese, Thai, ...) every character is a
word. Accents count, and one that is typed in two ways is one.
"""  # noqa: E501

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from assay.errors import InputError, SetupError

INSTALL = 'pip install "assay[text]"'

ROUGE_TYPES = ("rouge1", "rouge2", "rougeL")

_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")


def words(text: str) -> list[str]:
    """Runs of letters, marks and digits, case and width folded; a character each of a script
    without spaces. What is neither letter nor digit is no word."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    kept = (
        char if unicodedata.category(char)[0] in "LMN" else " "
        for char in unicodedata.normalize("NFKC", text).casefold()
    )
    return spaced("".join(kept)).split()


def spaced(text: str) -> str:
    """The text with a space around every character of a script that is written without."""
    if text.isascii():
        return text
    clusters: list[str] = []
    for char in unicodedata.normalize("NFC", text):
        if clusters and unicodedata.category(char)[0] == "M":
            clusters[-1] += char  # a mark belongs to the character before it
        else:
            clusters.append(char)
    return "".join(f" {cluster} " if _is_unspaced(cluster[0]) else cluster for cluster in clusters)


def _is_unspaced(char: str) -> bool:
    code = ord(char)
    return code >= 0x0E00 and any(low <= code <= high for low, high in _UNSPACED)


def squad_words(text: str) -> list[str]:
    """The words SQuAD's evaluation compares: lower case, without punctuation and articles.

    Punctuation is deleted, not replaced ("3.5" is 35, "well-known" one word). It goes beyond
    the original in two points: punctuation of all scripts counts as such, and nothing is
    deleted where nothing would be left, so that the answers "A" and "the" are two.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    plain = "".join(char for char in folded if not _is_punctuation(char))
    found = spaced(_ARTICLE.sub(" ", plain)).split()
    return found or spaced(plain).split() or folded.split()


def _is_punctuation(char: str) -> bool:
    return char in string.punctuation or unicodedata.category(char)[0] == "P"


def exact_match(response: str, references: Sequence[str]) -> float:
    """1 where the response has the same SQuAD words as a reference, in the same order, else 0."""
    found = squad_words(response)
    return float(any(found == squad_words(reference) for reference in references))


def f1(response: str, references: Sequence[str]) -> float:
    """Harmonic mean of the precision and recall of SQuAD words, each counted as often as it
    occurs (Rajpurkar et al. 2016)."""
    found = Counter(squad_words(response))
    return max(_overlap(found, Counter(squad_words(reference)))[2] for reference in references)


def rouge(response: str, references: Sequence[str]) -> dict[str, tuple[float, float, float]]:
    """Precision, recall and F1 of ROUGE-1, ROUGE-2 and ROUGE-L, without stemming (Lin 2004).

    Of several references the one with the best F1 counts, for each type by itself.
    Raises InputError where no reference has a word.
    """
    found = words(response)
    pairs = [words(reference) for reference in references]
    wanted = _with_words(pairs)
    return {
        "rouge1": max((_ngram_rouge(found, other, 1) for other in wanted), key=_last),
        "rouge2": max((_ngram_rouge(found, other, 2) for other in wanted), key=_last),
        "rougeL": max((_lcs_rouge(found, other) for other in wanted), key=_last),
    }


def gleu(response: str, references: Sequence[str]) -> float:
    """Google's GLEU: the smaller of precision and recall over all 1- to 4-grams (Wu et al.
    2016). Raises SetupError without nltk, InputError where no reference has a word."""
    found, wanted = words(response), _with_words([words(text) for text in references])
    _nltk()
    from nltk.translate.gleu_score import sentence_gleu

    return float(sentence_gleu(wanted, found)) if found else 0.0


def bleu(response: str, references: Sequence[str]) -> float:
    """BLEU of one text: sacrebleu's, with its exponential smoothing and the effective order,
    as a share of 1 (Papineni et al. 2002; Post 2018). Raises SetupError without sacrebleu."""
    score = _bleu().sentence_score(spaced(response), [spaced(text) for text in references]).score
    return min(1.0, float(score) / 100)


def chrf(response: str, references: Sequence[str]) -> float:
    """chrF2: F-score of character 1- to 6-grams, recall weighing twice as much (Popović 2015).

    Raises SetupError without sacrebleu.
    """
    composed = [unicodedata.normalize("NFC", text) for text in (response, *references)]
    return min(1.0, float(_chrf().sentence_score(composed[0], composed[1:]).score) / 100)


def meteor(response: str, references: Sequence[str], synonyms: bool = False) -> float:
    """METEOR with alpha .9, beta 3, gamma .5 (Lavie and Agarwal 2007), by nltk.

    Words match where they or their stems (Porter's, English) are the same; with `synonyms`
    also where WordNet knows them as such, which is another scale. A text of one chunk of m
    words that all match has 1 - .5/m**3, as in the paper: one word is never above .5.
    Raises SetupError without nltk or, with `synonyms`, without WordNet's data.
    """
    found, wanted = words(response), _with_words([words(text) for text in references])
    _nltk()
    from nltk.translate.meteor_score import meteor_score

    wordnet = load_wordnet() if synonyms else _NoSynonyms()
    score = meteor_score(wanted, found, wordnet=wordnet, alpha=0.9, beta=3.0, gamma=0.5)
    return min(1.0, float(score))


def texts(value: Any) -> list[str]:
    """Reference texts: one, or a list of them. Raises InputError for anything else."""
    found = list(value) if isinstance(value, list | tuple) else [value]
    if isinstance(value, Mapping) or not all(isinstance(x, str | int | float) for x in found):
        raise InputError(
            f"ground_truth must be a text or a list of texts, not {type(value).__name__}",
            cause="wrong_input_type",
        )
    return [str(text) for text in found if str(text).strip()]


class _NoSynonyms:
    """Stands where nltk takes WordNet: no word has another meaning's name."""

    def synsets(self, word: str) -> list[Any]:
        return []


def load_wordnet() -> Any:
    """nltk's WordNet, read from its data folders. Never downloads: raises SetupError."""
    _nltk()
    from nltk.corpus import wordnet

    try:
        wordnet.ensure_loaded()
    except LookupError:
        raise SetupError(
            "meteor_wordnet needs WordNet's data, which assay never downloads: run `python -m "
            "nltk.downloader wordnet omw-1.4` once, or use meteor (exact and stem matches)"
        ) from None
    return wordnet


def _nltk() -> Any:
    try:
        import nltk.translate  # it brings in half of scipy where that is installed: 3 s
    except ImportError:
        raise SetupError(f"gleu and meteor need nltk: {INSTALL}") from None
    return nltk


@cache
def _bleu() -> Any:
    return _sacrebleu().BLEU(effective_order=True)


@cache
def _chrf() -> Any:
    return _sacrebleu().CHRF()


def _sacrebleu() -> Any:
    try:
        from sacrebleu import metrics
    except ImportError:
        raise SetupError(f"bleu and chrf need sacrebleu: {INSTALL}") from None
    return metrics


PACKAGES: Mapping[str, Any] = {
    "bleu": _sacrebleu,
    "chrf": _sacrebleu,
    "gleu": _nltk,
    "meteor": _nltk,
    "meteor_wordnet": load_wordnet,
}
"""What has to be there before the first row: a call that raises SetupError where it is not."""


def _with_words(references: Iterable[list[str]]) -> list[list[str]]:
    found = [reference for reference in references if reference]
    if not found:
        raise InputError("the ground truth has no word", cause="no_words")
    return found


def _overlap(found: Counter[Any], wanted: Counter[Any]) -> tuple[float, float, float]:
    """Precision, recall and F1 of two bags."""
    common = (found & wanted).total()
    if not common:
        return 0.0, 0.0, 0.0
    precision, recall = common / found.total(), common / wanted.total()
    return precision, recall, 2 * precision * recall / (precision + recall)


def _ngram_rouge(found: list[str], wanted: list[str], n: int) -> tuple[float, float, float]:
    return _overlap(_ngrams(found, n), _ngrams(wanted, n))


def _ngrams(tokens: list[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[i:] for i in range(n)), strict=False))


def _lcs_rouge(found: list[str], wanted: list[str]) -> tuple[float, float, float]:
    length = lcs_length(found, wanted)
    if not length:
        return 0.0, 0.0, 0.0
    precision, recall = length / len(found), length / len(wanted)
    return precision, recall, 2 * precision * recall / (precision + recall)


def lcs_length(a: Sequence[str], b: Sequence[str]) -> int:
    """Length of the longest common subsequence, a bit for each element of `a` (Hyyrö 2004)."""
    places: dict[str, int] = {}
    for index, token in enumerate(a):
        places[token] = places.get(token, 0) | 1 << index
    full = (1 << len(a)) - 1
    row = full
    for token in b:
        matches = row & places.get(token, 0)
        row = ((row + matches) | (row - matches)) & full
    return len(a) - row.bit_count()


def _last(values: tuple[float, float, float]) -> float:
    return values[2]
