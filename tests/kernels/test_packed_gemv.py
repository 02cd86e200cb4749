"""A packed matrix times one row, against the float64 twin of `linear`."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from closeness import DTYPES, assert_close, wide
from packed_matrices import exact, fields, rows

from tests.ops import naive
from zoo.engines.triton.packed_gemv import (
    QUANT_TYPES,
    PackedGemvConfig,
    packed_gemv,
    packed_gemv_candidates,
    packed_gemv_config,
    suits,
)
from zoo.errors import InputError, UnsupportedError


def _inputs(kind, inputs, outputs, dtype, device):
    x = torch.randn(1, inputs, device=device).to(dtype)
    bias, residual = torch.randn(outputs, device=device).to(dtype), torch.randn(1, outputs, device=device).to(dtype)
    return x, rows(kind, outputs, inputs), bias, residual


@pytest.mark.parametrize(("inputs", "outputs"), [(1, 1), (33, 7), (64, 5), (1100, 3)])
@pytest.mark.parametrize(("turn", "kind"), list(enumerate(QUANT_TYPES)))
def test_one_row(kind, turn, inputs, outputs, device):
    dtype = DTYPES[(turn + inputs) % 3]  # each is met by every type and by every size
    x, matrix, bias, residual = _inputs(kind, inputs, outputs, dtype, device)
    given = fields(matrix, device)
    assert_close(packed_gemv(x, kind, given), exact(x, matrix))
    assert_close(packed_gemv(x, kind, given, bias, "gelu", residual), exact(x, matrix, bias, "gelu", residual))


@pytest.mark.parametrize("kind", QUANT_TYPES)
@pytest.mark.parametrize("config", [PackedGemvConfig(1, 2, 1), PackedGemvConfig(8, 4, 2)], ids=str)
def test_every_config_gives_the_same_in_any_order(kind, config, device, interpreter):
    x, matrix, bias, residual = _inputs(kind, 140, 11, torch.bfloat16, device)
    with interpreter.order("shuffle"):
        got = packed_gemv(x, kind, fields(matrix, device), bias, "silu", residual, config=config)
    assert_close(got, exact(x, matrix, bias, "silu", residual))


@pytest.mark.parametrize("kind", QUANT_TYPES)
def test_each_number_is_itself(kind, device):
    """Row by row of the identity: nothing is hidden in a sum."""
    matrix = rows(kind, 3, 70)
    wanted = matrix.dequantise()
    for column in (0, 1, 2, 3, 4, 5, 6, 7, 16, 31, 32, 69):
        x = torch.zeros(70, device=device)
        x[column] = 1
        got = packed_gemv(x, kind, fields(matrix, device)).cpu().numpy()
        np.testing.assert_allclose(got, wanted[:, column], rtol=1e-6, atol=2e-8, err_msg=f"column {column}")


@pytest.mark.parametrize("kind", QUANT_TYPES)
def test_the_matrix_is_read_once_as_it_is_stored(kind, device, interpreter):
    x, matrix, _, _ = _inputs(kind, 2048, 8, torch.float16, device)
    given = fields(matrix, device)
    with interpreter.counting() as counts:
        packed_gemv(x, kind, given)
    of_bytes = given[0].dtype == torch.int8
    for name, field in matrix.kind.name_fields(given).items():
        groups = field.shape[0] * 2048 // (16 if of_bytes else 32)  # each reads what its block has
        name = name if of_bytes else name.replace("data", "words")
        once = field.numel() if name in ("data", "words") or field.ndim == 1 else groups
        assert counts.bytes_loaded[name] == once * field.element_size(), name
    assert counts.bytes_stored == {"out": 16}


def test_large_sums_are_kept_in_float32(device):
    x = torch.full((1, 1024), 64.0, dtype=torch.float16, device=device)
    data = torch.full((2, 1024), 100, dtype=torch.int8, device=device)
    data[:, 1::2] = -100  # beyond 65504 on the way, in whatever order but this one
    assert_close(packed_gemv(x, "INT8", (data, torch.ones(2, device=device))), torch.zeros(1, 2))


def test_float32_takes_the_exact_erf(interpreter):
    """As in test_activations: nearer than the coarse one of 16 bits comes."""
    x = torch.linspace(-6, -0.001, 10_001)
    matrix = torch.zeros(len(x), 1, dtype=torch.int8), torch.ones(len(x))
    got = packed_gemv(torch.ones(1, 1), "INT8", matrix, x, "gelu", config=PackedGemvConfig(1024, 1, 4))[0]
    assert np.max(np.abs(wide(got) - naive.ACT["gelu"](wide(x))) / np.abs(wide(x))) < 5e-8


def test_strided_arguments(device):
    x, matrix, bias, residual = _inputs("INT4_32", 128, 24, torch.float16, device)
    data, scale = (field.repeat_interleave(2, 0)[::2] for field in fields(matrix, device))
    x, bias, residual = (a.repeat_interleave(2, -1)[..., ::2] for a in (x, bias, residual))
    assert not data.is_contiguous()
    got = packed_gemv(x, "INT4_32", (data, scale), bias, None, residual)
    assert_close(got, exact(x, matrix, bias, None, residual))


def test_what_it_does_not_take(device):
    x, matrix, _, _ = _inputs("INT8", 64, 40, torch.float16, device)
    assert suits(x, "INT8")
    for other in ((x.expand(2, 64), "INT8"), (x.double(), "INT8"), (x, "Q6_K")):
        assert not suits(*other)
        with pytest.raises(InputError, match=r"one row of .* and a matrix of INT8, "):
            packed_gemv(*other, fields(matrix, device))
    with pytest.raises(UnsupportedError, match="no activation 'swish'"):
        packed_gemv(x, "INT8", fields(matrix, device), act="swish")


def test_candidates_start_with_the_choice_of_the_table():
    x = torch.zeros(1, 4096)
    for outputs, kind in product((8, 30_000), ("INT8", "INT4_32")):
        found = packed_gemv_candidates(x, kind, outputs)
        assert found[0] == packed_gemv_config(x, kind, outputs)
        assert len(found) > 1
