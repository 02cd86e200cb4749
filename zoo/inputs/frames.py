"""Audio, as frames of any number: spectrograms in which time comes first.

Shapes: B recordings, W frames, N numbers of a frame, T states.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from .. import ops
from ..errors import InputError
from ..pretrained import Pretrained
from ..typing import Array, RecordField


class FrameInputs(NamedTuple):
    """A batch of recordings' frames, the shorter ones with zeros after their end."""

    input_features: Array  # (B, W, N)
    mask: Array | None = None  # (B, W): false after a recording's end

    fields = (
        RecordField("input_features", "input_features", ("B", "W", "numbers"), "float32"),
        RecordField("mask", "attention_mask", ("B", "W"), "int64", 1),
    )


class FrameModel(Pretrained):
    """A model of frames.

    Its config has frame_size, the numbers of a frame; frame_samples and frame_step, the samples that a frame is made of
    and those from one to the next; and step, the frames from one state to the next.
    """

    inputs: ClassVar[tuple[str, ...]] = ("attention_mask",)
    record = FrameInputs

    def __call__(self, input_features: Array, attention_mask: Array | None = None) -> Any:
        """The output of `forward` for input_features (B, W, N), as the checkpoint's feature extractor makes them.

        attention_mask (B, W): 1 for a recording's frames, and 0 for what fills it up to the longest.
        """
        return self.runner.run(self.forward, self.frames(input_features, attention_mask))

    def forward(self, s: FrameInputs) -> Any:
        """The class's output for checked inputs."""
        raise NotImplementedError

    def records(self, *args: Any, **given: Any) -> tuple[FrameInputs]:
        return (self.frames(*args, **given),)

    def example(self, seed: int = 0, *, rows: int = 2, length: int = 7, **sizes: Any) -> dict[str, Any]:
        """Noise that gives four times `length` states; of several rows the later ones are shorter."""
        rng, W = np.random.default_rng(seed), 4 * length * self.config.step
        found = {"input_features": rng.standard_normal((rows, W, self.config.frame_size), np.float32)}
        if rows > 1:
            mask = np.arange(W) < np.linspace(W, length * self.config.step, rows).astype(int)[:, None]
            found = {"input_features": found["input_features"] * mask[:, :, None], "attention_mask": mask.astype(int)}
        return found

    @property
    def samples_per_state(self) -> int:
        """The samples from one state to the next."""
        return self.config.step * self.config.frame_step

    def count_samples(self, states: int) -> int:
        """The fewest samples that give so many states."""
        return self.config.frame_samples + (states - 1) * self.samples_per_state

    def count_states(self, frames: Any) -> Any:
        """The number of states of so many frames: a number, or an array of them."""
        return frames

    def state_mask(self, s: FrameInputs, states: int) -> Array | None:
        """(B, T): true for the states of each recording; None if all are."""
        if s.mask is None:
            return None
        lengths = self.count_states(ops.cumsum(s.mask, 1)[:, -1])
        return ops.arange(states, s.input_features) < lengths[:, None]

    def frames(self, input_features: Any, attention_mask: Any = None) -> FrameInputs:
        """The inputs, checked and placed beside the weights; arguments as for a call."""
        x = ops.as_hidden_states(input_features, self.like, "input_features", self.config.frame_size)
        if attention_mask is None:
            return FrameInputs(x)
        if isinstance(attention_mask, np.ndarray) and attention_mask.shape == x.shape[:2]:
            ended = np.diff(attention_mask.astype(np.int8), axis=1).max(initial=0) > 0
            if ended or attention_mask.sum(1).min() < 1:
                raise InputError("attention_mask must be 1 for a recording's frames, and 0 after its end")
        return FrameInputs(x, ops.as_key_mask(attention_mask, self.like, "attention_mask", (x.shape[0], x.shape[1])))
