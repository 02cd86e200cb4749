"""Rotary positions against their float64 twin, alone and with the write to the cache."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from closeness import DTYPES, assert_close, wide

from tests.ops import naive
from zoo.engines.triton.rope import RopeConfig, rope, rope_candidates, rope_config, rope_write_
from zoo.ops import split_heads


def _angles(B, T, K, device):
    angles = torch.rand(B, T, K // 2, device=device) * 100
    return angles.cos(), angles.sin()


def _turned(x, cos, sin):
    return naive.rope(wide(x), wide(cos), wide(sin))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(1, 1, 1, 2), (2, 3, 5, 8), (1, 4, 3, 80), (2, 1, 12, 64), (1, 2, 9, 128)], ids=str)
def test_rope(shape, dtype, device):
    B, T, _, K = shape
    x = torch.randn(*shape, device=device).to(dtype)
    for rows in {1, B}:
        cos, sin = _angles(rows, T, K, device)
        assert_close(rope(x, cos, sin), _turned(x, cos, sin))


def test_strided_heads(device):
    x = torch.randn(2, 3, 40, device=device)
    q, k, _ = split_heads(x, 3, 1)
    cos, sin = _angles(2, 3, 8, device)
    for heads in (q, k, x[..., :32].reshape(2, 3, 8, 4).mT):
        assert_close(rope(heads, cos, sin), _turned(heads, cos, sin))
    cos, sin = (a.expand(2, 3, 4) for a in _angles(2, 1, 8, device))
    assert_close(rope(q, cos, sin), _turned(q, cos, sin))


def _filled(B, S, G, K, dtype, device):
    """A cache that holds numbers, to see what is left alone."""
    return torch.randn(B, S, G, K, device=device).to(dtype)


def _written(cache, new, start):
    """The cache (float64) with `new` written from `start`, as far as it reaches."""
    out = wide(cache)
    for b, t in np.ndindex(*new.shape[:2]):
        if 0 <= start[b] + t < out.shape[1]:
            out[b, start[b] + t] = new[b, t]
    return out


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("T", "H", "G", "K"), [(1, 4, 4, 8), (5, 6, 2, 64), (3, 9, 3, 80), (2, 12, 1, 16)])
def test_rope_write(T, H, G, K, dtype, device):
    B, S, start = 3, 11, [0, 4, 6]
    q, k, v = split_heads(torch.randn(B, T, (H + 2 * G) * K, device=device).to(dtype), H, G)
    cos, sin = _angles(B, T, K, device)
    keys, values = _filled(B, S, G, K, dtype, device), _filled(B, S, G, K, dtype, device)
    want_keys, want_values = _written(keys, _turned(k, cos, sin), start), _written(values, wide(v), start)
    got = rope_write_(q, k, v, cos, sin, keys, values, torch.tensor(start, device=device))
    assert_close(got, _turned(q, cos, sin))
    assert got.is_contiguous()
    assert_close(keys, want_keys)
    assert np.array_equal(wide(values), want_values)


@pytest.mark.parametrize("integers", [torch.int32, torch.int64])
def test_what_does_not_fit_in_the_cache_is_not_written(integers, device):
    B, T, H, G, K, S, start = 4, 3, 2, 1, 8, 5, [4, 5, -2, 2**31 - 2]
    q, k, v = split_heads(torch.randn(B, T, (H + 2 * G) * K, device=device), H, G)
    cos, sin = _angles(1, T, K, device)
    whole = _filled(B, S + 4, 2, K, torch.float32, device)
    keys, values = whole[:, 2 : S + 2, :1], whole[:, 2 : S + 2, 1:]
    want = wide(whole)
    want[:, 2 : S + 2, :1] = _written(keys, _turned(k, cos, sin), start)
    want[:, 2 : S + 2, 1:] = _written(values, wide(v), start)
    got = rope_write_(q, k, v, cos, sin, keys, values, torch.tensor(start, dtype=integers, device=device))
    assert_close(got, _turned(q, cos, sin))
    assert_close(whole, want)


@pytest.mark.parametrize("config", [RopeConfig(1, 1), RopeConfig(4, 2), RopeConfig(16, 4)], ids=str)
def test_every_config_gives_the_same_in_any_order(config, device, interpreter):
    q, k, v = split_heads(torch.randn(2, 3, 13 * 8, device=device), 7, 3)
    cos, sin = _angles(2, 3, 8, device)
    keys, values = _filled(2, 9, 3, 8, torch.float32, device), _filled(2, 9, 3, 8, torch.float32, device)
    want = _written(keys, _turned(k, cos, sin), [1, 5])
    with interpreter.order("shuffle"):
        got = rope_write_(q, k, v, cos, sin, keys, values, torch.tensor([1, 5], device=device), config=config)
        assert_close(rope(q, cos, sin, config=config), wide(got))
    assert_close(got, _turned(q, cos, sin))
    assert_close(keys, want)


def test_candidates_start_with_the_choice_of_the_table():
    x = torch.zeros(1, 1, 32, 128)
    assert rope_candidates(x)[0] == rope_config(x)
    assert len(rope_candidates(x)) > 1


def test_no_tokens(device):
    cos, sin = _angles(1, 0, 8, device)
    assert rope(torch.zeros(2, 0, 3, 8, device=device), cos, sin).shape == (2, 0, 3, 8)
