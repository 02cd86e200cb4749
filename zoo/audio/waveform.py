"""Samples as the models of `zoo.inputs.waveform` read them, whole recordings or windows of them.

Shapes: n samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ConfigError, UnsupportedError
from ..files.folder import CheckpointFolder
from .features import FILE, fill_up

KIND = "Wav2Vec2FeatureExtractor"
MIN_VARIANCE = 1e-7
MAX_SECONDS = 60  # a recording that is classified is cut there


@dataclass(frozen=True)
class WaveformExtractor:
    """Samples to samples of mean 0 and variance 1: the fields of preprocessor_config.json."""

    sampling_rate: int = 16000  # Hz
    do_normalize: bool = True

    @classmethod
    def from_folder(cls, folder: CheckpointFolder) -> WaveformExtractor:
        """The extractor of a checkpoint; ConfigError or UnsupportedError where the file is another one's."""
        raw, where = folder.json(FILE), folder.where(FILE)
        if (kind := raw.get("feature_extractor_type", KIND)) != KIND:
            raise UnsupportedError(f"{where}: feature_extractor_type {kind!r:.100}, expected {KIND!r}")
        for name, wanted in (("feature_size", 1), ("padding_value", 0.0), ("padding_side", "right")):
            if raw.get(name, wanted) != wanted:
                raise UnsupportedError(f"{where}: {name} = {raw[name]!r:.100} is not implemented, only {wanted!r} is")
        rate, normal = raw.get("sampling_rate", cls.sampling_rate), raw.get("do_normalize", cls.do_normalize)
        if type(rate) is not int or not 1 <= rate <= 1 << 20:
            raise ConfigError(f"{where}: sampling_rate = {rate!r:.100}, expected a whole number from 1 to {1 << 20}")
        if not isinstance(normal, bool):
            raise ConfigError(f"{where}: do_normalize = {normal!r:.100}, expected true or false")
        return cls(rate, normal)

    @property
    def samples(self) -> int:
        """The most samples that are classified at once."""
        return MAX_SECONDS * self.sampling_rate

    def check(self, config: Any) -> None:
        """ConfigError if a model of this config reads something else."""
        if not hasattr(config, "conv_stride"):
            raise ConfigError(
                f"the feature extractor gives samples, and a {config.model_type} model reads spectrograms"
            )

    def __call__(self, samples: np.ndarray) -> np.ndarray:
        """samples (n,) -> (n,) float32."""
        if not self.do_normalize:
            return samples
        return (samples - samples.mean()) / np.sqrt(samples.var() + MIN_VARIANCE)


def windows(blocks: Iterator[np.ndarray], size: int, left: int, right: int) -> Iterator[tuple[np.ndarray, int, int]]:
    """Yield windows of a recording of at most `size` samples, and how many of each the neighbours see, too.

    The first has none on the left, the last none on the right; each begins size - left - right after the one before.
    """
    rest, before = np.zeros(0, np.float32), 0
    while True:
        rest = fill_up(rest, blocks, size + 1)
        is_last = len(rest) <= size
        yield rest[:size], before, 0 if is_last else right
        if is_last:
            return
        rest, before = rest[size - left - right :], left
