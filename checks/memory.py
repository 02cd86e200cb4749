"""The memory that the kernels of one launch touch: whether they may, and whether they meet there.

Part of `checks.interpreter`.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import torch
from torch import Tensor


class KernelFault(AssertionError):  # noqa: N818  (the fault is the kernel's, and not an error of ours)
    """A fault of a kernel: the base class of the interpreter's errors."""


class OutOfBoundsError(KernelFault):
    """A lane is read or written where its argument has no element."""


class RaceError(KernelFault):
    """Two programs touch the same memory, and one of them writes."""


class Argument:
    """The memory of one tensor that a kernel was given."""

    def __init__(self, name: str, x: Tensor):
        self.name, self.shape, self.dtype, self.size = name, tuple(x.shape), x.dtype, x.element_size()
        self.first = x.data_ptr()
        self.span = sum((n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True)) + 1 if x.numel() else 0
        self._elements: np.ndarray | None = None  # which of the span's places are elements; None: all of them
        steps = [(n, s) for n, s in zip(x.shape, x.stride(), strict=True) if s]  # without the axes that are broadcast
        if self.span > math.prod(n for n, _ in steps):
            elements = torch.zeros(self.span, dtype=torch.bool)
            elements.as_strided([n for n, _ in steps], [s for _, s in steps])[...] = True
            self._elements = elements.numpy()

    def holds(self, addresses: np.ndarray, width: int) -> np.ndarray:
        """True for each address at which an element of `width` bytes begins."""
        offsets = addresses.astype(np.int64) - self.first
        inside = (offsets >= 0) & (offsets + width <= self.span * self.size)
        if self._elements is None:
            return inside
        return inside & self._elements[np.where(inside, offsets // self.size, 0)]

    def __str__(self) -> str:
        return f"{self.name} {self.shape} of {self.dtype}"


NO_THREAD, SEVERAL_THREADS = -1, -2


class Shadow:
    """The program that wrote each byte of a storage, and the one that read it."""

    def __init__(self, first: int, count: int):
        self.first, self.count = first, count
        self.writer = np.full(count, NO_THREAD, np.int32)
        self.reader = np.full(count, NO_THREAD, np.int32)

    def read(self, at: np.ndarray, me: int) -> None:
        _no_other(self.writer[at], me, "program {} reads what program {} writes")
        readers = self.reader[at]
        self.reader[at] = np.where((readers == NO_THREAD) | (readers == me), me, SEVERAL_THREADS)

    def write(self, at: np.ndarray, me: int) -> None:
        _no_other(self.writer[at], me, "programs {} and {} write to the same place")
        _no_other(self.reader[at], me, "program {} writes what program {} reads")
        self.writer[at] = me


def _no_other(programs: np.ndarray, me: int, message: str) -> None:
    others = programs[(programs != NO_THREAD) & (programs != me)]
    if others.size:
        raise RaceError(message.format(me, "another" if others[0] == SEVERAL_THREADS else others[0]))


class Memory:
    """The memory that the programs of one launch may access, and have accessed."""

    def __init__(self) -> None:
        self.arguments: list[Argument] = []
        self.shadows: dict[int, Shadow] = {}

    def add(self, name: str, x: Tensor) -> int:
        """The number of a new argument."""
        self.arguments.append(Argument(name, x))
        storage = x.untyped_storage()
        if storage.data_ptr() not in self.shadows:
            self.shadows[storage.data_ptr()] = Shadow(storage.data_ptr(), storage.nbytes())
        return len(self.arguments) - 1

    def check(self, pointers: Any, mask: Any, program: int, writes: bool | None, tally: Counter[str]) -> None:
        """Bounds and races of one access; `writes` is None for atomics, which may meet."""
        chosen = True if mask is None else mask.data
        addresses = pointers.data[np.broadcast_to(chosen, pointers.data.shape)]
        if not addresses.size:
            return
        width = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        number = pointers.attr.get("argument")
        among = self.arguments if number is None else [self.arguments[number]]
        held = np.logical_or.reduce([a.holds(addresses, width) for a in among])
        if not held.all():
            raise OutOfBoundsError(self._message(addresses[~held], addresses.size, among[0], program, writes))
        tally["?" if number is None else among[0].name] += addresses.size * width
        if writes is None:
            return
        for shadow in self.shadows.values():
            if shadow.first <= int(addresses[0]) < shadow.first + shadow.count:
                at = (addresses - np.uint64(shadow.first)).astype(np.int64)
                shadow.write(at, program) if writes else shadow.read(at, program)

    def _message(self, bad: np.ndarray, lanes: int, argument: Argument, program: int, writes: bool | None) -> str:
        verb = "changes" if writes is None else "writes" if writes else "reads"
        places = (bad.astype(np.int64) - argument.first) // argument.size
        return (
            f"program {program} {verb} {len(bad)} of {lanes} lanes outside {argument}: "
            f"places {places.min()} to {places.max()} of 0 to {argument.span - 1}"
        )
