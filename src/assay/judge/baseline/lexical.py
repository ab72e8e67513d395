"""Words, numbers and negations of a text, read fast: what the baseline judge counts.

A text is cut at white space into chunks, and a chunk is analysed once and remembered: running
text repeats its words, so that most of a row is a dictionary look-up. Scripts without spaces
(Japanese, Chinese, Thai) are compared by pairs of neighbouring characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from functools import cached_property, lru_cache
from itertools import chain

PREFIX = 6
"""Letters of a word that count: provider, providers, provided, Versicherung, versichert fall
together. 6 gave the best AUC of 4, 5, 6, 7 and whole words on BEGIN (bench/)."""

_UNSPACED = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af"
_TOKEN = re.compile(
    rf"[{_UNSPACED}]+"  # a run without spaces
    rf"|[^\W\d_{_UNSPACED}]+\d\w*"  # a code: x4, a320neo
    rf"|[^\W\d_{_UNSPACED}]+(?:'[^\W\d_]+)?"  # a word
    r"|\d+(?:[.,]\d+)*"  # a number
)
_RUN = re.compile(rf"[{_UNSPACED}]+")
_HIRAGANA = re.compile("[\u3041-\u309f]+")
_THOUSANDS = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
_CITATION = re.compile(r"\[[^\[\]\s]*[\d.#][^\[\]\s]*\]")
_MARKER = re.compile(r"\(?(\d{1,2})[.)]")
_WIDE_STOP = re.compile("([。！？][」』）]?)")
_END = re.compile("[.!?…。！？][\"'”’»)\\]」』）*]*$")
# An empty line, or a line break before a bullet: any other line break is a wrapped line.
_BREAK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*•#|]|\d+[.)]\s))")

_STOP_EN = """a an the and or but if of to in on at by for from with as is are was were be been
being am do does did have has had i you he she it we they me him her us them my your his its our
their this that these those there here what which who whom when where why how so than then too
very can could will would should may might must also just about into over such nd st rd th"""
_STOP_ES = """el la los las un una unos unas y o pero de del al en por para con se que es son era
fue ser está están hay ha han su sus lo le les como más muy qué cuál cuándo dónde cómo este esta"""
_STOP_DE = """der die das den dem des ein eine einen einem einer eines und oder aber von zu im in
mit für auf ist sind war waren wird werden hat haben sich es er sie wir ihr als auch an aus bei
nach wie was wer wann wo warum dass zum zur kann können"""
_STOPS = {
    language: frozenset(words.split())
    for language, words in (("en", _STOP_EN), ("es", _STOP_ES), ("de", _STOP_DE))
}
STOP = frozenset[str]().union(*_STOPS.values())

_NEGATIVE = """not no never none neither nor without cannot nicht kein keine keinen keinem keiner
nie niemals ohne nunca sin ningún ninguna jamás tampoco"""
_NEGATORS = frozenset(_NEGATIVE.split())
_NEGATION_UNSPACED = re.compile("ない|なし|ません|不可|不能|不会|不會|没|沒|无|無")

# From two up: "one", "un" and "ein" are articles more often than numbers.
_NUMBER_WORDS = {
    word: str(value)
    for line in (
        "two three four five six seven eight nine ten eleven twelve",
        "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
        "dos tres cuatro cinco seis siete ocho nueve diez once doce",
    )
    for value, word in enumerate(line.split(), start=2)
    if word != "once"  # English
}

_SOMEWHERE = ""
_CHARACTERS_KEPT = 500_000
_TEXT_LENGTH = 4_000
_TEXTS_KEPT = 512  # more of them push each other out of the processor's caches


class Lexicon:
    """What is known of each piece between white space. A new one knows nothing, and says the
    same: it only takes longer."""

    def __init__(self) -> None:
        self.terms: dict[str, tuple[str, ...]] = {}
        self.words: dict[str, tuple[str, ...]] = {}  # whole, for embeddings
        self.numbers: dict[str, tuple[str, ...]] = {}  # only of pieces that hold some
        self.negating: dict[str, bool] = {}  # only pieces that negate; True: a word inside
        self.ending: set[str] = set()  # pieces that end a sentence
        self.characters = 0

    def terms_of(self, pieces: list[str]) -> list[str]:
        found = list(map(self.terms.get, pieces))
        if None in found:
            for piece in pieces:
                if piece not in self.terms:
                    self._learn(piece)
            found = list(map(self.terms.get, pieces))
        return list(chain.from_iterable(found))  # type: ignore[arg-type]

    def numbers_of(self, pieces: list[str]) -> frozenset[str]:
        found: set[str] = set()
        marker = 0
        for piece in filter(self.numbers.__contains__, pieces):
            match = _MARKER.fullmatch(piece)
            if match and int(match[1]) in (1, marker + 1):
                marker = int(match[1])
            else:
                found.update(self.numbers[piece])
        return frozenset(found)

    def negates(self, pieces: list[str]) -> bool:
        return not self.negating.keys().isdisjoint(pieces)

    def negated_of(self, pieces: list[str]) -> frozenset[str]:
        """The terms behind a negation ("not covered": cover); `_SOMEWHERE` for one inside."""
        if not self.negates(pieces):
            return frozenset()
        found: set[str] = set()
        pending = False
        last = _SOMEWHERE
        for piece in pieces:
            terms = self.terms[piece]
            if pending and terms:
                found.add(terms[0])
                pending = False
            if (inside := self.negating.get(piece)) is not None:
                pending = not inside
                found |= {_SOMEWHERE} if inside else set()
            last = terms[-1] if terms else last
        if pending:
            found.add(last)  # "Das deckt der Tarif nicht."
        return frozenset(found)

    def _learn(self, piece: str) -> tuple[str, ...]:
        """Analyse one piece and remember what it holds; returns its terms."""
        plain = unicodedata.normalize("NFKC", _CITATION.sub("", piece)).replace("’", "'")
        terms: list[str] = []
        words: list[str] = []
        numbers: list[str] = []
        for token in _TOKEN.findall(plain.casefold()):
            if _RUN.match(token):
                terms += _pairs(token)
                words += [part for part in _HIRAGANA.split(token) if part]
                if _NEGATION_UNSPACED.search(token):
                    self.negating[piece] = True
            elif token in _NEGATORS or token.endswith("n't"):
                self.negating[piece] = bool(terms)
            elif (number := _NUMBER_WORDS.get(token) or _number(token)) is not None:
                numbers.append(number)
                words.append(token)
                terms.append(number)
            elif token not in STOP:
                terms.append(token[:PREFIX])
                words.append(token)
        if numbers:
            self.numbers[piece] = tuple(numbers)
        if _END.search(piece):
            self.ending.add(piece)
        self.characters += len(piece)
        self.words[piece] = tuple(words)
        # "2." in a list says nothing; at a sentence's end it still is a number.
        self.terms[piece] = () if _MARKER.fullmatch(piece) else tuple(terms)
        return self.terms[piece]


class Sentence:
    """One sentence: its pieces between white space, and its terms that are negated."""

    __slots__ = ("_lexicon", "_term_set", "negated", "pieces")

    def __init__(self, pieces: list[str], lexicon: Lexicon) -> None:
        self.pieces = pieces
        self.negated = lexicon.negated_of(pieces)
        self._lexicon = lexicon
        self._term_set: frozenset[str] | None = None

    @property
    def term_set(self) -> frozenset[str]:
        if self._term_set is None:  # functools.cached_property takes a lock, and there are many
            self._term_set = frozenset(self._lexicon.terms_of(self.pieces))
        return self._term_set

    @property
    def text(self) -> str:
        """The sentence's own words, white space made single."""
        return " ".join(self.pieces)


class Text:
    """A text, read when asked for.

    terms: content words cut to PREFIX letters, numbers in one spelling, character pairs; with
    repeats, in order. term_set: the same without repeats.
    """

    def __init__(self, raw: str) -> None:
        self.raw = raw
        self._lexicon = lexicon = _lexicon()
        self._plain = raw if raw.isascii() else _WIDE_STOP.sub(r"\1 ", raw)
        self.pieces = self._plain.split()
        self.terms = lexicon.terms_of(self.pieces)
        self.term_set = frozenset(self.terms)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Numbers and codes (x4), without the markers of a list (1. 2. 3.)."""
        return self._lexicon.numbers_of(self.pieces)

    @cached_property
    def negated(self) -> bool:
        """Whether it holds a word such as "not"."""
        return self._lexicon.negates(self.pieces)

    @cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        found: list[Sentence] = []
        broken = "\n" in self.raw
        for block in map(str.split, _BREAK.split(self._plain)) if broken else (self.pieces,):
            start = 0
            ends = [i for i, piece in enumerate(block, 1) if piece in self._lexicon.ending]
            for end in (*ends, len(block)):
                if start < end:
                    found.append(Sentence(block[start:end], self._lexicon))
                start = end
        return tuple(found)


_current = Lexicon()


def _lexicon() -> Lexicon:
    """The lexicon in use. A full one is replaced, not emptied: texts still hold it."""
    global _current
    if _current.characters > _CHARACTERS_KEPT:
        _current = Lexicon()
    return _current


def read(text: str) -> Text:
    """Analyse `text`. Short texts are remembered: one row is read by several evaluators."""
    return _read_kept(text) if len(text) <= _TEXT_LENGTH else Text(text)


_read_kept = lru_cache(maxsize=_TEXTS_KEPT)(Text)


def content_words(piece: str) -> tuple[str, ...]:
    """The content words of one piece, whole: what embeddings are taken of."""
    lexicon = _lexicon()
    lexicon.terms_of([piece])
    return lexicon.words[piece]


def language(text: Text) -> str | None:
    """en, es or de by its small words, `unspaced` for a script without spaces; None: unclear."""
    if not text.raw.isascii() and 3 * len("".join(_RUN.findall(text.raw))) > len(text.raw):
        return "unspaced"
    words = text.raw.casefold().split()
    counts = sorted((len(stop.intersection(words)), name) for name, stop in _STOPS.items())
    (second, _), (first, name) = counts[-2:]
    return name if first >= 3 and first >= 2 * second else None


def coverage(terms: Collection[str], known: frozenset[str]) -> float:
    """Share (0..1) of `terms` that are in `known`, repeats counted; 0 where there are none."""
    return sum(map(known.__contains__, terms)) / len(terms) if terms else 0.0


def negations_flipped(text: Text, sources: Sequence[Text], *, overlap: float = 0.6) -> int:
    """How many sentences of `text` negate what `sources` state, or reverse.

    A sentence counts when the sentence of the sources nearest to it shares its terms (Dice of
    at least `overlap`, 0..1) and one word of both is negated in just one of them.
    """
    if not (text.negated or any(source.negated for source in sources)):
        return 0
    return sum(_flips(sentence, sources, overlap) for sentence in text.sentences)


def _flips(sentence: Sentence, sources: Sequence[Text], least: float) -> bool:
    own = sentence.term_set
    # A Dice of `least` takes this many terms in common, however short the other sentence is.
    needed = max(1.0, len(own) * least / (2 - least))
    near = [source for source in sources if len(own & source.term_set) >= needed]
    # Most sentences negate nothing: look at the few that could be a reversal before the rest.
    negating = near if sentence.negated else [source for source in near if source.negated]
    if not any(
        _reversed(sentence, other, least)
        for source in negating
        for other in source.sentences
        if sentence.negated or other.negated
    ):
        return False
    others = (other for source in near for other in source.sentences)
    return _reversed(sentence, max(others, key=lambda other: _dice(own, other.term_set)), least)


def _reversed(one: Sentence, other: Sentence, least: float) -> bool:
    changed = one.negated ^ other.negated
    if not changed or _dice(one.term_set, other.term_set) < least:
        return False
    common = one.term_set & other.term_set
    return any(term in common or term == _SOMEWHERE for term in changed)


def _dice(one: frozenset[str], other: frozenset[str]) -> float:
    """1 for the same terms, and low where one of the two says much more; 0..1."""
    return 2 * len(one & other) / max(1, len(one) + len(other))


def _pairs(run: str) -> list[str]:
    """Neighbouring characters; pairs of hiragana are endings and particles, and left out."""
    if len(run) == 1:
        return [run]
    pairs = [run[i : i + 2] for i in range(len(run) - 1)]
    return [pair for pair in pairs if not _HIRAGANA.fullmatch(pair)] or pairs


def _number(token: str) -> str | None:
    """One spelling for a number or a code (x4); None for a word. 1,000 and 1.000 are 1000."""
    if not token[0].isdigit():
        return token if any(map(str.isdigit, token)) else None
    if _THOUSANDS.fullmatch(token):
        return token.replace(",", "").replace(".", "").lstrip("0") or "0"
    token = token.replace(",", ".")
    if token.count(".") == 1:
        token = token.rstrip("0").rstrip(".")
    # 05 is 5, but 0.5 keeps its zero.
    return re.sub(r"^0+(?=\d)", "", token)
