"""Sounds: reading files in blocks, and log-mel spectrograms."""

from .features import FeatureExtractor, Spectrogram
from .reading import SoundInput, read_sound, reader

__all__ = ["FeatureExtractor", "SoundInput", "Spectrogram", "read_sound", "reader"]
