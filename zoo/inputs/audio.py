"""Audio, as spectrograms.

Shapes: C recordings, N mel bins, W frames of a window.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import ops
from ..errors import InputError
from ..pretrained import Pretrained
from ..typing import Array, RecordField


class AudioInputs(NamedTuple):
    """A batch of spectrograms of one length."""

    input_features: Array  # (C, N, W)

    fields = (RecordField("input_features", "input_features", ("C", "mels", "frames"), "float32"),)


class AudioModel(Pretrained):
    """A model of recordings.  Its config has num_mel_bins and `frames`, the length of a window."""

    record = AudioInputs

    def __call__(self, input_features: Array) -> Any:
        """The output of `forward` for input_features (C, N, W), from `zoo.audio`."""
        return self.runner.run(self.forward, self.audio(input_features))

    def records(self, *args: Any, **given: Any) -> tuple[AudioInputs]:
        return (self.audio(*args, **given),)

    def example(self, seed: int = 0, *, rows: int = 2, **sizes: Any) -> dict[str, Any]:
        """Spectrograms of noise, in the range of real ones."""
        shape = rows, self.config.num_mel_bins, self.config.frames
        return {"input_features": np.random.default_rng(seed).normal(0, 0.4, shape).astype(np.float32)}

    def forward(self, s: AudioInputs) -> Any:
        """The class's output for checked inputs."""
        raise NotImplementedError

    def audio(self, input_features: Any) -> AudioInputs:
        """The input, checked and placed beside the weights.  input_features (C, N, W), from `zoo.audio`."""
        N, W = self.config.num_mel_bins, self.config.frames
        x = ops.as_hidden_states(input_features, self.like, "input_features", W)
        if x.shape[1] != N:
            raise InputError(f"input_features have {x.shape[1]} mel bins, and the checkpoint reads {N}")
        return AudioInputs(x)
