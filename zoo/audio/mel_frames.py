"""Spectrograms as Parakeet reads them (NeMo's, https://github.com/NVIDIA-NeMo/NeMo), of recordings of any length.

Shapes: n samples, N mel bins, W frames.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import ConfigError, UnsupportedError
from ..files.folder import CheckpointFolder
from .features import FILE, slaney_filters
from .waveform import MAX_SECONDS

KIND = "ParakeetFeatureExtractor"
HOP = 160  # samples from one frame to the next
MIN_STD = 1e-5
MIN_POWER = 2.0**-24  # what is added to a power before its logarithm
MAX_SIZES = {"feature_size": 1 << 10, "n_fft": 1 << 12, "win_length": 1 << 12, "sampling_rate": 1 << 20}


@dataclass(frozen=True)
class MelExtractor:
    """Samples to a spectrogram, each bin of mean 0 and variance 1: the fields of preprocessor_config.json.

    The frame in the middle of which the recording ends is left out: transformers hides it.
    """

    feature_size: int = 80
    sampling_rate: int = 16000  # Hz
    n_fft: int = 512
    win_length: int = 400
    preemphasis: float | None = 0.97

    @classmethod
    def from_folder(cls, folder: CheckpointFolder) -> MelExtractor:
        """The extractor of a checkpoint; ConfigError or UnsupportedError where the file is another one's."""
        raw, where = folder.json(FILE), folder.where(FILE)
        if (kind := raw.get("feature_extractor_type", KIND)) != KIND:
            raise UnsupportedError(f"{where}: feature_extractor_type {kind!r:.100}, expected {KIND!r}")
        for name, wanted in (("hop_length", HOP), ("padding_value", 0.0), ("padding_side", "right")):
            if raw.get(name, wanted) != wanted:
                raise UnsupportedError(f"{where}: {name} = {raw[name]!r:.100} is not implemented, only {wanted!r} is")
        given: dict[str, Any] = {name: raw[name] for name in cls.__dataclass_fields__ if name in raw}
        for name, most in MAX_SIZES.items():
            if name in given and (type(given[name]) is not int or not 1 <= given[name] <= most):
                raise ConfigError(f"{where}: {name} = {given[name]!r:.100}, expected a whole number from 1 to {most}")
        share = given.get("preemphasis")
        if share is not None and (type(share) not in (int, float) or not math.isfinite(share)):
            raise ConfigError(f"{where}: preemphasis = {share!r:.100}, expected a number")
        found = cls(**given)
        if found.win_length > found.n_fft or found.n_fft % 2:
            sizes = f"win_length = {found.win_length}, n_fft = {found.n_fft}"
            raise ConfigError(f"{where}: {sizes}, expected an even n_fft that is not smaller")
        return found

    @property
    def samples(self) -> int:
        """The most samples that are classified at once."""
        return MAX_SECONDS * self.sampling_rate

    def check(self, config: Any) -> None:
        """ConfigError if a model of this config reads something else."""
        if (wanted := getattr(config, "frame_size", None)) != self.feature_size:
            reads = "something else" if wanted is None else f"frames of {wanted}"
            found = f"frames of {self.feature_size} numbers"
            raise ConfigError(f"the feature extractor makes {found}, and the model reads {reads}")

    @cached_property
    def filters(self) -> np.ndarray:
        """See `slaney_filters`."""
        return slaney_filters(self.feature_size, self.n_fft, self.sampling_rate, self.sampling_rate / 2)

    def __call__(self, samples: np.ndarray) -> np.ndarray:
        """samples (n,), -1 ... 1 -> (W, N) float32."""
        x, count = samples.astype(np.float64), len(samples) // HOP
        if self.preemphasis is not None:
            x = np.append(x[:1], x[1:] - self.preemphasis * x[:-1])
        side = (self.n_fft - self.win_length) // 2
        window = np.pad(np.hanning(self.win_length), (side, self.n_fft - self.win_length - side))
        frames = np.lib.stride_tricks.sliding_window_view(np.pad(x, self.n_fft // 2), self.n_fft)[::HOP][:count]
        powers = np.abs(np.fft.rfft(frames * window)) ** 2  # (W, n_fft / 2 + 1)
        logs = np.log(powers @ self.filters.T + MIN_POWER)
        return ((logs - logs.mean(0)) / (logs.std(0, ddof=1) + MIN_STD)).astype(np.float32)
