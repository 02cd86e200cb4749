"""Norms against their float64 twins."""

from __future__ import annotations

import pytest
import torch
from closeness import DTYPES, assert_close, wide

from tests.ops import naive
from zoo.engines.triton import norm
from zoo.engines.triton.rows import MAX_ROW, RowConfig, row_candidates, row_config
from zoo.errors import UnsupportedError

EPS = 1e-6
SHAPES = [(1, 1), (3, 8), (2, 5, 100), (9, 384), (4, 768), (2, 1536), (1, 4096), (2, 8192 + 8)]


def _inputs(shape, dtype, device):
    x, residual = (torch.randn(*shape, device=device).mul(2).add(1).to(dtype) for _ in range(2))
    weight, bias = (torch.randn(shape[-1], device=device).to(dtype) for _ in range(2))
    return x, residual, weight, bias


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_norms(shape, dtype, device):
    x, residual, weight, bias = _inputs(shape, dtype, device)
    w, b = wide(weight), wide(bias)
    assert_close(norm.layer_norm(x, weight, bias, EPS), naive.layer_norm(wide(x), w, b, EPS), 2)
    assert_close(norm.rms_norm(x, weight, EPS), naive.rms_norm(wide(x), w, EPS), 3)
    got = norm.layer_norm(x, weight, bias, EPS, residual)
    assert_close(got, naive.layer_norm(wide(x), w, b, EPS, wide(residual)), 2)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES[1:5], ids=str)
def test_norms_of_a_sum_are_of_the_sum_as_it_is_stored(shape, dtype, device):
    x, residual, weight, bias = _inputs(shape, dtype, device)
    exact = wide(x) + wide(residual)
    normed, total = norm.add_layer_norm(x, residual, weight, bias, EPS)
    assert_close(total, exact)
    assert_close(normed, naive.layer_norm(wide(total), wide(weight), wide(bias), EPS), 2)
    normed, total = norm.add_rms_norm(x, residual, weight, EPS)
    assert torch.equal(total, x + residual)
    assert_close(normed, naive.rms_norm(wide(total), wide(weight), EPS), 3)


def test_the_quotient_of_rms_norm_is_rounded_before_the_weight_multiplies_it(device):
    x, _, weight, _ = _inputs((16, 768), torch.bfloat16, device)
    quotient = (x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + EPS)).bfloat16()
    same = norm.rms_norm(x, weight, EPS) == (quotient.float() * weight.float()).bfloat16()
    assert same.float().mean() > 0.999  # but for sums that end on the other side of a tie


def test_the_weights_of_a_narrow_array_may_be_wide(device):
    x, residual, weight, bias = _inputs((4, 96), torch.bfloat16, device)
    weight, bias = weight.float() * 1.001, bias.float() * 1.001
    got = norm.layer_norm(x, weight, bias, EPS, residual.float())
    assert got.dtype == torch.bfloat16
    assert_close(got, naive.layer_norm(wide(x), wide(weight), wide(bias), EPS, wide(residual)), 2)


@pytest.mark.parametrize("take", [lambda x: x[:, 0], lambda x: x[:, 1:], lambda x: x[..., ::2], lambda x: x.mT])
def test_strided_rows(take, device):
    x = take(torch.randn(4, 6, 64, device=device))
    residual = torch.randn(x.shape, device=device)
    weight, bias = torch.randn(2, x.shape[-1], device=device)
    want = naive.layer_norm(wide(x), wide(weight), wide(bias), EPS, wide(residual))
    for first, second in ((x, residual), (residual, x)):
        got, total = norm.add_layer_norm(first, second, weight, bias, EPS)
        assert_close(got, want)
        assert got.is_contiguous()
        assert total.is_contiguous()


@pytest.mark.parametrize("order", ["reverse", "shuffle"])
def test_programs_run_in_any_order(order, device, interpreter):
    x, residual, weight, bias = _inputs((11, 40), torch.float32, device)
    with interpreter.order(order):
        got, total = norm.add_layer_norm(x, residual, weight, bias, EPS)
    assert_close(got, naive.layer_norm(wide(total), wide(weight), wide(bias), EPS))


def test_large_values_do_not_overflow_in_float16(device):
    x = torch.full((2, 64), 60000.0, dtype=torch.float16, device=device)
    x[:, ::2] = -60000
    weight, bias = torch.ones(64, device=device).half(), torch.zeros(64, device=device).half()
    want = naive.layer_norm(wide(x), wide(weight), wide(bias), EPS)
    assert_close(norm.layer_norm(x, weight, bias, EPS), want)
    assert_close(norm.rms_norm(x, weight, EPS), want)


def test_a_row_without_variance_gives_the_bias(device):
    x, bias = torch.full((3, 50), 7.5, device=device), torch.randn(50, device=device)
    assert_close(norm.layer_norm(x, torch.ones(50, device=device), bias, EPS), wide(bias.expand(3, 50)))


def test_no_rows(device):
    x, weight = torch.zeros(0, 8, device=device), torch.ones(8, device=device)
    assert norm.layer_norm(x, weight, weight, EPS).shape == (0, 8)
    assert [a.shape for a in norm.add_rms_norm(x, x, weight, EPS)] == [(0, 8), (0, 8)]


def test_too_long_rows_are_refused(device):
    x = torch.zeros(1, MAX_ROW + 1, device=device)
    with pytest.raises(UnsupportedError, match="rows of up to 32768, found 32769"):
        norm.rms_norm(x, x[0], EPS)


@pytest.mark.parametrize("config", [RowConfig(1, 1), RowConfig(2, 4), RowConfig(16, 4)], ids=str)
def test_every_config_gives_the_same(config, device):
    x, _, weight, bias = _inputs((7, 384), torch.float16, device)
    got = norm.layer_norm(x, weight, bias, EPS, config=config)
    assert_close(got, naive.layer_norm(wide(x), wide(weight), wide(bias), EPS), 2)


def test_candidates_start_with_the_choice_of_the_table():
    for D in (768, 4096, MAX_ROW):
        x = torch.zeros(1, D)
        candidates = row_candidates(x)
        assert candidates[0] == row_config(x)
        assert len(candidates) > 1


def test_every_array_is_read_and_written_once(device, interpreter):
    x, residual, weight, bias = _inputs((8, 768), torch.bfloat16, device)
    with interpreter.counting() as counts:
        norm.add_layer_norm(x, residual, weight, bias, EPS)
    size = x.numel() * x.element_size()
    assert counts.launches == 1
    assert counts.bytes_loaded["x"] == counts.bytes_loaded["residual"] == size
    assert counts.bytes_stored == {"out": size, "sums": size}
