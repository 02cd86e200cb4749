"""The cache: rows of unequal length, that leave, change places and repeat."""

from __future__ import annotations

import numpy as np
import pytest

from zoo import ops
from zoo.cache import KVCache
from zoo.errors import InputError

BACKENDS = ["numpy", "torch"]


def like(backend: str):
    if backend == "numpy":
        return np.zeros(1, np.float32)
    return pytest.importorskip("torch", reason="needs torch").zeros(1)


def filled(backend: str, counts: list[int], cross: int = 0) -> tuple[KVCache, np.ndarray]:
    """A cache of two layers whose row b holds counts[b] tokens, and these: key (layer, b, t) of all."""
    one, longest = like(backend), max(counts)
    cache = KVCache(2, len(counts), longest + 3, 2, 4, one)
    values = np.random.default_rng(0).standard_normal((2, len(counts), longest, 2, 4)).astype(np.float32)
    given = values if backend == "numpy" else pytest.importorskip("torch").from_numpy(values)
    for layer in range(2):
        cache[layer].extend(given[layer], -given[layer])
    cache.advance(np.array(counts))
    if cross:
        states = np.arange(cross * 6, dtype=np.float32).reshape(cross, 3, 1, 2)
        states = states if backend == "numpy" else pytest.importorskip("torch").from_numpy(states)
        cache.cross = {0: (states, -states, states[:, :, 0, 0] > 2)}
    return cache, values


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("index", [[2, 0], [1, 1, 0], [0, 1, 2], [2], [0, 0, 1, 2, 2, 2], [1, 2, 0]], ids=str)
def test_select(backend, index):
    counts = [4, 2, 5]
    cache, values = filled(backend, counts)
    cache.select(np.array(index))
    assert cache.counts.tolist() == ops.to_numpy(cache.start).tolist() == [counts[i] for i in index]
    assert cache.length == max(counts[i] for i in index)
    for layer in range(2):
        for row, i in enumerate(index):
            found = ops.to_numpy(cache.keys[layer])[row, : counts[i]]
            np.testing.assert_array_equal(found, values[layer, i, : counts[i]])
            np.testing.assert_array_equal(-ops.to_numpy(cache.values[layer])[row, : counts[i]], found)


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_join_and_leave(backend):
    cache, values = filled(backend, [4, 2, 5])
    cache.select(np.array([0, 2]))
    other, _ = filled(backend, [7])
    cache.admit(other, rows=8)  # more tokens than the batch had room for
    memory = cache.keys[0]
    cache.select(np.array([2, 1]))
    cache.admit(other, rows=8)
    assert np.shares_memory(ops.to_numpy(memory), ops.to_numpy(cache.keys[0]))  # a place was free
    assert cache.capacity == other.capacity
    assert cache.counts.tolist() == ops.to_numpy(cache.start).tolist() == [7, 5, 7]
    seven = ops.to_numpy(other.keys[1])[0, :7]
    for row, wanted in enumerate([seven, values[1, 2, :5], seven]):
        np.testing.assert_array_equal(ops.to_numpy(cache.keys[1])[row, : len(wanted)], wanted)
        np.testing.assert_array_equal(ops.to_numpy(cache.values[1])[row, : len(wanted)], -wanted)
    cache[0].extend(memory[:, :1], memory[:, :1])  # there is room for more
    with pytest.raises(InputError, match="encoder"):
        cache.admit(filled(backend, [3], cross=1)[0], rows=8)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("rows", "index", "kept"),
    [
        (2, [0, 0, 0, 1, 1, 1], [0, 1]),  # beams of each begin
        (4, [1, 0, 2, 2], [0, 1]),  # beams change places
        (4, [2, 3], [1]),  # the first has ended
        (4, [0, 2, 3], [0, 1, 1]),  # one row of the first has ended: no longer equally many
        (2, [1, 0], [1, 0]),
        (4, [0, 2, 1, 3], [0, 1, 0, 1]),
    ],
)
def test_rows_share_what_an_encoder_gave(backend, rows, index, kept):
    cache, _ = filled(backend, [3] * rows, cross=2)
    before = ops.to_numpy(cache.cross[0][0])
    cache.select(np.array(index))
    keys, values, mask = cache.cross[0]
    assert mask is not None
    np.testing.assert_array_equal(ops.to_numpy(keys), before[kept])
    np.testing.assert_array_equal(ops.to_numpy(values), -before[kept])
    np.testing.assert_array_equal(ops.to_numpy(mask), before[kept][:, :, 0, 0] > 2)


def test_lengths_of_rows_are_checked():
    cache, _ = filled("numpy", [4, 2, 5])
    assert cache.check_lengths(np.array([1, 3, 2]), 3).tolist() == [1, 3, 2]
    for bad in ([0, 1, 1], [1, 1], [4, 1, 1]):
        with pytest.raises(InputError, match="expected 3 numbers from 1 to 3"):
            cache.check_lengths(np.array(bad), 3)


def test_what_does_not_fit_is_refused():
    cache, values = filled("numpy", [4, 2, 5])
    with pytest.raises(InputError, match="the cache has room for 8 tokens: 5 are in it, 4 more do not fit"):
        cache[0].extend(values[0, :, :4], values[0, :, :4])
    with pytest.raises(InputError, match="2 rows, but the cache was made for 3"):
        cache[0].extend(values[0, :2], values[0, :2])
    for batch, capacity in ((0, 3), (3, 0), (3, -1)):
        with pytest.raises(InputError, match="at least 1"):
            KVCache(1, batch, capacity, 1, 1, values)


@pytest.mark.parametrize("backend", BACKENDS)
def test_start_stays_where_it_is(backend):
    """A recorded step reads it there."""
    cache, _ = filled(backend, [4, 2, 5])
    start, shares = cache.start, lambda x: np.shares_memory(ops.to_numpy(x), ops.to_numpy(start))
    cache.advance(2)
    cache.advance(-1)
    assert cache.start is start
    assert ops.to_numpy(start).tolist() == cache.counts.tolist() == [5, 3, 6]
    cache.advance(np.array([1, 0, -2]))
    assert cache.start is start
    assert ops.to_numpy(start).tolist() == [6, 3, 4]
    cache.select(np.array([2, 0]))
    assert shares(cache.start)
    assert ops.to_numpy(cache.start).tolist() == [4, 6]
    # An interrupt came when the device had been told, and the host had not.
    cache._start.add(77, cache.counts, cache.counts + 77)
    assert ops.to_numpy(cache.start).tolist() == [4, 6]
    for bad in (3, -5, np.array([0, 3])):
        with pytest.raises(InputError, match="the cache has room for 8"):
            cache.advance(bad)
    assert cache.counts.tolist() == [4, 6]


@pytest.mark.parametrize("backend", BACKENDS)
def test_whole_and_first_rows(backend):
    cache, _ = filled(backend, [4, 2, 5])
    k = ops.zeros((3, 1, 2, 4), cache.keys[0]) + 1
    assert [x.shape[1] for x in cache[0].extend(k, k)] == [6, 6]
    cache.whole = True
    assert [x.shape[1] for x in cache[0].extend(k, k)] == [8, 8]
    assert [x.shape[1] for x in cache[0].extend(k, k, masked=True)] == [6, 6]
    first = cache.first(2)
    assert ops.to_numpy(first.start).tolist() == first.counts.tolist() == [0, 0]
    assert np.shares_memory(ops.to_numpy(first.keys[1]), ops.to_numpy(cache.keys[1]))


@pytest.mark.parametrize("backend", BACKENDS)
def test_turned_keys_are_stored(backend):
    cache, _ = filled(backend, [4, 2, 5])
    rng = np.random.default_rng(0)
    given = [rng.standard_normal((3, 2, n, 4)).astype(np.float32) for n in (4, 2, 2)]
    turn = [rng.standard_normal((3, 2, 2)).astype(np.float32) for _ in range(2)]
    if backend == "torch":
        torch = pytest.importorskip("torch")
        given, turn = [torch.from_numpy(x) for x in given], [torch.from_numpy(x) for x in turn]
    q, k, v = given
    found = cache[0].rotate_and_extend(q, k, v, (turn[0], turn[1]))
    stored = cache[1].extend(ops.rope(k, *turn), v)
    np.testing.assert_array_equal(ops.to_numpy(found[0]), ops.to_numpy(ops.rope(q, *turn)))
    for a, b in zip(found[1:], stored, strict=True):
        for row, at in enumerate((4, 2, 5)):
            np.testing.assert_array_equal(ops.to_numpy(a)[row, at : at + 2], ops.to_numpy(b)[row, at : at + 2])
    q, k, v = (ops.cat([x, x], 1) for x in given)
    with pytest.raises(InputError, match="4 more do not fit"):
        cache[0].rotate_and_extend(q, k, v, (turn[0], turn[1]))
