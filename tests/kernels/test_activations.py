"""Activations against their float64 twins."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from closeness import DTYPES, assert_close, wide

from tests.ops import naive
from zoo.engines.triton.activations import ACTS, PointConfig, bias_act_, erf, glu, point_candidates, point_config
from zoo.errors import UnsupportedError
from zoo.ops import ACTIVATIONS


def test_every_activation_of_the_configs_has_its_formula():
    assert set(ACTS) == {name for name in ACTIVATIONS.values() if name}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("act", [*ACTS, None])
def test_bias_act(act, dtype, device):
    x, bias = torch.randn(3, 5, 77, device=device).mul(3).to(dtype), torch.randn(77, device=device).to(dtype)
    want = naive.ACT[act](wide(x) + wide(bias))
    got = bias_act_(x, bias, act)
    assert got is x
    assert_close(got, want)


@pytest.mark.parametrize("act", ACTS)
def test_a_wide_range(act, device):
    """Relative to the result alone where it is small: tanh and its like must not lose digits near 0."""
    x = torch.cat([torch.linspace(-30, 30, 3001), torch.logspace(-20, 2, 200), -torch.logspace(-20, 2, 200)]).to(device)
    want = naive.ACT[act](wide(x))
    got = bias_act_(x.clone(), None, act)
    assert_close(got, want)
    small = (x.abs() < 0.5).cpu()
    relative = np.abs(wide(got)[small] - want[small]) / np.maximum(np.abs(want[small]), 1e-30)
    assert relative.max() < 2e-6


@pytest.mark.parametrize("act", ACTS)
def test_infinities_nan_and_the_largest_numbers(act, device):
    x = torch.tensor([float("inf"), float("-inf"), float("nan"), 3e38, -3e38, 1e4, -1e4, 0.0], device=device)
    with np.errstate(all="ignore"):
        want = torch.from_numpy(naive.ACT[act](wide(x)).astype(np.float32))
    got = bias_act_(x, None, act).cpu()
    torch.testing.assert_close(got, want, equal_nan=True, rtol=1e-5, atol=1e-30)


@triton.jit
def _erf_kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, erf(tl.load(x + at, mask=at < n, other=0.0)), mask=at < n)


def test_the_error_of_the_fast_erf(device):
    """Every 4,093rd of all floats from 0 to infinity, and their negatives."""
    x = torch.from_numpy(np.arange(0, 0x7F800001, 4093, dtype=np.int32).view(np.float32)).to(device)
    x = torch.cat([x, -x, torch.linspace(-5, 5, 500_001, device=device)])
    out, block = torch.empty_like(x), 1024 if x.is_cuda else 1 << 18
    _erf_kernel[(triton.cdiv(len(x), block),)](x, out, len(x), block)
    error = (out.double() - torch.erf(x.double())).abs().max()
    assert error <= 2e-7 + x.is_cuda * 2**-22  # by which a GPU's exp2 is off


def test_float32_takes_the_exact_erf(interpreter):
    """An error of 5e-8 x, where the fast erf makes 6.8e-8 x.  Not of a GPU, whose own erf may be off by more."""
    x = torch.linspace(-6, -0.001, 100_001)
    want = naive.ACT["gelu"](wide(x))
    error = np.abs(wide(bias_act_(x.clone(), None, "gelu")) - want) / np.abs(wide(x))
    assert error.max() < 5e-8


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("act", ["silu", "gelu", None])
@pytest.mark.parametrize("shape", [(1, 2), (2, 3, 2 * 77), (1, 2 * 3000)], ids=str)
def test_glu(shape, act, dtype, device):
    x = torch.randn(*shape, device=device).mul(2).to(dtype)
    assert_close(glu(x, act), naive.glu(wide(x), act))


def test_strided_rows(device):
    whole = torch.randn(2, 4, 32, device=device)
    for view in (whole[:, 0], whole[:, 1:], whole[..., ::2], whole.mT):
        assert_close(glu(view, "silu"), naive.glu(wide(view), "silu"))
        before, bias = whole.clone(), torch.randn(view.shape[-1], device=device)
        want = naive.ACT["gelu"](wide(view) + wide(bias))
        assert bias_act_(view, bias, "gelu") is view
        assert_close(view, want)
        whole.copy_(before)


def test_only_the_view_is_written(device):
    whole = torch.zeros(4, 64, device=device)
    bias_act_(whole[:, 8:24], torch.ones(16, device=device), "relu")
    assert float(whole.sum()) == 64
    assert (whole[:, 8:24] == 1).all()


def test_nothing_to_do(device):
    x = torch.randn(4, 8, device=device)
    assert torch.equal(bias_act_(x.clone(), None, None), x)
    assert bias_act_(x[:0], None, "relu").shape == (0, 8)
    assert glu(x[:0], "silu").shape == (0, 4)


def test_an_unknown_activation_is_refused(device):
    with pytest.raises(UnsupportedError, match="no activation 'gelu_new'; did you mean 'gelu_tanh'"):
        bias_act_(torch.zeros(4, device=device), None, "gelu_new")


@pytest.mark.parametrize("config", [PointConfig(16, 1), PointConfig(256, 8)], ids=str)
def test_every_config_gives_the_same(config, device):
    x, bias = torch.randn(3, 300, device=device), torch.randn(300, device=device)
    assert_close(glu(x, "silu", config=config), naive.glu(wide(x), "silu"))
    want = naive.ACT["gelu"](wide(x) + wide(bias))
    assert_close(bias_act_(x, bias, "gelu", config=config), want)


def test_candidates_start_with_the_choice_of_the_table():
    x = torch.zeros(2, 3072)
    assert point_candidates(x)[0] == point_config(x)
    assert len(point_candidates(x)) > 1


def test_programs_run_in_any_order(device, interpreter):
    x = torch.randn(7, 2500, device=device)
    with interpreter.order("shuffle"):
        assert_close(glu(x, "silu"), naive.glu(wide(x), "silu"))
        want = naive.ACT["gelu_tanh"](wide(x))
        assert_close(bias_act_(x, None, "gelu_tanh"), want)
