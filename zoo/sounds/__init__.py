"""Sounds: reading files in blocks, and log-mel spectrograms."""

from .features import FeatureExtractor
from .reading import SoundInput, read_sound

__all__ = ["FeatureExtractor", "SoundInput", "read_sound"]
