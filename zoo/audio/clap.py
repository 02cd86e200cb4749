"""Spectrograms as CLAP reads them, one of a sound, or of a long one four views: the whole and three parts of it.

Where transformers takes parts at random, these are the beginning of a sound that is cut, and, of views, the parts in
the middle of each third of the places where a part may begin: each is one of those that transformers may choose.

Shapes: n samples, V views, N mel bins, W frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..errors import ConfigError, InputError, UnsupportedError
from ..files.folder import CheckpointFolder
from ..ops.on_numpy.resize import taps
from .features import FILE, MAX_WINDOW_NUMBERS, fill_up, mel_filters

KIND = "ClapFeatureExtractor"
MIN_POWER = 1e-10  # a power's, before its logarithm
PADDINGS = ("repeatpad", "repeat", "pad")
TRUNCATIONS = ("fusion", "rand_trunc")
SIZES = ("feature_size", "sampling_rate", "hop_length", "max_length_s", "fft_window_size")

Read = Callable[[], Iterator[np.ndarray]]  # gives a sound's samples from the beginning, in blocks


@dataclass(frozen=True)
class SoundExtractor:
    """Samples to the views of a sound: the fields of preprocessor_config.json."""

    views: ClassVar[int] = 4  # with the truncation "fusion"

    feature_size: int = 64
    sampling_rate: int = 48000  # Hz
    hop_length: int = 480  # samples from one frame to the next
    max_length_s: int = 10
    fft_window_size: int = 1024
    frequency_min: float = 0.0  # Hz
    frequency_max: float = 14000.0
    truncation: str = "fusion"
    padding: str = "repeatpad"

    @classmethod
    def from_folder(cls, folder: CheckpointFolder) -> SoundExtractor:
        """The extractor of a checkpoint; ConfigError or UnsupportedError where the file is not CLAP's."""
        raw, where = folder.json(FILE), folder.where(FILE)
        if (kind := raw.get("feature_extractor_type", KIND)) != KIND:
            raise UnsupportedError(f"{where}: feature_extractor_type {kind!r:.100}, expected {KIND!r}")
        if raw.get("padding_value") not in (None, 0):
            raise UnsupportedError(f"{where}: padding_value = {raw['padding_value']!r:.100} is not implemented")
        given: dict[str, Any] = {name: raw[name] for name in cls.__dataclass_fields__ if name in raw}
        for name in SIZES:
            if name in given and (type(given[name]) is not int or not 1 <= given[name] <= 1 << 20):
                raise ConfigError(
                    f"{where}: {name} = {given[name]!r:.100}, expected a whole number from 1 to {1 << 20}"
                )
        for name in ("frequency_min", "frequency_max"):
            if name in given and (type(given[name]) not in (int, float) or not 0 <= given[name] <= 1 << 20):
                raise ConfigError(f"{where}: {name} = {given[name]!r:.100}, expected a number from 0 to {1 << 20}")
        for name, known in (("truncation", TRUNCATIONS), ("padding", PADDINGS)):
            if name in given and given[name] not in known:
                raise UnsupportedError(f"{where}: {name} = {given[name]!r:.100}, expected one of {', '.join(known)}")
        found = cls(**given)
        size = found.fft_window_size
        if size % 2 or not found.hop_length <= size // 2 < found.samples or found.frequency_min >= found.frequency_max:
            raise ConfigError(
                f"{where}: fft_window_size = {size}, hop_length = {found.hop_length}, {found.samples} samples, "
                f"frequencies from {found.frequency_min:g} to {found.frequency_max:g}: expected an even window, "
                "shorter than a sound and twice as long as a hop, and frequencies that rise"
            )
        if max(found.samples, found.frames * size, (found.frames + size) * found.feature_size) > MAX_WINDOW_NUMBERS:
            sizes = f"{found.frames} frames of {size} samples, to {found.feature_size} bins"
            raise ConfigError(f"{where}: {sizes}, take more than {MAX_WINDOW_NUMBERS} numbers")
        return found

    @property
    def samples(self) -> int:
        """The samples of the longest sound that is seen as it is."""
        return self.max_length_s * self.sampling_rate

    @property
    def frames(self) -> int:
        """The frames of a spectrogram."""
        return self.samples // self.hop_length + 1

    @property
    def fuses(self) -> bool:
        return self.truncation == "fusion"

    def check(self, config: Any) -> None:
        """ConfigError if a model of this config reads something else."""
        views = self.views if self.fuses else 1
        wanted = config.views, config.num_mel_bins
        if (views, self.feature_size) != wanted or self.frames > config.max_frames:
            raise ConfigError(
                f"the feature extractor makes {views} views of {self.feature_size} bins x {self.frames} frames, and "
                f"the model reads {wanted[0]} of {wanted[1]} x at most {config.max_frames}"
            )

    @cached_property
    def filters(self) -> np.ndarray:
        """The filters over the frequencies (N, fft_window_size / 2 + 1), of torchaudio for views, else of librosa."""
        of = self.feature_size, self.fft_window_size, self.sampling_rate, self.frequency_min, self.frequency_max
        return mel_filters(*of, scale="htk" if self.fuses else "slaney", equal_areas=not self.fuses)

    def __call__(self, read: Read) -> tuple[np.ndarray, bool]:
        """-> the views (V, N, W) float32, and False if what comes after the first `samples` is not in them."""
        blocks = read()
        x = fill_up(np.zeros(0, np.float32), blocks, self.samples + 1)
        if not len(x):
            raise InputError("the audio has 0 samples, and the model hears nothing in less than 1")
        if len(x) > self.samples and self.fuses:
            n = len(x) + sum(len(block) for block in blocks)
            return self._views_of(read, n), True
        is_whole, x = len(x) <= self.samples, self._fill(x[: self.samples])
        found = self._frames_at(iter([x]), np.arange(self.frames))
        return np.stack([found] * (self.views if self.fuses else 1)), is_whole

    def _fill(self, x: np.ndarray) -> np.ndarray:
        """Samples (n,), repeated as `padding` says, then zeros, up to `samples`."""
        times = self.samples // len(x) + (self.padding == "repeat")
        if self.padding != "pad" and len(x) < self.samples:
            x = np.tile(x, times)[: self.samples]
        return np.pad(x, (0, self.samples - len(x)))

    def _views_of(self, read: Read, n: int) -> np.ndarray:
        """A sound of n samples, which are too many: the whole, shrunk, and three parts of it (4, N, W)."""
        total, W = n // self.hop_length + 1, self.frames
        if total == W:
            return np.stack([self._frames_at(read(), np.arange(W))] * self.views)
        thirds = np.array_split(np.arange(total - W + 1), 3)
        begins = [int(places[len(places) // 2]) if len(places) else 0 for places in thirds]
        two, weights = taps(total, W, "bilinear", np.dtype(np.float32))  # frames that each of the whole is made of
        parts = [np.arange(begin, begin + W) for begin in begins]
        wanted, at = np.unique(np.concatenate([*two, *parts]), return_inverse=True)
        found = self._frames_at(read(), wanted)
        first, second, *parts = (found[:, one] for one in np.split(at, 5))
        return np.stack([first * weights[0] + second * weights[1], *parts])

    def _frames_at(self, blocks: Iterator[np.ndarray], wanted: np.ndarray) -> np.ndarray:
        """Frames `wanted` (W,), which rise, of samples that are mirrored at both ends -> (N, W)."""
        half, hop, size, found, first = self.fft_window_size // 2, self.hop_length, self.fft_window_size, [], 0
        x = fill_up(np.zeros(0, np.float32), blocks, self.samples)
        x = np.concatenate([x[half:0:-1], x])
        while True:
            more = fill_up(np.zeros(0, np.float32), blocks, self.samples)
            if not len(more):
                x = np.concatenate([x, x[-2 : -half - 2 : -1]])
            count = (len(x) - size) // hop + 1
            here = wanted[(wanted >= first) & (wanted < first + count)] - first
            found.append(self._decibels(np.lib.stride_tricks.sliding_window_view(x, size)[::hop][here]))
            if not len(more):
                return np.concatenate(found, 1)
            x, first = np.concatenate([x[count * hop :], more]), first + count

    def _decibels(self, frames: np.ndarray) -> np.ndarray:
        """frames (W, fft_window_size) -> (N, W) float32."""
        window = np.hanning(self.fft_window_size + 1)[:-1]
        powers = np.abs(np.fft.rfft(frames * window)) ** 2  # in float64
        return (10 * np.log10(np.maximum(self.filters @ powers.T, MIN_POWER))).astype(np.float32)
