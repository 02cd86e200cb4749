"""Rows that are lines of the row above, whose texts go on in them.

Small networks, and tables whose lines are apart, make a row of each line of a cell.
"""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from .boxes import HALF_SHARE, bounding_box
from .table import Word
from .values import is_mostly_figures
from .words import Interval, words_at

LEADING = 1.7  # multiple of the height of words: the most from a line of a header's cell to the next one
LINE_MARGIN = 0.1  # share of the height of words: so much nearer than rows are the lines of a row
SMALL_NAMES = 0.3  # share of the texts of the first column that begin with small letters: more, and each may be a row
# Of the rows: so many have a text in the first column, and what has none may be a line of the row above.
MIN_NAMED = 0.7


def join_wrapped_rows(
    rows: Sequence[Interval], columns: Sequence[Interval], words: Sequence[Word], header_rows: int
) -> list[Interval]:
    """The rows with those joined to the one above that are its last line: names go on, numbers are missing.

    Where many names begin with small letters, these say nothing.
    """
    found = list(rows)
    at: list[dict[int, list[Word]]] = [{} for _ in rows]
    for (row, column), own in words_at(words, rows, columns).items():
        at[row][column] = own
    near = _near_rows(at, header_rows)
    body = [r for r in range(header_rows, len(at)) if r not in near]
    names = [_begins_small(at[r][0]) for r in body if 0 in at[r]]
    small = sum(names) > SMALL_NAMES * len(names)
    named = len(names) > MIN_NAMED * len(body)
    for r in reversed(range(header_rows, len(rows) - 1)):
        upper, lower = at[r], at[r + 1]
        fewer = 0 < len(lower) < len(upper) and lower.keys() <= upper.keys() and (named or 0 in lower)
        heading = upper.keys() == lower.keys() == {0} and _begins_small(lower[0]) and goes_on(upper[0], lower[0])
        tall = not small if 0 in lower else all(_mostly_tall([at[k][c] for k in body if c in at[k]]) for c in lower)
        is_last = fewer and tall and all(is_wrapped(upper[c], own) for c, own in lower.items())
        if r + 1 in near or is_last or (heading and tall):
            found[r : r + 2] = [Interval(found[r].start, found[r + 1].end, found[r].score)]
    return found


def _near_rows(at: Sequence[dict[int, list[Word]]], header_rows: int) -> set[int]:
    """The rows that are lines of the one above: nearer than rows are, with texts below some of its texts, no numbers.

    They have no name, or one of their texts begins with a small letter where those of rows do not; all of them, if most
    do, or if the texts of rows have as many lines as they need, and not all the same number.
    at: the words of each row by their columns.
    """
    high = statistics.median([w.box[3] - w.box[1] for of in at for own in of.values() for w in own] or [0.0])
    body = range(header_rows, len(at))
    pitches = {r: _pitch(at[r - 1], at[r], high) for r in body[1:] if at[r - 1] and at[r]}
    lines = set(_rows_close_below(at, pitches, float("inf")))
    apart = sorted(pitch for r, pitch in pitches.items() if r not in lines)
    if not apart or not lines:
        return set()
    lines = set(_rows_close_below(at, pitches, apart[len(apart) // 5] - LINE_MARGIN * high))
    firsts = [r for r in body if r not in lines]
    tall = {
        c for c in range(1 + max(map(max, filter(None, at)))) if _mostly_tall([at[r][c] for r in firsts if c in at[r]])
    }
    counts = [
        Counter(c for r in range(a, b) for c in at[r]).values() for a, b in itertools.pairwise([*firsts, len(at)])
    ]
    wrapped = [more for own in counts if len(more := [n for n in own if n > 1]) > 1]
    uneven = bool(wrapped) and 2 * sum(min(own) < max(own) for own in wrapped) >= len(wrapped)
    going_on = {r for r in lines if any(c in tall and _begins_small(own) for c, own in at[r].items())}
    if uneven or 2 * len(going_on) >= len(lines):
        return lines
    return going_on | {r for r in lines if 0 not in at[r]}


def _rows_close_below(at: Sequence[dict[int, list[Word]]], pitches: Mapping[int, float], near: float) -> Iterator[int]:
    """The rows nearer than `near` that may be lines of a row above."""
    first: dict[int, list[Word]] = {}
    for r, of in enumerate(at):
        fewer = of.keys() < first.keys() or (of.keys() == first.keys() and any(map(_begins_small, of.values())))
        if fewer and pitches.get(r, near) < near and not any(map(_is_number, of.values())):
            yield r
        else:
            first = of


def _pitch(upper: dict[int, list[Word]], lower: dict[int, list[Word]], high: float) -> float:
    """The distance of the last line of a row and the first one of the next."""
    above, below = ([w.box for own in of.values() for w in own] for of in (upper, lower))
    last = bounding_box(box for box in above if box[3] > max(b[3] for b in above) - HALF_SHARE * high)
    first = bounding_box(box for box in below if box[1] < min(b[1] for b in below) + HALF_SHARE * high)
    return (first[1] + first[3] - last[1] - last[3]) / 2


def is_wrapped(upper: Sequence[Word], lower: Sequence[Word]) -> bool:
    """Return True if a text goes on in the next line, which begins with a small letter.

    So does any line after a dash, a slash or a comma.
    """
    last = max(upper, key=lambda word: (word.box[3], word.box[2])).text
    first = min(lower, key=lambda word: (word.box[1], word.box[0])).text
    small = first[0].islower()
    if not small and not last.endswith(("/", "-", "–", ",")):
        return False
    return goes_on(upper, lower, small and last.endswith("-"))


def goes_on(upper: Sequence[Word], lower: Sequence[Word], parted: bool = False) -> bool:
    """Return True if two texts are one: near, with one edge or their middles in common, or a word that is parted.

    The second is not a number, unless the first ends with a dash, as that of a range does.
    """
    a, b = (bounding_box(word.box for word in line) for line in (upper, lower))
    high = max(word.box[3] - word.box[1] for word in [*upper, *lower])
    away = min(abs(a[0] - b[0]), abs(a[2] - b[2]), abs(a[0] + a[2] - b[0] - b[2]) / 2)
    first = min(word.box[3] for word in lower)  # of its lines
    range_of = max(upper, key=lambda word: (word.box[3], word.box[2])).text.endswith(("-", "–"))
    return (
        (range_of or not _is_number(lower)) and first - a[3] <= LEADING * high and (parted or away <= HALF_SHARE * high)
    )


def _mostly_tall(texts: Sequence[Sequence[Word]]) -> bool:
    return sum(map(_begins_small, texts)) <= SMALL_NAMES * len(texts)


def _begins_small(words: Sequence[Word]) -> bool:
    text = min(words, key=lambda w: (w.box[1], w.box[0])).text
    small = text[:2].isalpha() and text[0].islower()  # a letter alone is no word: "p", or a dash misread
    return small or _is_unit(text)


def _is_unit(text: str) -> bool:
    """Return True for the beginning of what is in brackets below a name: "(mg/g liver)"."""
    return text[0] == "(" and text[1:2].islower()


def _is_number(words: Sequence[Word]) -> bool:
    return is_mostly_figures("".join(word.text for word in words))
