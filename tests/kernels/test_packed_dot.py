"""A packed matrix times several rows, against the float64 twin of `linear`."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from closeness import assert_close
from packed_matrices import exact, fields, rows

from zoo.engines.triton.packed_dot import (
    FEW_ROWS,
    PackedDotConfig,
    packed_dot,
    packed_dot_candidates,
    packed_dot_config,
    suits,
)
from zoo.engines.triton.packed_gemv import QUANT_TYPES
from zoo.errors import InputError, UnsupportedError

NARROW = (torch.float16, torch.bfloat16)


def _inputs(kind, M, inputs, outputs, dtype, device):
    x = torch.randn(M, inputs, device=device).to(dtype)
    bias, residual = torch.randn(outputs, device=device).to(dtype), torch.randn(M, outputs, device=device).to(dtype)
    return x, rows(kind, outputs, inputs), bias, residual


@pytest.mark.parametrize(
    ("at", "M", "inputs", "outputs"), [(0, 2, 1, 1), (1, 16, 130, 33), (0, 5, 256, 7), (1, 70, 96, 21)]
)
@pytest.mark.parametrize(("turn", "kind"), list(enumerate(QUANT_TYPES)))
def test_rows(kind, turn, at, M, inputs, outputs, device):
    """Twice the rounding of a result: the matrix's numbers are rounded too, where they are scaled in blocks."""
    dtype = NARROW[(turn + at) % 2]  # each is met by every type and by every size
    x, matrix, bias, residual = _inputs(kind, M, inputs, outputs, dtype, device)
    given = fields(matrix, device)
    assert_close(packed_dot(x, kind, given), exact(x, matrix), 1 if kind == "INT8" else 2)
    got = packed_dot(x, kind, given, bias, "gelu", residual)
    assert_close(got, exact(x, matrix, bias, "gelu", residual), 1 if kind == "INT8" else 2)


@pytest.mark.parametrize("kind", QUANT_TYPES)
def test_float32(kind, device):
    x, matrix, bias, residual = _inputs(kind, 3, 100, 37, torch.float32, device)
    assert_close(packed_dot(x, kind, fields(matrix, device)), exact(x, matrix))
    got = packed_dot(x, kind, fields(matrix, device), bias, "silu", residual)
    assert_close(got, exact(x, matrix, bias, "silu", residual))


@pytest.mark.parametrize("kind", QUANT_TYPES)
def test_each_number_is_itself(kind, device):
    """By the identity: nothing is hidden in a sum."""
    matrix = rows(kind, 5, 70)
    columns = [0, 1, 2, 15, 16, 31, 32, 33, 47, 63, 64, 69]
    x = torch.eye(70, device=device)[columns]
    got = packed_dot(x, kind, fields(matrix, device)).cpu().numpy()
    np.testing.assert_allclose(got, matrix.dequantise()[:, columns].T, rtol=1e-6, atol=2e-8)


@pytest.mark.parametrize("kind", QUANT_TYPES)
@pytest.mark.parametrize("config", [PackedDotConfig(16, 16, 32, 1, 1), PackedDotConfig(32, 32, 128, 4, 3)], ids=str)
def test_every_config_gives_the_same_in_any_order(kind, config, device, interpreter):
    x, matrix, bias, residual = _inputs(kind, 35, 150, 40, torch.bfloat16, device)
    with interpreter.order("shuffle"):
        got = packed_dot(x, kind, fields(matrix, device), bias, "relu", residual, config=config)
    assert_close(got, exact(x, matrix, bias, "relu", residual), 2)


def test_any_shape_and_stride(device):
    x, matrix, bias, residual = _inputs("INT4_32", 12, 64, 24, torch.float16, device)
    data, scale = (field.repeat_interleave(2, 0)[::2] for field in fields(matrix, device))
    wanted = exact(x, matrix, bias, None, residual).reshape(3, 4, 24)
    x, bias, residual = (a.repeat_interleave(2, -1)[..., ::2] for a in (x, bias, residual))
    got = packed_dot(x.unflatten(0, (3, 4)), "INT4_32", (data, scale), bias, None, residual.unflatten(0, (3, 4)))
    assert_close(got, wanted, 2)
    of_rows = torch.zeros(12, 80, dtype=torch.float16, device=device)[:, :64]  # a view whose rows lie apart
    assert_close(packed_dot(of_rows.copy_(x), "INT4_32", (data, scale)), exact(x, matrix), 2)


def test_what_it_does_not_take(device):
    x, matrix, _, _ = _inputs("INT8", FEW_ROWS + 1, 64, 40, torch.float16, device)
    given = fields(matrix, device)
    assert suits(x, "INT8")
    assert suits(x[:FEW_ROWS].float(), "INT8")
    for other in ((x.float(), "INT8"), (x.double(), "INT8"), (x[:0], "INT8"), (x, "Q6_K")):
        assert not suits(*other)
        with pytest.raises(InputError, match="rows of 16 bits, or up to 16 of float32, and a matrix of INT8, "):
            packed_dot(*other, given)
    with pytest.raises(UnsupportedError, match="no activation 'swish'"):
        packed_dot(x, "INT8", given, act="swish")


def test_candidates_start_with_the_choice_of_the_table():
    for M, outputs in ((4, 8), (16, 30_000), (20, 64), (512, 4096)):
        x = torch.zeros(M, 4096, dtype=torch.bfloat16)
        found = packed_dot_candidates(x, "INT8_32", outputs)
        assert found[0] == packed_dot_config(x, "INT8_32", outputs)
        assert len(found) > 1


def test_the_matrix_is_read_once_for_a_few_rows(device, interpreter):
    x, matrix, _, _ = _inputs("INT4_32", FEW_ROWS, 256, 128, torch.float16, device)
    given = fields(matrix, device)
    with interpreter.counting() as counts:
        packed_dot(x, "INT4_32", given)
    assert (counts.bytes_loaded["data"], counts.bytes_loaded["scale"]) == tuple(field.nbytes for field in given)
    assert counts.bytes_stored == {"out": FEW_ROWS * 128 * 2}
