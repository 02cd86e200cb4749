"""A new head, initialised at random to be trained."""

from __future__ import annotations

import zlib

import numpy as np

from ..typing import RawTensor


class NewHead:
    """The tensors outside of the base model, and its pooler, initialised as in transformers.

    Weights are normal(0, deviation), those of norms 1, biases 0.  Each follows from seed and name alone.
    """

    def __init__(self, prefix: str, deviation: float, seed: int = 0):
        self.prefix, self.deviation, self.seed = prefix, deviation, seed
        self.drawn: list[str] = []

    def covers(self, name: str) -> bool:
        """True if the tensor of this canonical name may be new."""
        return not name.startswith(self.prefix + ".") or name.startswith(f"{self.prefix}.pooler.")

    def draw(self, name: str, shape: tuple[int, ...]) -> RawTensor:
        self.drawn.append(name)
        if len(shape) > 1:
            x = np.random.default_rng([self.seed, zlib.crc32(name.encode())]).standard_normal(shape, np.float32)
            return RawTensor(x * np.float32(self.deviation), "F32")
        is_one = name.endswith(("weight", "running_var"))
        return RawTensor(np.full(shape, 1 if is_one else 0, np.float32), "F32")
