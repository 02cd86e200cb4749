"""Products with packed matrices of every kind, and rows of them, against the naive twin."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops import naive
from zoo import ops
from zoo.errors import CheckpointError
from zoo.ops.on_numpy import quantised, threads
from zoo.quant import QUANT_TYPES, QuantRows, QuantTensor
from zoo.quant.kinds import BLOCK_TYPES

NARROW = [name for name in QUANT_TYPES if name not in ("F64", "F32")]
OF_TORCH = ["INT8", "FP4_32", *(kind.name for kind in BLOCK_TYPES)]  # which llama.cpp's kinds become there


def random_rows(rng, name: str, rows: int, columns: int) -> QuantRows:
    """Any bits that are numbers, not those that a quantiser would choose."""
    kind, arrays = QUANT_TYPES[name], []
    for field, shape in zip(kind.fields, kind.shapes(rows, columns), strict=True):
        dtype = np.dtype(field.dtype)
        if dtype.kind == "f":
            arrays.append((rng.standard_normal(shape) * 0.1).astype(dtype))
        elif kind.is_plain:
            arrays.append((rng.standard_normal(shape, np.float32).view(np.uint32) >> 16).astype(np.uint16))
        else:
            arrays.append(rng.integers(np.iinfo(dtype).min + 1, np.iinfo(dtype).max + 1, shape, dtype))
    for scale in kind.scales(arrays) if kind.scales else ():  # where they lie among the bytes
        scale[...] = rng.standard_normal(scale.shape) * 0.1
    if "FP4" in name:  # powers of two, of which the largest would overflow
        powers = arrays[1] if len(arrays) > 1 else arrays[0].reshape(rows, -1, 17)[..., 0]
        powers[...] = rng.integers(118, 131, powers.shape)
    return QuantRows(kind, columns, tuple(arrays)).check("w")


def matrix(rng, *names: str, rows: int = 37, columns: int = 72) -> QuantTensor:
    return QuantTensor([random_rows(rng, name, rows + i, columns) for i, name in enumerate(names)])


def test_the_layout_of_each_kind():
    """By hand, from the words of `zoo.quant.kinds`."""
    scale = np.array([[0.5, 2]], np.float16)
    data = np.zeros((1, 32), np.uint8) + 0x88
    data[0, 0], data[0, 16] = 0x2F, 0x80
    four = QuantRows(QUANT_TYPES["INT4_32"], 34, (data, scale)).dequantise()[0]
    assert (four[0], four[1], four[32], four[33]) == (3.5, -3.0, -16.0, 0.0)
    assert not four[2:32].any()
    eight = np.zeros((1, 64), np.int8)
    eight[0, [1, 32]] = -7, 9
    of_blocks = QuantRows(QUANT_TYPES["INT8_32"], 40, (eight, scale)).dequantise()[0]
    assert (of_blocks[1], of_blocks[32], of_blocks.shape) == (-3.5, 18.0, (40,))
    of_rows = QuantRows(QUANT_TYPES["INT8"], 64, (eight, np.array([0.25], np.float32))).dequantise()[0]
    assert (of_rows[1], of_rows[32]) == (-1.75, 2.25)


@pytest.mark.parametrize("columns", [1, 31, 32, 64, 97])
@pytest.mark.parametrize("name", NARROW)
def test_numbers_are_those_of_the_naive_twin(name, columns, rng):
    found = matrix(rng, name, columns=columns)
    wanted = naive.dequantise(found)
    np.testing.assert_allclose(found.dequantise(), wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max())
    assert found.shape == (37, columns)


@pytest.mark.parametrize("names", [[name] for name in NARROW] + [["INT4_32", "F32", "INT8", "BF16"]], ids="+".join)
@pytest.mark.parametrize("tokens", [1, 3, 24, 70, 300])
@pytest.mark.parametrize("count", [1, 3])
def test_linear(names, tokens, count, rng, monkeypatch):
    monkeypatch.setattr(threads, "MIN_PARALLEL_NS", 0)
    monkeypatch.setattr(threads, "_chosen", count)
    monkeypatch.setattr(quantised, "TILE", 600)  # so that small matrices make several tiles
    for columns in (72, 33):
        weight = matrix(rng, *names, columns=columns)
        x, bias = rng.standard_normal((1, tokens, columns), np.float32), rng.standard_normal(len(weight), np.float32)
        residual = rng.standard_normal((1, tokens, len(weight)), np.float32)
        wanted = naive.linear(x, weight, bias, "gelu", residual)
        found = ops.linear(x, weight, bias, "gelu", residual)
        assert found.dtype == np.float32
        assert np.abs(found - wanted).max() <= 5e-6 * np.abs(wanted).max()


@pytest.mark.parametrize("names", [[name] for name in NARROW] + [["INT4_32", "F32", "INT8"]], ids="+".join)
def test_embedding(names, rng):
    table = matrix(rng, *names)
    ids = rng.integers(0, len(table), (3, 7))
    wanted = naive.embedding(ids, table)
    np.testing.assert_allclose(ops.embedding(ids, table), wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max())


@pytest.mark.parametrize(
    "names", [[name] for name in ("F16", "BF16", *OF_TORCH)] + [["INT4_32", "F32", "INT8"]], ids="+".join
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_torch(names, dtype, rng):
    torch = pytest.importorskip("torch", reason="needs torch, the other backend")
    weight = matrix(rng, *names)
    there = weight.map(torch.from_numpy)
    there = QuantTensor(there.parts, getattr(torch, dtype))
    x = torch.from_numpy(rng.standard_normal((2, 5, 72), np.float32)).to(getattr(torch, dtype))
    found, wanted = ops.linear(x, there), naive.linear(x.float().numpy(), weight)
    assert found.dtype == x.dtype
    assert np.abs(found.float().numpy() - wanted).max() <= (1e-5 if dtype == "float32" else 2e-2) * np.abs(wanted).max()
    ids = rng.integers(0, len(weight), (3, 7))
    rows = ops.embedding(torch.from_numpy(ids), there)
    assert rows.dtype == x.dtype
    np.testing.assert_allclose(
        rows.float().numpy(), naive.embedding(ids, weight), rtol=1e-6 if dtype == "float32" else 1e-2
    )


@pytest.mark.parametrize(
    ("name", "there", "bits"),
    [
        ("Q8_0", "INT8_32", 8.5),
        ("Q4_0", "INT4_32", 4.5),
        ("Q4_1", "UINT4_OFFSET", 5),
        ("Q5_0", "INT8_32", 8.5),
        ("Q5_1", "INT8_OFFSET", 9),
        ("MXFP4", "FP4_32", 4.25),
        ("IQ4_NL", "INT8_32", 8.5),
        ("IQ4_XS", "INT8_K16", 8.5625),
        ("Q2_K", "UINT4_K16", 5.125),
        ("Q3_K", "INT8_K16", 8.5625),
        ("Q4_K", "UINT4_K", 4.625),
        ("Q5_K", "INT8_K", 8.625),
        ("Q6_K", "INT8_K16", 8.5625),
    ],
)
def test_torch_has_the_same_numbers_in_another_order(name, there, bits, rng):
    """llama.cpp's records, as fields that kernels can read 16 bytes of at a time."""
    torch = pytest.importorskip("torch", reason="needs torch, the other backend")
    from zoo.ops import on_torch
    from zoo.ops.on_torch.quantised import dequantise

    stored = random_rows(rng, name, 5, 768)
    kept = on_torch.keep(stored, "cpu")
    assert kept.kind.name == there
    assert kept.nbytes == 5 * 768 * bits / 8
    found, wanted = kept.map(lambda array: array.numpy()), stored.dequantise()
    for numbers in (found.check("w").dequantise(), dequantise(kept, torch.float32).numpy()):
        np.testing.assert_array_equal(numbers.view(np.uint32), wanted.view(np.uint32))
    assert all(array.is_contiguous() and array.untyped_storage().nbytes() == array.nbytes for array in kept.arrays)


def test_fields_of_another_shape_or_type_are_refused(rng):
    rows = random_rows(rng, "INT4_32", 4, 64)
    data, scale = rows.arrays
    for arrays, said in (
        ((data[:, :16], scale), r"'w' \(INT4_32\): its data has shape \(4, 16\), expected \(4, 32\) for \(4, 64\)"),
        ((data, scale[:, :1]), r"its scale has shape \(4, 1\), expected \(4, 2\)"),
        ((data, scale.astype(np.float32)), "its scale is of float32, expected float16"),
        ((data, scale * np.float16("nan")), "its scale holds NaN or infinity"),
    ):
        with pytest.raises(CheckpointError, match=said):
            QuantRows(rows.kind, 64, arrays).check("w")
    four = random_rows(rng, "FP4_32", 4, 64)
    with pytest.raises(CheckpointError, match=r"'w' \(FP4_32\): a block's scale is NaN"):
        QuantRows(four.kind, 64, (four.arrays[0], four.arrays[1] | 255)).check("w")


def test_float16_is_widened_to_the_bit():
    """All 65,536 of them: those below the smallest normal number, infinities and NaN too."""
    half = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(64, -1)
    for numbers in (half, half[np.isfinite(half)].reshape(2, -1)):
        found = QuantRows(QUANT_TYPES["F16"], numbers.shape[1], (numbers,)).dequantise()
        np.testing.assert_array_equal(found.view(np.uint32), numbers.astype(np.float32).view(np.uint32))
