"""A matrix times one row, against the float64 twin of `linear`."""

from __future__ import annotations

import pytest
import torch
from closeness import assert_close, wide

from tests.ops import naive
from zoo.engines.triton.gemv import GemvConfig, gemv, gemv_candidates, gemv_config, suits
from zoo.errors import InputError, UnsupportedError

NARROW = (torch.float16, torch.bfloat16)


def _inputs(inputs, outputs, dtype, device):
    x = torch.randn(1, inputs, device=device).to(dtype)
    weight = torch.randn(outputs, inputs, device=device).div(inputs**0.5).to(dtype)
    bias, residual = torch.randn(outputs, device=device).to(dtype), torch.randn(1, outputs, device=device).to(dtype)
    return x, weight, bias, residual


def _exact(x, weight, bias, act, residual):
    return naive.linear(wide(x), wide(weight), *(None if a is None else wide(a) for a in (bias,)), act) + (
        0 if residual is None else wide(residual)
    )


SIZES = [(1, 1), (100, 7), (512, 33), (1000, 130), (4096, 5), (14336, 3)]


@pytest.mark.parametrize(
    ("inputs", "outputs", "dtype"), [(*sizes, NARROW[i % 2]) for i, sizes in enumerate(SIZES)], ids=str
)
def test_gemv(inputs, outputs, dtype, device):
    x, weight, bias, residual = _inputs(inputs, outputs, dtype, device)
    assert_close(gemv(x, weight), _exact(x, weight, None, None, None))
    assert_close(gemv(x, weight, bias, "gelu", residual), _exact(x, weight, bias, "gelu", residual))


@pytest.mark.parametrize("act", ["silu", "tanh", "relu2"])
def test_what_follows_the_product(act, device):
    x, weight, bias, residual = _inputs(64, 40, torch.float16, device)
    assert_close(gemv(x, weight, None, act), _exact(x, weight, None, act, None))
    assert_close(gemv(x, weight, bias, act), _exact(x, weight, bias, act, None))
    assert_close(gemv(x, weight, None, None, residual), _exact(x, weight, None, None, residual))


def test_any_shape_of_one_row(device):
    x, weight, _, residual = _inputs(64, 40, torch.bfloat16, device)
    want = _exact(x, weight, None, None, residual)
    for shape in ((), (1,), (1, 1)):
        got = gemv(x.view(*shape, 64), weight, residual=residual.view(*shape, 40))
        assert_close(got, want.reshape(*shape, 40))


def test_strided_arguments(device):
    x, weight, bias, residual = _inputs(128, 48, torch.float16, device)
    want = _exact(x[:, ::2], weight[::2, :64], bias[::2], None, residual[:, ::2])
    got = gemv(x[:, ::2], weight[::2, :64], bias[::2], None, residual[:, ::2])
    assert_close(got, want)


def test_large_sums_are_kept_in_float32(device):
    x = torch.full((1, 4096), 16.0, dtype=torch.float16, device=device)
    weight = torch.full((4, 4096), 2.0, dtype=torch.float16, device=device)
    weight[:, 1::2] = -2  # beyond 65504 on the way, in whatever order but this one
    assert_close(gemv(x, weight), torch.zeros(1, 4))


def test_what_it_does_not_take(device):
    x, weight, _, _ = _inputs(64, 40, torch.float16, device)
    assert suits(x, weight)
    for other in ((x.float(), weight.float()), (x, weight.bfloat16()), (x.expand(2, 64), weight), (x, weight.T)):
        assert not suits(*other)
        with pytest.raises(InputError, match="one row and a matrix of the same 16 bits"):
            gemv(*other)
    with pytest.raises(UnsupportedError, match="no activation 'swish'"):
        gemv(x, weight, act="swish")


@pytest.mark.parametrize("config", [GemvConfig(1, 64, 1), GemvConfig(8, 256, 4), GemvConfig(4, 32, 2)], ids=str)
def test_every_config_gives_the_same_in_any_order(config, device, interpreter):
    x, weight, bias, residual = _inputs(300, 21, torch.bfloat16, device)
    with interpreter.order("shuffle"):
        got = gemv(x, weight, bias, "silu", residual, config=config)
    assert_close(got, _exact(x, weight, bias, "silu", residual))


def test_candidates_start_with_the_choice_of_the_table():
    for outputs in (8, 30_000):
        weight = torch.zeros(outputs, 64)
        assert gemv_candidates(weight)[0] == gemv_config(weight)
        assert len(gemv_candidates(weight)) > 1


def test_the_matrix_is_read_once(device, interpreter):
    x, weight, _, _ = _inputs(1024, 32, torch.float16, device)
    with interpreter.counting() as counts:
        gemv(x, weight)
    assert counts.bytes_loaded["weight"] == weight.numel() * 2
    assert counts.bytes_stored == {"out": 64}
