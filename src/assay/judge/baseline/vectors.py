"""Static word embeddings that come in a wheel.

They are l2_supercat, 256 dimensions, of the package wordllama (MIT, extra `baseline`). Its two
data files are read where the wheel has put them. The package itself is not imported: that
would set up the root logger and bring in code that downloads.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import SetupError
from assay.judge.baseline.lexical import Text, content_words, read

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

EMBEDDER = "wordllama-l2-256"
_INSTALL = 'pip install "assay[baseline]"'


def nearness(one: Text, other: Text) -> float:
    """Cosine of two texts' embeddings, cut to 0..1; 0 where one has no content word."""
    return min(1.0, max(0.0, float(vector(one.raw) @ vector(other.raw))))


def vector(raw: str) -> Vector:
    return _vector_kept(raw) if len(raw) <= 4_000 else embed_pieces(read(raw).pieces)


@lru_cache(maxsize=512)
def _vector_kept(raw: str) -> Vector:
    return embed_pieces(read(raw).pieces)


def embed_pieces(pieces: Sequence[str]) -> Vector:
    """Unit vector of the mean over the tokens of the content words; zeros where there are none.

    The tokenizer sees each piece between white space once, ever: its merges do not cross
    spaces, and to call it for a whole text costs 0.2 ms.
    """
    import numpy as np

    matrix = table()[1]
    ids = list(chain.from_iterable(map(_tokens, pieces)))
    found: Vector = np.add.reduce(matrix.take(ids, axis=0), axis=0) if ids else matrix[0] * 0
    found /= max(float(found @ found) ** 0.5, 1e-9)
    return found


@lru_cache(maxsize=50_000)
def _tokens(piece: str) -> tuple[int, ...]:
    encode = table()[0].encode
    words = content_words(piece)
    return tuple(i for word in words for i in encode(word, add_special_tokens=False).ids)


def folder() -> Path:
    """Where wordllama is installed. Raises SetupError with the install line where it is not."""
    spec = find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise SetupError(
            f"the baseline judge needs the package wordllama: {_INSTALL}"
            " (it has wheels for Python 3.11 to 3.13)"
        )
    return Path(spec.submodule_search_locations[0])


@cache
def table() -> tuple[Any, NDArray[np.float32]]:
    """Tokenizer and embedding matrix (32,000 tokens x 256), read from the package's folder."""
    import numpy as np
    from safetensors import safe_open
    from tokenizers import Tokenizer

    home = folder()
    weights = home / "weights" / "l2_supercat_256.safetensors"
    vocabulary = home / "tokenizers" / "l2_supercat_tokenizer_config.json"
    for path in (weights, vocabulary):
        if not path.is_file():
            raise SetupError(f"wordllama came without {path.name}: {_INSTALL} --force-reinstall")
    with safe_open(weights, framework="np") as file:
        matrix = file.get_tensor("embedding.weight").astype(np.float32)
    return Tokenizer.from_file(str(vocabulary)), matrix


def embed_texts(texts: Sequence[str]) -> list[list[float]]:
    """A unit vector a text: the mean of its words' static embeddings (256 dimensions)."""
    vectors: list[list[float]] = [vector(text).tolist() for text in texts]
    return vectors
