"""Audio: reading files in blocks, and log-mel spectrograms."""

from .features import FeatureExtractor, Spectrogram
from .reading import AudioInput, read_audio, reader

__all__ = ["AudioInput", "FeatureExtractor", "Spectrogram", "read_audio", "reader"]
