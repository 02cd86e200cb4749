"""Log-mel spectrograms as Whisper reads them, of recordings of any length.

Shapes: n samples, N mel bins, W frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ..errors import ConfigError, UnsupportedError
from ..files.folder import CheckpointFolder

FILE = "preprocessor_config.json"
MAX_WINDOW_NUMBERS = 1 << 23  # numbers of a window: Whisper's is of 480,000 samples, which become 3,000 frames of 400
HIGHEST_HZ = 8000.0  # the last filter's
MIN_POWER = 1e-10  # a power's, before its logarithm
RANGE = 8.0  # below the loudest, in powers of 10
KEPT_WINDOWS = 20  # windows of a recording in memory; a longer one is read twice
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
        found = cls(**{name: raw[name] for name in names})
        if not 1 < found.hop_length <= found.n_fft <= found.samples:
            raise ConfigError(
                f"{where}: hop_length = {found.hop_length}, n_fft = {found.n_fft}, and a window of {found.samples} "
                "samples: expected each to be at least as long as the one before"
            )
        frames = found.samples // found.hop_length
        most = max(found.samples, frames * found.n_fft, (frames + found.n_fft) * found.feature_size)
        if most > MAX_WINDOW_NUMBERS:
            raise ConfigError(
                f"{where}: {frames} frames of n_fft = {found.n_fft} samples, hop_length = {found.hop_length} apart, to "
                f"feature_size = {found.feature_size} bins, take {most} numbers, expected at most {MAX_WINDOW_NUMBERS}"
            )
        return found

    def check(self, config: Any) -> None:
        """ConfigError if a model of this config reads something else, or other spectrograms."""
        if not hasattr(config, "num_mel_bins"):
            raise ConfigError(
                f"the feature extractor makes spectrograms, and a {config.model_type} model reads samples"
            )
        frames = self.samples // self.hop_length
        if (self.feature_size, frames) != (config.num_mel_bins, config.frames):
            raise ConfigError(
                f"the feature extractor makes {self.feature_size} bins x {frames} frames, and the model reads "
                f"{config.num_mel_bins} x {config.frames}"
            )

    @property
    def samples(self) -> int:
        """The samples of a window."""
        return self.chunk_length * self.sampling_rate

    @cached_property
    def filters(self) -> np.ndarray:
        """See `slaney_filters`."""
        return slaney_filters(self.feature_size, self.n_fft, self.sampling_rate, HIGHEST_HZ)

    def __call__(self, samples: np.ndarray) -> np.ndarray:
        """samples (n,), -1 ... 1, at most a window, the rest is silence -> (N, W) float32."""
        logs = np.concatenate([*self.logs([samples[: self.samples]])], 1)
        return normal(logs, logs.max())

    def logs(self, blocks: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        """Yield parts (N, w) of the logarithms of a recording's powers, about a window each; at least a window in all.

        blocks: its samples, mirrored at both ends of what is not silence added to fill a window.
        """
        blocks, half = iter(blocks), self.n_fft // 2
        x = fill_up(np.zeros(0, np.float32), blocks, self.samples)
        x = np.pad(x, (0, max(0, self.samples - len(x))))
        x = np.concatenate([x[half:0:-1], x])
        while len(more := fill_up(np.zeros(0, np.float32), blocks, self.samples)):
            count = (len(x) - self.n_fft) // self.hop_length + 1
            yield self._logs(x, count)
            x = np.concatenate([x[count * self.hop_length :], more])
        yield self._logs(np.concatenate([x, x[-2 : -half - 2 : -1]]), None)

    def _logs(self, x: np.ndarray, count: int | None) -> np.ndarray:
        """The first `count` frames of samples, or all but the last: (N, count)."""
        x = x.astype(np.float64)
        frames = np.lib.stride_tricks.sliding_window_view(x, self.n_fft)[:: self.hop_length]
        frames = frames[:-1] if count is None else frames[:count]
        window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(self.n_fft) / self.n_fft)
        power = np.abs(np.fft.rfft(frames * window)) ** 2  # (W, n_fft / 2 + 1)
        return np.log10(np.maximum(self.filters @ power.T, MIN_POWER)).astype(np.float32)


def slaney_filters(bins: int, size: int, sampling_rate: int, highest: float) -> np.ndarray:
    """Triangles of equal area over the frequencies (N, size / 2 + 1), on Slaney's mel scale, up to `highest` Hz."""
    return mel_filters(bins, size, sampling_rate, 0.0, highest)


def mel_filters(
    bins: int,
    size: int,
    sampling_rate: int,
    lowest: float,
    highest: float,
    scale: Literal["slaney", "htk"] = "slaney",
    equal_areas: bool = True,
) -> np.ndarray:
    """Triangles over the frequencies (N, size / 2 + 1), from `lowest` to `highest` Hz, on a mel scale."""
    if scale == "htk":
        least, most = (2595.0 * np.log10(1.0 + hertz / 700.0) for hertz in (lowest, highest))
        edges = 700.0 * (10.0 ** (np.linspace(least, most, bins + 2) / 2595.0) - 1.0)
    else:
        least, most = (
            3.0 * hertz / 200.0 if hertz < LOG_FROM else LOG_MEL + np.log(hertz / LOG_FROM) / LOG_STEP
            for hertz in (lowest, highest)
        )
        mels = np.linspace(least, most, bins + 2)
        edges = np.where(mels < LOG_MEL, 200.0 * mels / 3.0, LOG_FROM * np.exp(LOG_STEP * (mels - LOG_MEL)))
    at = np.linspace(0, sampling_rate // 2, size // 2 + 1)
    slopes, width = edges[:, None] - at, np.diff(edges)[:, None]
    triangles = np.maximum(0, np.minimum(-slopes[:-2] / width[:-1], slopes[2:] / width[1:]))
    return triangles * (2.0 / (edges[2:] - edges[:-2]))[:, None] if equal_areas else triangles


def normal(logs: np.ndarray, highest: float) -> np.ndarray:
    """Logarithms of powers as the model reads them; highest: the largest of the whole recording."""
    return (np.maximum(logs, np.float32(highest - RANGE)) + np.float32(4)) / np.float32(4)


def fill_up(rest: np.ndarray, blocks: Iterator[np.ndarray], most: int) -> np.ndarray:
    """`rest` with blocks added along the last axis, until it is `most` long or there are none."""
    parts, count = [rest], rest.shape[-1]
    while count < most and (block := next(blocks, None)) is not None:
        parts.append(block)
        count += block.shape[-1]
    return np.concatenate(parts, -1)


class Spectrogram:
    """A recording's features, a window after the other, in bounded memory.

    length: in frames.  read: called for the audio's samples, in blocks; twice where the audio is long, since the
    loudest of all its frames decides how each is seen.
    """

    def __init__(self, extractor: FeatureExtractor, read: Callable[[], Iterator[np.ndarray]]):
        self.samples, self.sampling_rate = 0, extractor.sampling_rate
        self._window = extractor.samples // extractor.hop_length
        kept: list[np.ndarray] | None = []
        self._highest = -np.inf
        for part in extractor.logs(self._count_samples(read())):
            self._highest = max(self._highest, float(part.max(initial=-np.inf)))
            if kept is not None:
                kept = [*kept, part] if len(kept) < KEPT_WINDOWS else None
        self.length = -(-self.samples // extractor.hop_length)
        self._parts = iter(kept) if kept is not None else extractor.logs(read())
        self._at, self._waiting = 0, np.zeros((extractor.feature_size, 0), np.float32)

    def _count_samples(self, blocks: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
        for block in blocks:
            self.samples += len(block)
            yield block

    def window(self, at: int) -> np.ndarray:
        """The features (N, W) from frame `at` on, which never falls; 0 after the audio's last frame."""
        skip = at - self._at
        self._waiting = fill_up(self._waiting, self._parts, skip + self._window)[:, skip:]
        self._at = at
        found = normal(self._waiting[:, : self._window], self._highest)
        return np.pad(found, ((0, 0), (0, self._window - found.shape[1])))
