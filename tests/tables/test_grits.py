"""GriTS: hand-computed cases, a plain twin of the paper's algorithm, brute force over all pairs of substructures."""

from __future__ import annotations

import itertools
from difflib import SequenceMatcher

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_tables import EXAMPLES, make, of_cells, pubtabnet, tables

from zoo.apps.tables import Cell, Table
from zoo.apps.tables import grits as module
from zoo.apps.tables.grits import common_subsequences, grits
from zoo.errors import InputError

METRICS = ("top", "con", "loc")
SMALL = st.sampled_from(["", "a", "b", "ab", "ba", "abc", "cab"])
REAL = {name: Table.from_html(html) for name, html in pubtabnet().items()}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", REAL)
def test_a_real_table_agrees_with_itself(name, metric):
    table = REAL[name]
    assert grits(table, table, metric) == (1, 1, 1, 1)
    rows = table.rows()
    shorter = make(rows[:-1])
    score = grits(make(rows), shorter, metric)
    assert score.precision == 1
    assert score.recall == pytest.approx((len(rows) - 1) / len(rows))
    assert score.f == score.upper_bound == pytest.approx(2 * (len(rows) - 1) / (2 * len(rows) - 1))


def test_content_by_hand():
    true = make([["ab", "cd"], ["ef", "gh"]])
    assert grits(true, make([["ab", "cx"], ["ef", ""]]), "con") == pytest.approx((2.5 / 4, 2.5 / 4, 2.5 / 4, 2.5 / 4))
    assert grits(true, make([["ab"], ["ef"]]), "con") == pytest.approx((2 * 2 / 6, 1, 2 / 4, 2 * 2 / 6))
    assert grits(true, make([["gh", "cd"], ["ef", "ab"]]), "con").f == pytest.approx(2 / 4)


def test_a_transposed_table():
    true = make([["a", "b", "c"], ["d", "e", "f"]])
    turned = make([["a", "d"], ["b", "e"], ["c", "f"]])
    assert grits(true, turned, "con").f == pytest.approx(2 * 2 / 12)  # a b, d e against a d, b e
    assert grits(true, turned, "top").f == pytest.approx(2 * 4 / 12)


def test_topology_by_hand():
    """A cell of 1 x 2 is seen from its left position as (0, 0, 2, 1), from its right as (-1, 0, 1, 1): half of each."""
    plain, wide = make([["a", "b"]]), make([["a", ""]], spans={(0, 0): (1, 2)})
    assert grits(plain, wide, "top") == pytest.approx((0.5, 0.5, 0.5, 0.5))
    # (0, 0, 2, 1) and (0, 0, 1, 2) share 1 of 3; the box around both has 4.
    tall = make([["a"], [""]], spans={(0, 0): (2, 1)})
    assert grits(wide, tall, "top").f == pytest.approx(2 * (1 / 3) / 4)
    assert grits(wide, tall, "top", published=True).f == pytest.approx(2 * (1 / 4) / 4)


def test_location_by_hand():
    def one(*box: float) -> Table:
        return of_cells([Cell(0, 0, 1, 1, box)], 1, 1)

    assert grits(one(0, 0, 2, 2), one(1, 1, 3, 3), "loc").f == pytest.approx(1 / 7)
    assert grits(one(0, 0, 2, 2), one(1, 1, 3, 3), "loc", published=True).f == pytest.approx(1 / 9)
    assert grits(one(0, 0, 2, 2), one(2, 0, 3, 3), "loc").f == 0
    assert grits(one(0, 0, 0, 2), one(0, 0, 0, 2), "loc").f == 1  # a row without height, found as it is
    assert grits(one(0, 0, 0, 2), one(0, 0, 0, 2), "loc", published=True).f == 0


def test_tables_without_positions():
    empty, table = of_cells([], 0, 0), make([["a"]])
    assert grits(empty, of_cells([], 0, 2), "con") == (1, 1, 1, 1)
    assert grits(empty, table, "con") == (0, 0, 1, 0)
    assert grits(table, empty, "top") == (0, 1, 0, 0)


def things(table: Table, metric: str) -> list[list]:
    def thing(cell: Cell, r: int, c: int):
        x, y = cell.column - c, cell.row - r
        return {"con": cell.text, "loc": cell.box, "top": (x, y, x + cell.column_span, y + cell.row_span)}[metric]

    return [[thing(cell, r, c) for c, cell in enumerate(row)] for r, row in enumerate(table.grid())]


def subsequence(a: str, b: str) -> int:
    """The longest common one's length, by the textbook."""
    rows = [[0] * (len(b) + 1)]
    for x in a:
        row = [0]
        for j, y in enumerate(b):
            row.append(rows[-1][j] + 1 if x == y else max(row[-1], rows[-1][j + 1]))
        rows.append(row)
    return rows[-1][-1]


def similarity(a, b, metric: str, published: bool) -> float:
    if metric == "con":
        if published:
            return SequenceMatcher(None, a, b).ratio()
        return 2 * subsequence(a, b) / (len(a) + len(b)) if a or b else 1.0
    width, height = (min(a[i + 2], b[i + 2]) - max(a[i], b[i]) for i in (0, 1))
    inner = max(width, 0) * max(height, 0)
    if published:
        whole = (max(a[2], b[2]) - min(a[0], b[0])) * (max(a[3], b[3]) - min(a[1], b[1]))
    else:
        whole = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)) - inner
    return inner / whole


def aligned(a: list, b: list, reward) -> tuple[float, list[tuple[int, int]]]:
    best = np.zeros((len(a) + 1, len(b) + 1))
    rewards = np.array([[reward(x, y) for y in b] for x in a])
    for i, j in itertools.product(range(len(a)), range(len(b))):
        best[i + 1, j + 1] = max(best[i, j] + rewards[i, j], best[i, j + 1], best[i + 1, j])
    i, j, pairs = len(a), len(b), []
    while i and j:
        if best[i, j] == best[i - 1, j - 1] + rewards[i - 1, j - 1]:
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif best[i, j] == best[i - 1, j]:
            i -= 1
        else:
            j -= 1
    return best[-1, -1], pairs


def twin(true: list[list], predicted: list[list], reward) -> tuple[float, float]:
    """Similarity and upper bound of the paper's algorithm, position by position."""

    def of_rows(a, b):
        return aligned(a, b, lambda x, y: aligned(x, y, reward)[0])

    by_rows, rows = of_rows(true, predicted)
    by_columns, columns = of_rows(list(zip(*true, strict=True)), list(zip(*predicted, strict=True)))
    return sum(reward(true[i][k], predicted[j][n]) for i, j in rows for k, n in columns), min(by_rows, by_columns)


@settings(EXAMPLES, max_examples=60)
@given(tables(SMALL, most=4), tables(SMALL, most=4), st.sampled_from(METRICS), st.booleans())
def test_a_plain_twin_agrees(a, b, metric, published):
    def reward(x, y):
        return similarity(x, y, metric, published)

    found = grits(a, b, metric, published=published)
    value, bound = twin(things(a, metric), things(b, metric), reward)
    total = a.shape[0] * a.shape[1] + b.shape[0] * b.shape[1]
    if published:
        assert found.f == pytest.approx(2 * value / total)
    else:
        assert found.f >= 2 * value / total - 1e-12
        assert found.f == grits(b, a, metric).f
    assert found.upper_bound == pytest.approx(max(bound, found.f * total / 2) * 2 / total)
    if found.f:
        assert found.f == pytest.approx(2 / (1 / found.precision + 1 / found.recall))


def best_of_all(true: list[list], predicted: list[list], reward) -> float:
    """The similarity of the most similar substructures, tried one after the other."""

    def choices(n: int, m: int):
        for count in range(min(n, m) + 1):
            for a in itertools.combinations(range(n), count):
                for b in itertools.combinations(range(m), count):
                    yield list(zip(a, b, strict=True))

    rewards = np.array([[[[reward(x, y) for y in q] for q in predicted] for x in p] for p in true])
    return max(
        sum(rewards[i, k, j, n] for i, j in rows for k, n in columns)
        for rows in choices(len(true), len(predicted))
        for columns in choices(len(true[0]), len(predicted[0]))
    )


@settings(EXAMPLES, max_examples=30)
@given(tables(SMALL, most=3), tables(SMALL, most=3), st.sampled_from(METRICS))
def test_brute_force_lies_between_score_and_bound(a, b, metric):
    found = grits(a, b, metric)
    best = best_of_all(things(a, metric), things(b, metric), lambda x, y: similarity(x, y, metric, False))
    best *= 2 / (a.shape[0] * a.shape[1] + b.shape[0] * b.shape[1])
    assert found.f <= best + 1e-9
    assert best <= found.upper_bound + 1e-9


def test_the_score_is_the_best_where_texts_are_distinct():
    true = [["a", "b", "c"], ["d", "e", "f"], ["g", "h", "i"]]
    for rows, columns in itertools.product(itertools.combinations(range(3), 2), repeat=2):
        part = make([[true[r][c] for c in columns] for r in rows])
        best = best_of_all(true, part.rows(), lambda x, y: float(x == y))
        assert grits(make(true), part, "con").f == 2 * best / 13 == 8 / 13


@EXAMPLES
@given(
    st.lists(st.text("abcd😀", max_size=70), min_size=1, max_size=6),
    st.lists(st.text("abce😀", max_size=70), min_size=1),
)
def test_common_subsequences_are_the_longest(a, b):
    expected = [[similarity(x, y, "con", False) for y in b] for x in a]
    np.testing.assert_allclose(common_subsequences(a, b), expected, rtol=1e-15)


def test_many_and_long_texts_are_taken_in_parts(monkeypatch):
    monkeypatch.setattr(module, "MAX_CHARACTERS", 20)
    monkeypatch.setattr(module, "AT_ONCE", 10)
    texts = ["abcabc", "", "b" * 20, "c", "abba", "cab" * 6]
    expected = [[similarity(x, y, "con", False) for y in texts] for x in texts]
    np.testing.assert_allclose(common_subsequences(texts, texts), expected)
    table = make([texts, texts[::-1]])
    assert grits(table, table, "con").f == 1


def test_what_cannot_be_compared_is_refused():
    table, big = make([["a"]]), make([["x"] * 100] * 100)
    with pytest.raises(InputError, match="metric is 'cont', expected one of top, con, loc; did you mean 'con'"):
        grits(table, table, "cont")
    with pytest.raises(InputError, match="10,000 x 10,000 pairs of positions"):
        grits(big, big, "top")
    with pytest.raises(InputError, match="65,537 characters, at most 65,536"):
        grits(table, make([["a" * 65_537]]), "con")
    long = make([[chr(i) * 65_536 for i in range(17)]])
    with pytest.raises(InputError, match="pairs of characters"):
        grits(long, long, "con")


def test_large_tables():
    """4 million pairs of texts, of which a loop over them would take minutes."""
    random = np.random.default_rng(0)
    rows = [[f"{x:.4f}" for x in row] for row in random.random((100, 20))]
    true, found = make(rows), make([row[:7] + row[8:] for row in rows[:40] + rows[41:]])
    for metric in ("top", "con"):
        assert grits(true, found, metric).f == pytest.approx(2 * 99 * 19 / (100 * 20 + 99 * 19))
