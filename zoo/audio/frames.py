"""Spectrograms as the models of `zoo.inputs.frames` read them: frames of recordings of any length.

Shapes: n samples, N mel bins, W frames.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import ConfigError, UnsupportedError
from ..files.folder import CheckpointFolder
from .features import FILE
from .filter_banks import FRAME, LOWEST_HZ, log_powers, triangles
from .waveform import MAX_SECONDS

KIND = "SeamlessM4TFeatureExtractor"
LOUDEST_SAMPLE = 2.0**15  # Kaldi's samples are whole numbers of 16 bits
MIN_VARIANCE = 1e-7


@dataclass(frozen=True)
class FrameExtractor:
    """Samples to Kaldi's spectrogram, each bin of mean 0 and variance 1, `stride` frames side by side: the fields of
    preprocessor_config.json.

    A last frame that is not beside another is left out: transformers fills up, and hides the state that it makes.
    """

    num_mel_bins: int = 80
    sampling_rate: int = 16000  # Hz
    stride: int = 2

    @classmethod
    def from_folder(cls, folder: CheckpointFolder) -> FrameExtractor:
        """The extractor of a checkpoint; ConfigError or UnsupportedError where the file is another one's."""
        raw, where = folder.json(FILE), folder.where(FILE)
        if (kind := raw.get("feature_extractor_type", KIND)) != KIND:
            raise UnsupportedError(f"{where}: feature_extractor_type {kind!r:.100}, expected {KIND!r}")
        for name, wanted in (("stride", 2), ("padding_side", "right")):
            if raw.get(name, wanted) != wanted:
                raise UnsupportedError(f"{where}: {name} = {raw[name]!r:.100} is not implemented, only {wanted!r} is")
        given: dict[str, Any] = {name: raw[name] for name in cls.__dataclass_fields__ if name in raw}
        for name, value in given.items():
            if type(value) is not int or not 1 <= value <= 1 << 20:
                raise ConfigError(f"{where}: {name} = {value!r:.100}, expected a whole number from 1 to {1 << 20}")
        found = cls(**given)
        if found.sampling_rate <= 2 * LOWEST_HZ or found.num_mel_bins > 1 << 12:
            sizes = f"sampling_rate = {found.sampling_rate}, num_mel_bins = {found.num_mel_bins}"
            raise ConfigError(f"{where}: {sizes}, expected more than {2 * LOWEST_HZ:g} and at most {1 << 12}")
        return found

    @property
    def samples(self) -> int:
        """The most samples that are classified at once."""
        return MAX_SECONDS * self.sampling_rate

    def check(self, config: Any) -> None:
        """ConfigError if a model of this config reads something else."""
        size = self.num_mel_bins * self.stride
        if (wanted := getattr(config, "frame_size", None)) != size:
            reads = "something else" if wanted is None else f"frames of {wanted}"
            raise ConfigError(f"the feature extractor makes frames of {size} numbers, and the model reads {reads}")

    @cached_property
    def filters(self) -> np.ndarray:
        """See `triangles`."""
        return triangles(self.num_mel_bins, self.sampling_rate)

    def __call__(self, samples: np.ndarray) -> np.ndarray:
        """samples (n,), -1 ... 1 -> (W / stride, N stride) float32."""
        logs = log_powers(samples * np.float32(LOUDEST_SAMPLE), self.filters, np.hanning(FRAME) ** 0.85)
        logs = (logs - logs.mean(1, keepdims=True)) / np.sqrt(logs.var(1, keepdims=True, ddof=1) + MIN_VARIANCE)
        count = logs.shape[1] // self.stride
        return np.ascontiguousarray(logs[:, : count * self.stride].T).reshape(count, -1)
