"""Vectors after their model: fewer dimensions, fewer bits, scores of pairs, and the nearest of a corpus.

Shapes: N, M vectors, E the size of a vector, V that of a sparse one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..checkpoint.sentence_encoder import normalize
from ..errors import InputError, check_choice
from ..peer_names import with_keys
from ..warning import warn
from .notebook import as_rows

PRECISIONS = ("float32", "int8", "uint8", "binary", "ubinary")
MIN_RANGE_VECTORS = 100  # vectors whose ranges are a poor guess at those of all
# Vectors compared at once: 512 queries with 16,384 of a corpus need 32 MiB of scores.
QUERIES, BLOCK = 512, 16_384


@with_keys()
class Hit(NamedTuple):
    """A vector of a corpus that is near a query."""

    corpus_id: int  # its index in the corpus
    score: float


@dataclass(frozen=True, eq=False)
class SparseVectors:
    """Vectors (N, V) by their numbers that are not 0, row by row: scipy's csr_matrix((data, indices, indptr), shape).

    Row i, which `vectors[i]` gives as (indices, data), has those from indptr[i] to indptr[i + 1]; its indices ascend.
    """

    data: np.ndarray  # float32
    indices: np.ndarray
    indptr: np.ndarray  # (N + 1,)
    shape: tuple[int, int]

    @classmethod
    def of(cls, rows: Sequence[tuple[np.ndarray, np.ndarray]], size: int) -> SparseVectors:
        """The vectors of size V of (indices, data) for each row."""
        indptr = np.cumsum([0, *(len(ids) for ids, _ in rows)])
        indices = np.concatenate([np.zeros(0, np.int64), *(ids for ids, _ in rows)])
        return cls(np.concatenate([np.zeros(0, np.float32), *(x for _, x in rows)]), indices, indptr, (len(rows), size))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        i = range(len(self))[row]
        some = slice(self.indptr[i], self.indptr[i + 1])
        return self.indices[some], self.data[some]

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        return map(self.__getitem__, range(len(self)))

    def toarray(self) -> np.ndarray:
        """-> (N, V) float32, zeros included."""
        out = np.zeros(self.shape, np.float32)
        out[np.repeat(np.arange(len(self)), np.diff(self.indptr)), self.indices] = self.data
        return out


def sparse_scores(a: SparseVectors, b: SparseVectors, similarity: str = "dot") -> np.ndarray:
    """The "dot" product or the "cosine" of every pair of a (N, V) and b (M, V) -> (N, M)."""
    if a.shape[1] != b.shape[1]:
        raise InputError(f"vectors of {a.shape[1]} and of {b.shape[1]} dimensions cannot be compared")
    rows, out = np.repeat(np.arange(len(b)), np.diff(b.indptr)), np.empty((len(a), len(b)), np.float32)
    for i, (ids, values) in enumerate(a):
        whole = np.zeros(a.shape[1])
        whole[ids] = values
        out[i] = np.bincount(rows, whole[b.indices] * b.data, minlength=len(b))
    if similarity == "cosine":
        x, y = (np.sqrt([float(values @ values) for _, values in z]) for z in (a, b))
        out /= np.maximum(x, 1e-12)[:, None] * np.maximum(y, 1e-12)
    return out


def maxsim(a: Sequence[np.ndarray], b: Sequence[np.ndarray], mean: bool = False) -> np.ndarray:
    """For each vector of a text of a (T, E) the largest dot product with those of one of b, summed -> (N, M).

    mean: divided by the number of vectors of the text of a.
    """
    out = np.empty((len(a), len(b)), np.float32)
    sizes = [len(x) for x in b]
    at = 0
    while at < len(b):
        some = b[at : at + max(1, int(np.searchsorted(np.cumsum(sizes[at:]), BLOCK)))]
        every, begins = np.concatenate(some), np.cumsum([0, *map(len, some[:-1])])
        for i, x in enumerate(a):
            best = np.maximum.reduceat(x @ every.T, begins, axis=1)
            out[i, at : at + len(some)] = best.sum(axis=0) / (len(x) if mean else 1)
        at += len(some)
    return out


def truncate(x: np.ndarray, size: int | None, unit: bool = False) -> np.ndarray:
    """The first `size` dimensions of vectors (N, E), all for None; unit: at length 1 after that."""
    if size is not None:
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 1 <= size <= x.shape[-1]:
            raise InputError(f"truncate_dim is {size!r}, expected 1 ... {x.shape[-1]}, the dimensions of a vector")
        x = x[..., :size]
    return normalize(x) if unit else x


def quantise(x: np.ndarray, precision: str, ranges: Any = None) -> np.ndarray:
    """Vectors (N, E) or (E,) in fewer bits, as `quantize_embeddings` of sentence-transformers gives them.

    precision: "float32"; "int8" and "uint8", which divide each dimension's range into 255 steps; "binary" and
    "ubinary", one bit for each dimension, true above 0, eight to a byte, (N, ceil(E / 8)) of int8 or uint8.
    ranges: for the 8-bit ones the least and the largest value of each dimension, (2, E), by default those of x; give
    the same ones for all vectors that are compared with each other.
    """
    check_choice(precision, "precision", PRECISIONS)
    if ranges is not None and precision not in ("int8", "uint8"):
        raise InputError(f"ranges are for precision 'int8' and 'uint8', and it is {precision!r}")
    if precision == "float32":
        return x.astype(np.float32, copy=False)
    if precision in ("binary", "ubinary"):
        bits = np.packbits(x > 0, axis=-1)
        return bits if precision == "ubinary" else (bits - 128).astype(np.int8)
    if ranges is None:
        if x.ndim == 1 or len(x) == 1:
            raise InputError(f"precision {precision!r} of one vector needs ranges=, (2, {x.shape[-1]}): those of many")
        if 0 < len(x) < MIN_RANGE_VECTORS:
            warn(f"the ranges of {precision!r} are those of only {len(x)} vectors: give ranges= of more")
        ranges = ranges_of(x) if len(x) else np.zeros((2, x.shape[-1]))
    ranges = np.asarray(ranges, np.float32)
    if ranges.shape != (2, x.shape[-1]) or not np.isfinite(ranges).all():
        raise InputError(f"ranges have shape {ranges.shape}, expected (2, {x.shape[-1]}) of finite numbers")
    low = ranges[0]
    step = (ranges[1] - low) / 255
    step = np.where(step == 0, 1, step)
    level = np.clip(np.floor((x - low) / step), 0, 255)
    return level.astype(np.uint8) if precision == "uint8" else (level - 128).astype(np.int8)


def ranges_of(x: np.ndarray) -> np.ndarray:
    """The least and the largest value of each dimension of x (N, E) -> (2, E)."""
    return np.stack([x.min(axis=0), x.max(axis=0)])


def as_vectors(value: Any, name: str) -> np.ndarray:
    """An array of the user's, (N, E) or (E,) -> (N, E), of floats; a memory map stays one."""
    x = value if isinstance(value, np.ndarray) else np.asarray(value)
    if x.dtype.kind in "iu":
        raise InputError(f"{name} is quantised ({x.dtype}): give the float vectors, whose scores zoo computes")
    if x.dtype.kind != "f" or x.ndim not in (1, 2):
        raise InputError(f"{name} is an array of {x.dtype} {x.shape}, expected vectors (N, E) of floats")
    return x[None] if x.ndim == 1 else x


def _cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return normalize(a) @ normalize(b).T


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b.T


def _euclidean(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    # In float64: the difference of large squares leaves little of a small distance.
    a, b = a.astype(np.float64), b.astype(np.float64)
    square = (a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * (a @ b.T)
    return -np.sqrt(np.maximum(square, 0)).astype(np.float32)


def _manhattan(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return -np.stack([np.abs(row - b).sum(axis=1) for row in a])


# The names of sentence-transformers' similarity functions -> scores (N, M) of a (N, E) and b (M, E), larger is nearer.
SIMILARITIES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "cosine": _cosine,
    "dot": _dot,
    "euclidean": _euclidean,
    "manhattan": _manhattan,
}


def scores(a: np.ndarray, b: np.ndarray, similarity: str = "cosine") -> np.ndarray:
    """The score of every pair of a (N, E) and b (M, E) -> (N, M); similarity: a name in SIMILARITIES."""
    check_choice(similarity, "similarity", SIMILARITIES)
    if a.shape[1] != b.shape[1]:
        raise InputError(f"vectors of {a.shape[1]} and of {b.shape[1]} dimensions cannot be compared")
    kind = np.result_type(a, b, np.float32)
    return SIMILARITIES[similarity](a.astype(kind, copy=False), b.astype(kind, copy=False))


def semantic_search(
    queries: Any, corpus: Any, *, top_k: int = 10, similarity: str = "cosine", block: int = BLOCK
) -> list[list[Hit]]:
    """The `top_k` nearest vectors of a corpus (M, E) for each query of (N, E), the nearest first.

    The corpus is read in blocks of `block` vectors, so that it may be a memory map (`np.load(path, mmap_mode="r")`);
    equal scores keep its order.  InputError: vectors that are not finite, or of different sizes.
    """
    queries, corpus = as_vectors(queries, "queries"), as_vectors(corpus, "corpus")
    for name, value in (("top_k", top_k), ("block", block)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise InputError(f"{name} is {value!r}, expected a whole number of at least 1")
    _check_finite(queries, "queries", 0)
    scores(queries[:1], corpus[:1], similarity)  # what does not fit is an error for an empty corpus too
    found: list[list[Hit]] = []
    for start in range(0, len(queries), QUERIES):
        some = queries[start : start + QUERIES]
        best, index = np.empty((len(some), 0), np.float32), np.empty((len(some), 0), np.int64)
        for at, part in _blocks(corpus, block):
            if start == 0:
                _check_finite(part, "corpus", at)
            new, where = _largest(scores(some, part, similarity), top_k)
            best, index = np.concatenate([best, new], 1), np.concatenate([index, where + at], 1)
            best, order = _largest(best, top_k)
            index = np.take_along_axis(index, order, 1)
        found += [[Hit(int(i), float(s)) for i, s in zip(*row, strict=True)] for row in zip(index, best, strict=True)]
    return as_rows(found)


def nearest_of(scores: np.ndarray, top_k: int) -> list[list[Hit]]:
    """The `top_k` largest of each row of scores (N, M), sorted; equal ones keep their order."""
    best = zip(*_largest(scores, top_k), strict=True)
    return as_rows([[Hit(int(i), float(s)) for s, i in zip(*row, strict=True)] for row in best])


def _blocks(x: np.ndarray, size: int) -> Iterator[tuple[int, np.ndarray]]:
    return ((at, np.asarray(x[at : at + size])) for at in range(0, len(x), size))


def _check_finite(x: np.ndarray, name: str, at: int) -> None:
    bad = np.flatnonzero(~np.isfinite(x).all(axis=1))
    if len(bad):
        raise InputError("has numbers that are not finite (NaN or infinity)", argument=name, index=at + int(bad[0]))


def _largest(x: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The largest `count` of each row of x (N, M), sorted, and their columns; equal ones keep their order."""
    if count < x.shape[1]:
        # All that equal the last that is chosen are kept, so that the sort decides among them by their place.
        least = np.partition(x, -count, axis=1)[:, -count, None]
        ties = (x >= least).sum(axis=1).max()
        columns = np.sort(np.argpartition(-x, ties - 1, axis=1)[:, :ties], axis=1)
        order = np.argsort(-np.take_along_axis(x, columns, 1), axis=1, kind="stable")[:, :count]
        columns = np.take_along_axis(columns, order, 1)
    else:
        columns = np.argsort(-x, axis=1, kind="stable")
    return np.take_along_axis(x, columns, 1), columns
