"""Which kinds of checkpoint there are to build: the names, shapes and strays of real ones, and their config.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import text, vision
from .common import Shapes, Size, Spec
from .text import TextSpec
from .vision import VisionSpec

__all__ = ["FULL", "SPECS", "Shapes", "Size", "Spec", "TextSpec", "VisionSpec", "config_of", "shapes"]

SPECS: dict[str, Spec] = {**text.SPECS, **vision.SPECS}
# What `--full` runs: of text one of each vocabulary and width (the last needs about 5 GB of memory), of pictures one of
# each kind of positions and head.
FULL = (*text.FULL, *vision.FULL)


def config_of(spec: Spec, size: Size) -> dict[str, Any]:
    """The content of config.json."""
    family = text if isinstance(spec, TextSpec) else vision
    config = family.config_of(spec, size)  # type: ignore[arg-type]
    config["torch_dtype"] = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}[spec.dtype]
    return config


def shapes(spec: Spec, config: Mapping[str, Any]) -> Shapes:
    """Every tensor by the name that it has after `LayerNorm.gamma` became `LayerNorm.weight`; no integers."""
    family = text if isinstance(spec, TextSpec) else vision
    for name, shape in family.body(config, spec.pooler):
        yield spec.prefix + name, shape
    yield from spec.head(config)
