"""Spectrograms as Kaldi makes them (https://kaldi-asr.org, compute-fbank-feats), of the beginning of a recording.

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
from .features import FILE, MAX_WINDOW_NUMBERS

KIND = "ASTFeatureExtractor"
FRAME, HOP, FFT = 400, 160, 512  # samples of a frame, from one to the next, and of its transform
PRE_EMPHASIS = 0.97
LOWEST_HZ = 20.0  # the first filter's
MIN_POWER = 1.192092955078125e-07  # a power's, before its logarithm


@dataclass(frozen=True)
class FilterBankExtractor:
    """Samples to a spectrogram of fixed length: the fields of preprocessor_config.json."""

    num_mel_bins: int = 128
    sampling_rate: int = 16000  # Hz
    max_length: int = 1024  # frames
    mean: float = -4.2677393
    std: float = 4.5689974
    do_normalize: bool = True

    @classmethod
    def from_folder(cls, folder: CheckpointFolder) -> FilterBankExtractor:
        """The extractor of a checkpoint; ConfigError or UnsupportedError where the file is not AST's."""
        raw, where = folder.json(FILE), folder.where(FILE)
        if (kind := raw.get("feature_extractor_type", KIND)) != KIND:
            raise UnsupportedError(f"{where}: feature_extractor_type {kind!r}, expected {KIND!r}")
        if raw.get("padding_value") or raw.get("feature_size", 1) != 1:
            raise UnsupportedError(f"{where}: padding_value and feature_size other than 0 and 1 are not implemented")
        given: dict[str, Any] = {name: raw[name] for name in cls.__dataclass_fields__ if name in raw}
        for name in {"num_mel_bins", "sampling_rate", "max_length"} & given.keys():
            value = given[name]
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1 << 20:
                raise ConfigError(f"{where}: {name} = {value!r}, expected a whole number from 1 to {1 << 20}")
        for name in {"mean", "std"} & given.keys():
            value = given[name]
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise ConfigError(f"{where}: {name} = {value!r}, expected a number")
        found = cls(**given)
        if not isinstance(found.do_normalize, bool):
            raise ConfigError(f"{where}: do_normalize = {found.do_normalize!r}, expected true or false")
        if found.std == 0 or found.sampling_rate <= 2 * LOWEST_HZ:
            raise ConfigError(f"{where}: std = {found.std}, sampling_rate = {found.sampling_rate}: one is too small")
        if max(found.max_length * FFT, found.num_mel_bins * max(FFT, found.max_length)) > MAX_WINDOW_NUMBERS:
            size = f"{found.max_length} frames of {found.num_mel_bins} bins"
            raise ConfigError(f"{where}: {size} take more than {MAX_WINDOW_NUMBERS} numbers")
        return found

    def check(self, config: Any) -> None:
        """ConfigError if a model of this config reads other spectrograms."""
        if (self.num_mel_bins, self.max_length) != (config.num_mel_bins, config.frames):
            raise ConfigError(
                f"the feature extractor makes {self.num_mel_bins} bins x {self.max_length} frames, and the model reads "
                f"{config.num_mel_bins} x {config.frames}"
            )

    @property
    def least_samples(self) -> int:
        """The samples of a frame."""
        return FRAME

    @property
    def samples(self) -> int:
        """The samples that all frames see."""
        return (self.max_length - 1) * HOP + FRAME

    @cached_property
    def filters(self) -> np.ndarray:
        """See `triangles`."""
        return triangles(self.num_mel_bins, self.sampling_rate)

    def __call__(self, samples: np.ndarray) -> np.ndarray:
        """samples (n,), -1 ... 1, of which as many as `samples` are read -> (N, W) float32, zeros after the end."""
        logs = log_powers(samples[: self.samples], self.filters, np.hanning(FRAME))
        found = np.pad(logs, ((0, 0), (0, self.max_length - logs.shape[1])))
        return (found - np.float32(self.mean)) / np.float32(2 * self.std) if self.do_normalize else found


def triangles(bins: int, sampling_rate: int) -> np.ndarray:
    """Filters over the frequencies (N, FFT / 2 + 1), on Kaldi's mel scale, in which they have straight sides."""
    hertz = np.arange(FFT // 2 + 1) * (sampling_rate / FFT)
    edges = np.linspace(mel(LOWEST_HZ), mel(sampling_rate // 2), bins + 2)
    slopes, width = edges[:, None] - mel(hertz), np.diff(edges)[:, None]
    return np.maximum(0, np.minimum(-slopes[:-2] / width[:-1], slopes[2:] / width[1:]))


def log_powers(samples: np.ndarray, filters: np.ndarray, window: np.ndarray) -> np.ndarray:
    """The logarithms of what filters (N, FFT / 2 + 1) let through of each frame of samples (n,) -> (N, W) float32."""
    frames = np.lib.stride_tricks.sliding_window_view(samples.astype(np.float64), FRAME)[::HOP]
    frames = frames - frames.mean(1, keepdims=True)
    before = np.concatenate([frames[:, :1], frames[:, :-1]], 1)
    spectrum = np.fft.rfft((frames - PRE_EMPHASIS * before) * window, FFT)
    return np.log(np.maximum(filters @ (np.abs(spectrum) ** 2).T, MIN_POWER)).astype(np.float32)


def mel(hertz: Any) -> Any:
    """Frequencies on Kaldi's scale."""
    return 1127.0 * np.log1p(np.asarray(hertz) / 700.0)
