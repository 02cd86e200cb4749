"""Log-mel spectrograms as Whisper reads them.

Shapes: n samples, N mel bins, W frames.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import ConfigError, UnsupportedError
from ..files.folder import CheckpointFolder

FILE = "preprocessor_config.json"
HIGHEST = 8000.0  # Hz, of the last filter
LEAST = 1e-10  # of a power, before its logarithm
RANGE = 8.0  # below the loudest, in powers of 10
LOG_FROM, LOG_MEL, LOG_STEP = 1000.0, 15.0, np.log(6.4) / 27.0  # Slaney's scale is linear below, logarithmic above


@dataclass(frozen=True)
class FeatureExtractor:
    """Samples to a spectrogram of one window: the fields of preprocessor_config.json."""

    feature_size: int = 80
    sampling_rate: int = 16000  # Hz
    hop_length: int = 160  # samples from one frame to the next
    chunk_length: int = 30  # seconds of a window
    n_fft: int = 400

    @classmethod
    def from_folder(cls, folder: CheckpointFolder) -> FeatureExtractor:
        """The extractor of a checkpoint; ConfigError or UnsupportedError where the file is not Whisper's."""
        raw, where = folder.json(FILE), folder.where(FILE)
        kind = raw.get("feature_extractor_type", "WhisperFeatureExtractor")
        if kind != "WhisperFeatureExtractor":
            raise UnsupportedError(f"{where}: feature_extractor_type {kind!r}, expected 'WhisperFeatureExtractor'")
        if raw.get("dither") or raw.get("padding_value") or raw.get("do_normalize"):
            raise UnsupportedError(f"{where}: dither, padding_value and do_normalize are not implemented")
        names = [name for name in cls.__dataclass_fields__ if name in raw]
        for name in names:
            value: Any = raw[name]
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1 << 20:
                raise ConfigError(f"{where}: {name} = {value!r}, expected a whole number from 1 to {1 << 20}")
        return cls(**{name: raw[name] for name in names})

    @property
    def samples(self) -> int:
        """The samples of a window."""
        return self.chunk_length * self.sampling_rate

    @cached_property
    def filters(self) -> np.ndarray:
        """Triangles of equal area over the frequencies (N, n_fft / 2 + 1), on Slaney's mel scale."""
        most = LOG_MEL + np.log(HIGHEST / LOG_FROM) / LOG_STEP
        mels = np.linspace(0.0, most, self.feature_size + 2)
        edges = np.where(mels < LOG_MEL, 200.0 * mels / 3.0, LOG_FROM * np.exp(LOG_STEP * (mels - LOG_MEL)))
        at = np.linspace(0, self.sampling_rate // 2, self.n_fft // 2 + 1)
        slopes, width = edges[:, None] - at, np.diff(edges)[:, None]
        triangles = np.maximum(0, np.minimum(-slopes[:-2] / width[:-1], slopes[2:] / width[1:]))
        return triangles * (2.0 / (edges[2:] - edges[:-2]))[:, None]

    def __call__(self, samples: np.ndarray) -> np.ndarray:
        """samples (n,), -1 ... 1, at most a window, the rest is silence -> (N, W) float32."""
        x = np.zeros(self.samples)
        x[: len(samples)] = samples[: self.samples]
        x = np.pad(x, self.n_fft // 2, mode="reflect")
        frames = np.lib.stride_tricks.sliding_window_view(x, self.n_fft)[:: self.hop_length][:-1]
        window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(self.n_fft) / self.n_fft)
        power = np.abs(np.fft.rfft(frames * window)) ** 2  # (W, n_fft / 2 + 1)
        logs = np.log10(np.maximum(self.filters @ power.T, LEAST))
        return ((np.maximum(logs, logs.max() - RANGE) + 4.0) / 4.0).astype(np.float32)
