"""The fuzzed targets: a reader, or a load and a call, with first inputs and a way to change them."""

from . import families, gguf, images, loads, servers, settings, strangers, texts, weights
from .target import TARGETS, Target

__all__ = [
    "TARGETS",
    "Target",
    "families",
    "gguf",
    "images",
    "loads",
    "servers",
    "settings",
    "strangers",
    "texts",
    "weights",
]
