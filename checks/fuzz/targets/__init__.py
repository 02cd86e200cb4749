"""What is fuzzed: a reader, or a load and a call, with inputs to begin with and a way to change them."""

from . import images, loads, settings, texts, weights
from .target import TARGETS, Target

__all__ = ["TARGETS", "Target", "images", "loads", "settings", "texts", "weights"]
