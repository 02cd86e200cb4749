"""Audio, as samples.

Shapes: B recordings, S samples, T states.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .. import ops
from ..errors import InputError
from ..pretrained import Pretrained
from ..typing import Array, RecordField


class WaveformInputs(NamedTuple):
    """A batch of recordings, the shorter ones with zeros after their end."""

    input_values: Array  # (B, S)
    mask: Array | None = None  # (B, S): false after a recording's end

    fields = (
        RecordField("input_values", "input_values", ("B", "S"), "float32"),
        RecordField("mask", "attention_mask", ("B", "S"), "int64", 1),
    )


class WaveformModel(Pretrained):
    """A model of samples, which a stack of convolutions turns into states.

    Its config has conv_kernel and conv_stride, the sizes and steps of these convolutions.
    """

    inputs: ClassVar[tuple[str, ...]] = ("attention_mask",)
    record = WaveformInputs

    def __call__(self, input_values: Array, attention_mask: Array | None = None) -> Any:
        """The output of `forward` for input_values (B, S), as the checkpoint's feature extractor makes them.

        attention_mask (B, S): 1 for a recording's samples, and 0 for what fills it up to the longest.
        """
        return self.runner.run(self.forward, self.waveform(input_values, attention_mask))

    def forward(self, s: WaveformInputs) -> Any:
        """The class's output for checked inputs."""
        raise NotImplementedError

    def records(self, *args: Any, **given: Any) -> tuple[WaveformInputs]:
        return (self.waveform(*args, **given),)

    def example(self, seed: int = 0, *, rows: int = 2, length: int = 7, **sizes: Any) -> dict[str, Any]:
        """Noise that gives four times `length` states; of several rows the later ones are shorter."""
        rng, S = np.random.default_rng(seed), self.count_samples(4 * length)
        found = {"input_values": rng.standard_normal((rows, S), np.float32)}
        if rows > 1:
            lengths = np.linspace(S, self.count_samples(length), rows).astype(int)
            mask = np.arange(S) < lengths[:, None]
            found = {"input_values": found["input_values"] * mask, "attention_mask": mask.astype(np.int64)}
        return found

    def count_samples(self, states: int) -> int:
        """The fewest samples that give so many states."""
        for kernel, stride in zip(reversed(self.config.conv_kernel), reversed(self.config.conv_stride), strict=True):
            states = (states - 1) * stride + kernel
        return states

    @property
    def samples_per_state(self) -> int:
        """The samples from one state to the next."""
        return math.prod(self.config.conv_stride)

    def count_states(self, samples: Any) -> Any:
        """The number of states of so many samples: a number, or an array of them."""
        for kernel, stride in zip(self.config.conv_kernel, self.config.conv_stride, strict=True):
            samples = (samples - kernel) // stride + 1
        return samples

    def state_mask(self, s: WaveformInputs, states: int) -> Array | None:
        """(B, T): true for the states of each recording; None if all are."""
        if s.mask is None:
            return None
        lengths = self.count_states(ops.cumsum(s.mask, 1)[:, -1])
        return ops.arange(states, s.input_values) < lengths[:, None]

    def waveform(self, input_values: Any, attention_mask: Any = None) -> WaveformInputs:
        """The inputs, checked and placed beside the weights; arguments as for a call."""
        x, least = ops.as_samples(input_values, self.like), self.count_samples(1)
        if x.shape[1] < least:
            raise InputError(f"input_values have {x.shape[1]} samples, expected at least {least}")
        if attention_mask is None:
            return WaveformInputs(x)
        if isinstance(attention_mask, np.ndarray) and attention_mask.shape == x.shape:
            ended = np.diff(attention_mask.astype(np.int8), axis=1).max(initial=0) > 0
            if ended or attention_mask.sum(1).min() < least:
                raise InputError(
                    f"attention_mask must be 1 for a recording's samples, at least {least} of them, and 0 after its end"
                )
        return WaveformInputs(x, ops.as_key_mask(attention_mask, self.like, "attention_mask", (x.shape[0], x.shape[1])))
