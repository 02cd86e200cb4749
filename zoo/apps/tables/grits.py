"""GriTS, grid table similarity: the agreement of two tables (Smock et al. 2022, arXiv:2203.12555).

A table is a matrix of its positions.  The score compares the most similar substructures (some rows and some columns of
each, in order) of both; finding them is NP-hard, so rows and columns are aligned each on their own, rows by dynamic
programming over pairs of rows whose similarity is an alignment of their positions, and columns likewise.

Shapes: R, C rows and columns of the true table, r, c of the predicted one; U, u distinct values (spans, texts or
boxes) at their positions.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from ...errors import InputError, check_choice
from .table import Cell, Table

Metric = Literal["top", "con", "loc"]

MAX_PAIRS = 1 << 25  # pairs of positions: two tables of 5,792 each; time grows with them
MAX_CHARACTERS = 1 << 16  # length of one text
MAX_CHARACTER_PAIRS = 1 << 40  # pairs of characters of all texts of both tables; time grows with them
AT_ONCE = 1 << 20  # elements of an array, 8 MB


class GriTS(NamedTuple):
    f: float  # 2 x similarity / (positions of both tables), which is called the GriTS score
    precision: float  # similarity / positions of the predicted table
    recall: float  # similarity / positions of the true table
    upper_bound: float  # no pair of substructures has a larger f


def grits(true: Table, predicted: Table, metric: Metric, *, published: bool = False) -> GriTS:
    """The agreement of a predicted table with the true one, 0 ... 1 in each field.

    metric: "top", topology: the intersection over union of the spans of two cells, as seen from the positions compared;
    "con", content: twice the longest common subsequence of two texts, over the sum of their lengths; "loc", location:
    the intersection over union of two cells' boxes.

    The default follows the paper; of alignments with the same score the best one counts, so that the result does not
    depend on which table is called true.  published=True follows the authors' program, which measured the published
    scores: it divides by the box around both boxes instead of their union, uses difflib's matching blocks (at times
    shorter than the longest common subsequence, and slow: half a minute for two tables of 100 x 20 different texts) and
    the first of the best alignments.

    InputError for tables of more than 2^25 pairs of positions, or texts of more than 65,536 characters.
    """
    check_choice(metric, "metric", get_args(Metric))
    size = true.shape[0] * true.shape[1], predicted.shape[0] * predicted.shape[1]
    if size[0] * size[1] > MAX_PAIRS:
        found = f"{size[0]:,} x {size[1]:,} pairs of positions"
        raise InputError(f"the tables have {found} to compare, at most {MAX_PAIRS:,} are possible")
    if 0 in size:
        same = float(size[0] == size[1])
        return GriTS(same, float(size[1] == 0), float(size[0] == 0), same)

    at, values = _values(true, metric)
    other_at, other_values = _values(predicted, metric)
    if metric == "con":  # similarities (U, u), 0 ... 1
        similar = (_matching_blocks if published else common_subsequences)(values, other_values)
    else:
        similar = _overlaps(np.array(values, np.float64), np.array(other_values, np.float64), published)
    row_pairs, column_pairs = _row_pairs(at, other_at, similar), _row_pairs(at.T, other_at.T, similar)
    by_rows, by_columns = _alignment(row_pairs), _alignment(column_pairs)
    ways = (True,) if published else (True, False)
    row_paths = [_path(row_pairs, by_rows, way) for way in ways]
    column_paths = [_path(column_pairs, by_columns, way) for way in ways]
    similarity = max(
        float(similar[at[np.ix_(of_true, columns)], other_at[np.ix_(of_predicted, other_columns)]].sum())
        for of_true, of_predicted in row_paths
        for columns, other_columns in column_paths
    )
    bound = float(min(by_rows[-1, -1], by_columns[-1, -1]))
    total = sum(size)
    return GriTS(
        2 * similarity / total, similarity / size[1], similarity / size[0], max(2 * bound, 2 * similarity) / total
    )


def _values(table: Table, metric: Metric) -> tuple[np.ndarray, list[Any]]:
    """Indices (R, C) of the values that are compared at each position, and these values, each once."""
    numbers: dict[Hashable, int] = {}

    def value(cell: Cell, row: int, column: int) -> Hashable:
        if metric == "top":
            x, y = cell.column - column, cell.row - row
            return x, y, x + cell.column_span, y + cell.row_span
        return cell.text if metric == "con" else cell.box

    at = [
        [numbers.setdefault(value(cell, r, c), len(numbers)) for c, cell in enumerate(row)]
        for r, row in enumerate(table.grid())
    ]
    return np.array(at), list(numbers)


def _overlaps(a: np.ndarray, b: np.ndarray, published: bool) -> np.ndarray:
    """Boxes (U, 4), (u, 4) -> intersection over union, or over the box around both.

    Two boxes without area have 1 if they are the same, although the authors' program gives them 0.
    """
    a = a[:, None]
    inner = np.minimum(a[..., 2:], b[:, 2:]) - np.maximum(a[..., :2], b[:, :2])
    inner = np.maximum(inner, 0).prod(-1)
    if published:
        whole = (np.maximum(a[..., 2:], b[:, 2:]) - np.minimum(a[..., :2], b[:, :2])).prod(-1)
        same = np.zeros_like(inner)
    else:
        whole = (a[..., 2:] - a[..., :2]).prod(-1) + (b[:, 2:] - b[:, :2]).prod(-1) - inner
        same = (a == b).all(-1).astype(np.float64)
    return np.divide(inner, whole, out=same, where=whole > 0)


def _matching_blocks(a: Sequence[str], b: Sequence[str]) -> np.ndarray:
    """Texts, U and u -> difflib's ratios (U, u)."""
    out = np.empty((len(a), len(b)))
    matcher = SequenceMatcher(None)
    for j, text in enumerate(b):
        matcher.set_seq2(text)  # of which difflib keeps a table
        for i, other in enumerate(a):
            matcher.set_seq1(other)
            out[i, j] = matcher.ratio()
    return out


def common_subsequences(a: Sequence[str], b: Sequence[str]) -> np.ndarray:
    """Texts, U and u -> (U, u): twice the length of the longest common subsequence over both lengths, 1 for "" and "".

    Bit-parallel, after Hyyrö 2004: bit i of a number stands for position i of a text and is cleared where the
    subsequence grows.  One number holds many texts, each with a spare bit above it for the carry of the sum.
    """
    lengths, others = [np.array([len(text) for text in texts]) for texts in (a, b)]
    if (longest := max(lengths.max(), others.max())) > MAX_CHARACTERS:
        raise InputError(f"a cell's text has {longest:,} characters, at most {MAX_CHARACTERS:,} can be compared")
    if (pairs := int(lengths.sum()) * int(others.sum())) > MAX_CHARACTER_PAIRS:
        raise InputError(f"the texts have {pairs:,} pairs of characters to compare, at most {MAX_CHARACTER_PAIRS:,}")
    common = np.zeros((len(a), len(b)))
    first = 0
    while first < len(b):
        last = first + max(1, int(np.searchsorted(np.cumsum(others[first:] + 1), MAX_CHARACTERS, "right")))
        common[:, first:last] = _common(a, b[first:last])
        first = last
    both = lengths[:, None] + others
    return np.divide(2 * common, both, out=np.ones_like(common), where=both > 0)


def _common(a: Sequence[str], b: Sequence[str]) -> np.ndarray:
    """(U, u): the lengths of the longest common subsequences."""
    starts = np.cumsum([0, *(len(text) + 1 for text in b)])
    size = int(starts[-1])
    bits = np.ones(size, bool)
    bits[starts[1:] - 1] = False
    full = _number(bits)
    where: dict[str, list[int]] = {}
    for start, text in zip(starts.tolist(), b, strict=False):
        for i, character in enumerate(text, start):
            where.setdefault(character, []).append(i)
    masks: dict[str, int] = {}
    for character in set("".join(a)) & where.keys():
        bits = np.zeros(size, bool)
        bits[where[character]] = True
        masks[character] = _number(bits)
    out = np.empty((len(a), len(b)))
    for i, text in enumerate(a):
        free = full
        for character in text:
            if mask := masks.get(character, 0):
                hit = free & mask
                free = ((free + hit) | (free - hit)) & full
        left = np.frombuffer((full & ~free).to_bytes((size + 7) // 8, "little"), np.uint8)
        grown = np.unpackbits(left, count=size, bitorder="little")
        out[i] = np.add.reduceat(grown, starts[:-1], dtype=np.int64)
    return out


def _number(bits: np.ndarray) -> int:
    return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")


def _row_pairs(at: np.ndarray, other_at: np.ndarray, similar: np.ndarray) -> np.ndarray:
    """(R, C), (r, c), (U, u) -> (R, r): the similarity of each row to each row, their positions aligned."""
    (rows, columns), (other_rows, other_columns) = at.shape, other_at.shape
    out = np.empty((rows, other_rows))
    step = max(1, AT_ONCE // (other_rows * (other_columns + 1)))
    for first in range(0, rows, step):
        block = at[first : first + step]
        best = np.zeros((len(block), other_rows, other_columns + 1))
        for c in range(columns):
            best[..., 1:] = _extend_sequence(best, similar[block[:, c, None, None], other_at])
        out[first : first + step] = best[..., -1]
    return out


def _alignment(pairs: np.ndarray) -> np.ndarray:
    """Similarities of rows (R, r) -> the best sums (R + 1, r + 1) for the first i rows and the first j rows."""
    best = np.zeros((pairs.shape[0] + 1, pairs.shape[1] + 1))
    for i, row in enumerate(pairs):
        best[i + 1, 1:] = _extend_sequence(best[i], row)
    return best


def _extend_sequence(best: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """One more element of a sequence against n of another: (..., n + 1), (..., n) -> (..., n)."""
    return np.maximum.accumulate(np.maximum(best[..., :-1] + pairs, best[..., 1:]), -1)


def _path(pairs: np.ndarray, best: np.ndarray, leave_true: bool) -> tuple[list[int], list[int]]:
    """The rows of both tables in a best alignment; leave_true: a true row is left out rather than a predicted one."""
    i, j = pairs.shape
    path = []
    while i and j:
        if best[i - 1, j - 1] + pairs[i - 1, j - 1] == best[i, j]:
            i, j = i - 1, j - 1
            path.append((i, j))
        elif best[i - 1, j] == best[i, j] and (leave_true or best[i, j - 1] != best[i, j]):
            i -= 1
        else:
            j -= 1
    return [i for i, _ in path], [j for _, j in path]
