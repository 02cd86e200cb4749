"""The memory that a checkpoint takes, from the names, types and shapes of its tensors alone."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ResourceError
from ..quant import QUANT_TYPES
from .mapped import element_bits
from .reader import QUANT_CHOICES
from .source import Source

# The environment's switch to load what is larger than the machine's memory.
SWITCH = "ZOO_MEMORY_CHECK"
MIN_CHECKED_BYTES = 256 << 20  # bytes; smaller models are loaded without a look at the machine
WIDTHS = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}
PRECISIONS = ("float32", "bfloat16", *QUANT_CHOICES)


class TensorHeader(NamedTuple):
    """A tensor without its numbers."""

    name: str
    dtype: str  # safetensors' name, or a QuantType's
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes in the file."""
        kind = QUANT_TYPES.get(self.dtype)
        if kind is not None and not kind.is_plain and len(self.shape) == 2:
            return kind.nbytes(*self.shape)
        return self.elements * element_bits(self.dtype) // 8

    def nbytes_in(self, precision: str | None, vocabulary: int | None = None) -> int:
        """The bytes in one of PRECISIONS or WIDTHS, where only matrices are quantised, or as stored for None.

        vocabulary: rows of the matrices of words, which int4 keeps in int8.
        """
        if precision is None:
            return self.nbytes
        if precision not in QUANT_CHOICES or len(self.shape) != 2:
            return self.elements * WIDTHS.get(precision, 4)
        matrices, embeddings = QUANT_CHOICES[precision]
        return QUANT_TYPES[embeddings if self.shape[0] == vocabulary else matrices].nbytes(*self.shape)


def headers(source: Source) -> Iterator[TensorHeader]:
    """The tensors of weight files."""
    return (TensorHeader(name, source.dtype(name), source.shape(name)) for name in source.names())


def machine_memory() -> int | None:
    """The bytes of this machine's or container's memory; None where they are unknown."""
    found = []
    with suppress(AttributeError, OSError, ValueError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(OSError, ValueError):
        found.append(int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return min(found, default=None)


def size_text(size: float) -> str:
    """A number of bytes with a unit."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.2f} GB"


def table(tensors: Iterable[TensorHeader], vocabulary: int | None = None) -> dict[str, int]:
    """The bytes of a checkpoint as stored, and in each of PRECISIONS."""
    tensors = list(tensors)
    sizes = {"stored": sum(tensor.nbytes for tensor in tensors)}
    return sizes | {p: sum(tensor.nbytes_in(p, vocabulary) for tensor in tensors) for p in PRECISIONS}


def check_fits(source: Any, precision: str | None, widens: bool, vocabulary: int | None) -> None:
    """Raise ResourceError, with the table, if the weights of a model do not fit into the machine's memory.

    source: a Source.  precision: one of PRECISIONS or WIDTHS, or None: as stored.  widens: numbers of 16 bits become
    float32 then.
    """
    there = machine_memory()
    if there is None or os.environ.get(SWITCH) == "0":
        return
    # At 4 bits: 8 times as many in float32.
    if sum(os.path.getsize(path) for path in source.files) < min(MIN_CHECKED_BYTES, there / 8):
        return
    tensors = list(headers(source))
    needed = 0
    for tensor in tensors:
        as_stored = precision is None and not (widens and tensor.dtype in ("F16", "BF16"))
        needed += tensor.nbytes_in(None if as_stored else precision or "float32", vocabulary)
    if needed <= there:
        return
    sizes = ", ".join(f"{name} {size_text(size)}" for name, size in table(tensors, vocabulary).items())
    raise ResourceError(
        f"the weights need {size_text(needed)} of memory, and the machine has {size_text(there)}: {sizes}; take "
        f"weights='int8' or 'int4', or load it anyway with {SWITCH}=0 in the environment"
    )
