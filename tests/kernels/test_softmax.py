"""Softmax against its float64 twin."""

from __future__ import annotations

import pytest
import torch
from closeness import DTYPES, assert_close, wide

from tests.ops import naive
from zoo.engines.triton import softmax as module
from zoo.engines.triton.rows import MAX_ROW, RowConfig
from zoo.engines.triton.softmax import softmax


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(1,), (5, 1), (2, 3, 33), (1, 2, 7, 197), (9, 512), (2, 3000)], ids=str)
def test_softmax(shape, dtype, device):
    x = torch.randn(*shape, device=device).mul(3).to(dtype)
    assert_close(softmax(x), naive.softmax(wide(x)))


@pytest.mark.parametrize("D", [40, MAX_ROW + 40])
def test_hidden_and_extreme_scores(D, device):
    inf, most = float("inf"), torch.finfo(torch.float32).max
    x = torch.randn(6, D, device=device)
    x[0] = -inf
    x[1, 1:] = -inf
    x[2] = -most  # no key is hidden by this: they are alike
    x[3, :7] = -most
    x[4] = most
    x[5, ::2] = -inf
    assert_close(softmax(x), naive.softmax(wide(x)))
    assert not softmax(x[:1]).any()


@pytest.mark.parametrize("D", [8, MAX_ROW + 1])
def test_nan_is_not_hidden(D, device):
    x = torch.zeros(2, D, device=device)
    x[0, 3] = float("nan")
    got = softmax(x)
    assert got[0].isnan().all()
    assert_close(got[1], torch.full((D,), 1 / D))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_that_do_not_fit_in_a_program(dtype, device):
    x = torch.randn(3, MAX_ROW + 77, device=device).mul(3).to(dtype)
    x[1, : module.LONG_BLOCK] = float("-inf")
    x[2, 20_000] = 30
    assert_close(softmax(x), naive.softmax(wide(x)))


def test_strided_rows(device):
    x = torch.randn(4, 6, 64, device=device)
    for view in (x[:, 0], x[:, 1:], x[..., ::2], x.mT):
        assert_close(softmax(view), naive.softmax(wide(view)))


@pytest.mark.parametrize("config", [RowConfig(1, 1), RowConfig(8, 2)], ids=str)
def test_every_config_gives_the_same(config, device):
    x = torch.randn(13, 92, device=device)
    assert_close(softmax(x, config=config), naive.softmax(wide(x)))


def test_programs_run_in_any_order(device, interpreter):
    x = torch.randn(13, 100, device=device)
    with interpreter.order("shuffle"):
        assert_close(softmax(x), naive.softmax(wide(x)))


def test_no_rows(device):
    assert softmax(torch.zeros(0, 8, device=device)).shape == (0, 8)
