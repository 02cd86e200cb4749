"""Random weights: a source that has every name, for tests and benchmarks without files."""

from __future__ import annotations

import math
import zlib
from collections.abc import Collection
from pathlib import Path

import numpy as np

from ..typing import RawTensor

MAX_ELEMENTS = 1 << 40  # beyond this, NumPy raises other errors than MemoryError


class Random:
    """A source whose arrays follow from the seed, the name and the shape.

    Matrices preserve the scale of activations, norms are near the identity, and no bias is zero, so that a model that
    forgets one gives another result.
    """

    def __init__(self, seed: int = 0):
        self.seed = seed
        self.files: list[Path] = []

    def names(self) -> Collection[str]:
        return ()

    def __contains__(self, name: object) -> bool:
        return True

    def dtype(self, name: str) -> str:
        return "F32"

    def make(self, name: str, shape: tuple[int, ...]) -> RawTensor:
        if math.prod(shape) > MAX_ELEMENTS:
            raise MemoryError(f"{name} of shape {shape}")
        x = np.random.default_rng([self.seed, zlib.crc32(name.encode())]).standard_normal(shape, np.float32)
        if len(shape) == 1:
            x *= np.float32(0.1)
            if name.endswith(("weight", "running_var")):
                x += 1
        else:
            x /= np.float32(math.sqrt(shape[-1] if shape else 1))
        x.flags.writeable = False
        return RawTensor(x, "F32")
