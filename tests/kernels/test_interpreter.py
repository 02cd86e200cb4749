"""The strict interpreter: every check is raised by a kernel with that fault, and stays silent without it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

if torch.cuda.is_available():
    pytest.skip("needs the interpreter, and here kernels run on the GPU", allow_module_level=True)

from checks import interpreter


@triton.jit
def _double(x, y, n, LOAD_MASK: tl.constexpr, STORE_MASK: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = at < n
    value = tl.load(x + at, mask=live, other=0.0) if LOAD_MASK else tl.load(x + at)
    if STORE_MASK:
        tl.store(y + at, value.to(tl.float32) * 2, mask=live)
    else:
        tl.store(y + at, value.to(tl.float32) * 2)


def test_a_kernel_without_faults_runs():
    x, y = torch.randn(100), torch.empty(100)
    _double[(2,)](x, y, 100, True, True, 64)
    assert torch.equal(y, 2 * x)


def test_a_load_beyond_the_end():
    with pytest.raises(interpreter.OutOfBoundsError, match=r"reads 28 of 64 lanes outside x \(100,\)"):
        _double[(2,)](torch.randn(100), torch.empty(100), 100, False, True, 64)


def test_a_store_beyond_the_end():
    with pytest.raises(interpreter.OutOfBoundsError, match="program 1 writes 28 of 64 lanes outside y"):
        _double[(2,)](torch.randn(100), torch.empty(100), 100, True, False, 64)


def test_a_load_between_the_rows_of_a_view():
    rows = torch.randn(4, 20)[:, :10]
    with pytest.raises(interpreter.OutOfBoundsError, match="outside x"):
        _double[(1,)](rows, torch.empty(32), 16, True, True, 32)
    _double[(1,)](rows.expand(4, 10)[:1], torch.empty(32), 10, True, True, 32)


def test_a_load_from_one_argument_by_the_pointer_of_another():
    both = torch.randn(128)
    with pytest.raises(interpreter.OutOfBoundsError, match="outside x"):
        _double[(1,)](both[:64], torch.empty(128), 128, True, True, 128)


def test_the_lanes_of_a_view_may_be_read_more_than_once():
    y = torch.empty(4)
    _double[(1,)](torch.ones(1).expand(4), y, 1, True, True, 4)
    assert y[0] == 2


@triton.jit
def _sum(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y, tl.sum(tl.load(x + at, mask=at < n)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_masked_lane_without_other_is_poison(dtype):
    y = torch.zeros(1, dtype=dtype)
    _sum[(1,)](torch.ones(5, dtype=dtype), y, 5, 8)
    assert y.isnan()
    _sum[(1,)](torch.ones(8, dtype=dtype), y, 8, 8)
    assert y == 8


def test_a_masked_integer_without_other_is_poison():
    y = torch.zeros(1, dtype=torch.int64)
    _sum[(1,)](torch.ones(7, dtype=torch.int64), y, 7, 8)
    assert y == 2**63 - 1 + 7 - 2**64


@triton.jit
def _same_place(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at))


def test_two_programs_write_to_one_place():
    x, y = torch.randn(8), torch.empty(8)
    with pytest.raises(interpreter.RaceError, match="write to the same place"):
        _same_place[(2,)](x, y, 8)
    _same_place[(1,)](x, y, 8)


@triton.jit
def _shift(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + (at + BLOCK) % n))


@pytest.mark.parametrize("order", ["forward", "reverse", "shuffle"])
def test_a_program_reads_what_another_writes(order):
    x = torch.randn(32)
    with interpreter.order(order), pytest.raises(interpreter.RaceError, match="program"):
        _shift[(4,)](x, x, 32, 8)
    _shift[(4,)](x, torch.empty(32), 32, 8)


def test_a_program_may_write_what_it_read():
    x = torch.ones(100)
    _double[(2,)](x, x, 100, True, True, 64)
    assert (x == 2).all()


@triton.jit
def _count(x):
    tl.atomic_add(x, 1)


def test_atomics_may_meet():
    x = torch.zeros(1, dtype=torch.int32)
    _count[(5,)](x)
    assert x == 5
    with pytest.raises(interpreter.OutOfBoundsError, match="changes"):
        _count[(5,)](x[:0])


@triton.jit
def _square(x, y, WIDEN: tl.constexpr, OP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    if WIDEN:
        value = value.to(tl.float32)
    if OP == "multiply":
        value = value * value
    elif OP == "floor":
        value = tl.floor(value)
    elif OP == "fma":
        value = tl.fma(value, value, value)
    elif OP == "sum":
        value = value - value if WIDEN else value
        value = tl.sum(value, 0)
    tl.store(y + at, value)


@pytest.mark.parametrize("op", ["multiply", "fma", "sum"])
def test_arithmetic_on_bfloat16(op):
    x, y = torch.randn(8, dtype=torch.bfloat16), torch.empty(8, dtype=torch.bfloat16)
    with pytest.raises(interpreter.BFloat16Error, match="bfloat16"):
        _square[(1,)](x, y, False, op, 8)
    _square[(1,)](x, y, True, op, 8)


def test_bfloat16_is_rounded_to_nearest_even():
    x, y = torch.randn(4096), torch.empty(4096, dtype=torch.bfloat16)
    x[:4] = torch.tensor([1 + 2**-8, 1 + 3 * 2**-8, torch.inf, torch.nan])
    _square[(1,)](x, y, True, "copy", 4096)
    torch.testing.assert_close(y, x.bfloat16(), rtol=0, atol=0, equal_nan=True)


def test_bits_of_bfloat16_go_back_and_forth():
    bits = np.arange(2**16, dtype=np.uint16)
    wide = interpreter.widen(bits)
    assert np.array_equal(interpreter.round_to_bfloat16(wide)[~np.isnan(wide)], bits[~np.isnan(wide)])


@triton.jit
def _offset(x, y, n, factor, WIDEN: tl.constexpr):
    at = n.to(tl.int64) if WIDEN else n
    tl.store(y, tl.load(x + at * factor % 2))


def test_an_integer_of_32_bits_overflows():
    x, y = torch.ones(2), torch.empty(1)
    with pytest.raises(interpreter.IntegerOverflowError, match="multiply of 32-bit integers gives 3000000000"):
        _offset[(1,)](x, y, 30_000, 100_000, False)
    _offset[(1,)](x, y, 30_000, 100_000, True)


@triton.jit
def _loop(x, y, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, n, BLOCK):
        at = first + tl.arange(0, BLOCK)
        total += tl.load(x + at, mask=at < n, other=0.0)
    tl.store(y + tl.arange(0, BLOCK), total)


def test_a_loop_whose_end_is_an_argument():
    x, y = torch.ones(20), torch.empty(8)
    _loop[(1,)](x, y, 20, 8)
    assert y.tolist() == [3] * 4 + [2] * 4


@triton.jit
def _product(a, b, c, K: tl.constexpr, N: tl.constexpr, PRECISION: tl.constexpr):
    n, k = tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + n[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + n[None, :])
    tl.store(c + n[:, None] * N + n[None, :], tl.dot(x, y, input_precision=PRECISION))


def _error_of_product(dtype: torch.dtype, size: int, precision: str) -> float:
    a, b = torch.randn(32, size).to(dtype), torch.randn(size, 32).to(dtype)
    c = torch.empty(32, 32)
    _product[(1,)](a, b, c, size, 32, precision)
    return float((c.double() - a.double() @ b.double()).abs().max())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_product_of_narrow_numbers_is_summed_in_float32(dtype):
    assert _error_of_product(dtype, 32, "tf32") < 1e-4


def test_a_product_of_float32_is_as_precise_as_asked():
    assert _error_of_product(torch.float32, 32, "ieee") < 1e-4
    assert 1e-3 < _error_of_product(torch.float32, 32, "tf32") < 5e-2


def test_a_product_that_the_compiler_would_refuse():
    with pytest.raises(AssertionError, match="K >= 16"):
        _error_of_product(torch.float16, 8, "ieee")


def test_counting():
    x, y = torch.randn(100), torch.empty(100, dtype=torch.float16)
    with interpreter.counting() as counts:
        _double[(2,)](x, y, 100, True, True, 64)
        _error_of_product(torch.float16, 16, "ieee")
    assert (counts.launches, counts.programs) == (2, 3)
    assert (counts.bytes_loaded["x"], counts.bytes_stored["y"]) == (400, 200)
    assert counts.flops == 2 * 32 * 32 * 16


def test_the_order_of_programs():
    assert {o: _programs(o) for o in ("forward", "reverse")} == {"forward": [0, 1, 2, 3], "reverse": [3, 2, 1, 0]}
    assert sorted(_programs("shuffle")) == [0, 1, 2, 3] != _programs("shuffle")
    with pytest.raises(ValueError, match="sideways"), interpreter.order("sideways"):
        pass


@triton.jit
def _queue(counter, y):
    tl.store(y + tl.atomic_add(counter, 1), tl.program_id(0))


def _programs(order: str) -> list[int]:
    counter, y = torch.zeros(1, dtype=torch.int32), torch.empty(4, dtype=torch.int32)
    with interpreter.order(order):
        _queue[(4,)](counter, y)
    return y.tolist()


def test_another_release_is_refused(monkeypatch):
    monkeypatch.setattr(triton, "__version__", "3.5.1")
    with pytest.raises(RuntimeError, match=r"works with triton 3\.6\.0, .* alone, found 3\.5\.1"):
        interpreter.install()


def test_it_works_with_the_release_that_the_tests_install():
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert re.findall(r'"triton==([0-9.]+);', project)[-1] in interpreter.RELEASES
