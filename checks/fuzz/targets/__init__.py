"""What is fuzzed: a reader, or a load and a call, with inputs to begin with and a way to change them."""

from . import gguf, images, loads, settings, texts, weights
from .target import TARGETS, Target

__all__ = ["TARGETS", "Target", "gguf", "images", "loads", "settings", "texts", "weights"]
