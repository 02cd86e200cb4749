"""Kernels that are compiled, each with a fault that the ahead-of-time gate must name.

Run as a program, in a process of its own: prints JSON, {kernel: {architecture: [faults]}}.
"""

from __future__ import annotations

import json
from typing import Any

import torch
import triton
import triton.language as tl

from checks.architectures import ARCHITECTURES
from checks.budgets import Budget, faults
from checks.capture import capture
from checks.sass import measure

ROWS = Budget(warps=16)
PRODUCTS = Budget(warps=4, dot=True, wide_dot=True)


@triton.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n, other=0.0), mask=at < n)


@triton.jit
def divide(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.store(out + at, value / tl.sum(value))


@triton.jit
def multiply(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(out + at, tl.dot(tl.load(x + at), tl.load(y + at)))


def aligned() -> None:
    launch(copy, 4, _half(4096), _half(4096), 4096, BLOCK=1024)


def misaligned() -> None:
    launch(copy, 4, _half(4097)[1:], _half(4097)[1:], 4096, BLOCK=1024)


def odd_length() -> None:
    launch(copy, 4, _half(4096), _half(4096), 4095, BLOCK=1024)


def holds_too_much() -> None:
    launch(divide, 1, torch.empty(16384), torch.empty(16384), BLOCK=16384)  # 512 elements a lane


def multiplies() -> None:
    launch(multiply, 4, _half(64, 64), _half(64, 64), torch.empty(64, 64), BLOCK=64)


def has_few_warps() -> None:
    launch(multiply, 4, _half(128, 128), _half(128, 128), torch.empty(128, 128), BLOCK=128)


def launch(kernel: Any, warps: int, *arguments: Any, **constants: int) -> None:
    kernel[(1,)](*arguments, **constants, num_warps=warps)


def _half(*shape: int) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.float16)


CASES = (
    (aligned, ROWS),
    (misaligned, ROWS),
    (odd_length, ROWS),
    (holds_too_much, ROWS._replace(warps=0)),
    (multiplies, PRODUCTS),
    (has_few_warps, PRODUCTS._replace(warps=32)),
)


def main() -> None:
    said: dict[str, dict[str, list[str]]] = {}
    for function, budget in CASES:
        for name in ("sm_90", "gfx942"):
            arch = ARCHITECTURES[name]
            with capture(arch) as launches:
                function()
            (measured,) = [measure(launch, arch) for launch in launches]
            said.setdefault(function.__name__, {})[name] = faults(measured, budget, arch, "float16")
    print(json.dumps(said))


if __name__ == "__main__":
    main()
