"""This module gives the words of a page to the cells of a table whose texts are known.

Words are given to cells that hold their letters, at first in the order of both, then by the places that rows and
columns have by then.  Boxes are (x0, y0, x1, y1) in pixels.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

import numpy as np

from zoo.apps.documents import Word
from zoo.apps.tables import Table

# Characters that a paper's XML and PDF have for one another.
ALIKE = {"‐‑‒–—―−﹣－\ufffe": "-", "‘’ʹ′`´": "'", "“”″": '"', "∗": "*", "µ": "μ", "×": "x", "·∙": ".", "º˚◦": "°"}
SAME = str.maketrans({c: one for some, one in {**ALIKE, "⩽": "≤", "⩾": "≥", "\xad": ""}.items() for c in some})
WRONG = 0.03  # of the letters of a table: missing, or too many
ROUNDS = 6  # of giving words to cells
NEAR, FAR = 2.5, 4.0  # heights of a text: how far beyond a table, and beyond a row and column, its words are


def plain(text: str) -> str:
    """A text's letters as they are compared."""
    return "".join(unicodedata.normalize("NFKC", text.translate(SAME)).translate(SAME).split()).casefold()


def placed(words: Sequence[Word], table: Table) -> tuple[list[int | None], float]:
    """The cell's number of each word, or None, and the part of letters that are wrong (1: not found)."""
    texts, cells = [plain(w.text) for w in words], [plain(c.text) for c in table.cells]
    holders: dict[str, list[int]] = {}
    for t in set(texts):
        part = t[:-1] if len(t) > 2 and t.endswith("-") else t
        holders[t] = [k for k, c in enumerate(table.cells) if part and _holds(cells[k], c.text, part)] if t else []
    segment = _segment(texts, holders)
    total = sum(map(len, cells))
    if sum(len(texts[i]) for i in segment if holders[texts[i]]) < 0.5 * total:
        return [None] * len(words), 1.0
    boxes = np.array([w.box for w in words])
    own = _aligned([texts[i] for i in segment], table)
    at: list[int | None] = [None] * len(words)
    for i, k in zip(segment, own, strict=True):
        at[i] = k
    h = float(np.median((boxes[:, 3] - boxes[:, 1])[list(segment)]))
    first = boxes[[i for i in segment if at[i] is not None]]
    if len(first) < 4:
        return at, 1.0
    tried = []
    for grows in (False, True):  # what is beyond the first words may be of the table, or below it
        low, high = np.percentile(first[:, :2], 2, axis=0), np.percentile(first[:, 2:], 98, axis=0)
        now: Sequence[int | None] = at
        for _ in range(ROUNDS):
            within = ((boxes[:, :2] >= low - NEAR * h) & (boxes[:, 2:] <= high + NEAR * h)).all(1)
            near = np.flatnonzero(within).tolist()
            inside = set(near)
            now = [k if i in inside else None for i, k in enumerate(now)]
            now = _nearest(near, boxes, texts, holders, table, now, h)
            now = _without_surplus(now, texts, cells, boxes)
            held = boxes[[i for i, k in enumerate(now) if k is not None]]
            if grows and len(held):
                low, high = held[:, :2].min(0), held[:, 2:].max(0)
        tried.append((_wrong(now, texts, cells, boxes, h), len(tried), now))
        if tried[-1][0] <= WRONG / 3:
            break
    wrong, _, best = min(tried)
    return best, wrong


def _without_surplus(
    at: Sequence[int | None], texts: Sequence[str], cells: Sequence[str], boxes: np.ndarray
) -> list[int | None]:
    """Without the words that a cell has too many of: those farthest from its others."""
    own: dict[int, list[int]] = {}
    for i, k in enumerate(at):
        if k is not None:
            own.setdefault(k, []).append(i)
    out = list(at)
    for k, held in own.items():
        while True:
            surplus = Counter("".join(texts[i] for i in held))
            surplus.subtract(Counter(cells[k]))
            surplus["-"] = 99
            spare = [i for i in held if all(surplus[c] >= n for c, n in Counter(texts[i]).items())]
            if len(held) < 2 or not spare:
                break
            middle = np.median(boxes[held, :2] + boxes[held, 2:], axis=0)
            away = [(float(np.abs(boxes[i, :2] + boxes[i, 2:] - middle).sum()), i) for i in spare if texts[i] != "-"]
            if not away:
                break
            out[max(away)[1]] = None
            held.remove(max(away)[1])
    return out


def _holds(cell: str, text: str, part: str) -> bool:
    """Return True if a word may be of a cell; single letters only at the beginning or the end of a word."""
    if len(part) > 1 or part not in cell:
        return part in cell
    return any(t.startswith(part) or t.endswith(part) for t in map(plain, text.split()))


def _segment(texts: Sequence[str], holders: dict[str, list[int]]) -> range:
    """The run of words, in the order of the page, that has the most letters in cells and the fewest in none."""
    best, begin, total, found = 0.0, 0, 0.0, (0, 0)
    for i, text in enumerate(texts):
        value = len(text) * (1.0 if len(text) > 1 else 0.4) * (1.0 if holders[text] else -1.5)
        if total <= 0:
            begin, total = i, 0.0
        total += value
        if total > best:
            best, found = total, (begin, i + 1)
    return range(*found)


def _aligned(texts: Sequence[str], table: Table) -> list[int | None]:
    """The cell of each word where the words of both come in the same order."""
    tokens = [(plain(t), k) for k, c in enumerate(table.cells) for t in c.text.split()]
    found: list[int | None] = [None] * len(texts)
    matcher = SequenceMatcher(None, texts, [t for t, _ in tokens], autojunk=False)
    for a, b, n in matcher.get_matching_blocks():
        for i in range(n):
            found[a + i] = tokens[b + i][1]
    return found


def _nearest(
    near: Sequence[int],
    boxes: np.ndarray,
    texts: Sequence[str],
    holders: dict[str, list[int]],
    table: Table,
    at: Sequence[int | None],
    h: float,
) -> list[int | None]:
    """Each word's cell by the places of the rows and columns that the words before have."""
    R, C = table.shape
    rows: list[list[np.ndarray]] = [[] for _ in range(R)]
    columns: list[list[np.ndarray]] = [[] for _ in range(C)]
    for i in near:
        if (k := at[i]) is not None:
            c = table.cells[k]
            if c.row_span == 1:
                rows[c.row].append(boxes[i, 1::2])
            if c.column_span == 1:
                columns[c.column].append(boxes[i, ::2])
    ys, xs = (_intervals(of) for of in (rows, columns))
    out: list[int | None] = [None] * len(texts)
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2
    for i in near:
        options = []
        for k in holders[texts[i]]:
            c = table.cells[k]
            y = ys[c.row : c.row + c.row_span]
            x = xs[c.column : c.column + c.column_span]
            if np.isnan(y).all() or np.isnan(x).all():
                continue
            away = _outside(middle[i, 1], y) + _outside(middle[i, 0], x)
            options.append((away, k != at[i], len(table.cells[k].text), k))
        if options and min(options)[0] < FAR * h:
            out[i] = min(options)[-1]
    return out


def _intervals(of: Sequence[Sequence[np.ndarray]]) -> np.ndarray:
    """The usual begin and end of what each row, or column, holds, (n, 2); NaN where nothing is known."""
    out = np.full((len(of), 2), np.nan)
    for i, own in enumerate(of):
        if own:
            pairs = np.array(own)
            out[i] = np.percentile(pairs[:, 0], 15), np.percentile(pairs[:, 1], 85)
    return out


def _outside(at: float, intervals: np.ndarray) -> float:
    return max(0.0, float(np.nanmin(intervals)) - at, at - float(np.nanmax(intervals)))


def _wrong(at: Sequence[int | None], texts: Sequence[str], cells: Sequence[str], boxes: np.ndarray, h: float) -> float:
    """The part of a table's letters that are missing, or too many, or within it and in no cell."""
    held = [Counter[str]() for _ in cells]
    for k, text in zip(at, texts, strict=True):
        if k is not None:
            held[k].update(text)
    wrong = 0
    for own, cell in zip(held, cells, strict=True):
        true = Counter(cell)
        true["-"] = own["-"] = 0  # hyphens at the ends of lines
        wrong += (own - true).total() + (true - own).total()
    inside = boxes[[i for i, k in enumerate(at) if k is not None]]
    if not len(inside):
        return 1.0
    x0, y0, x1, y1 = (*inside[:, :2].min(0), *inside[:, 2:].max(0))
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2
    within = (middle[:, 0] > x0) & (middle[:, 0] < x1) & (middle[:, 1] > y0 + 0.2 * h) & (middle[:, 1] < y1 - 0.2 * h)
    wrong += sum(len(texts[i]) for i in np.flatnonzero(within).tolist() if at[i] is None)
    return wrong / max(1, sum(map(len, cells)))
