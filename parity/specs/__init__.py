"""Which kinds of checkpoint there are to build: the names, shapes and strays of real ones, and their config.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import llama, table, text, trocr, vision
from .common import Shapes, Size, Spec
from .llama import LlamaSpec
from .table import TableSpec
from .text import TextSpec
from .trocr import TrOCRSpec
from .vision import VisionSpec

__all__ = [
    "FULL",
    "SPECS",
    "LlamaSpec",
    "Shapes",
    "Size",
    "Spec",
    "TableSpec",
    "TextSpec",
    "TrOCRSpec",
    "VisionSpec",
    "config_of",
    "shapes",
]

SPECS: dict[str, Spec] = {**text.SPECS, **vision.SPECS, **trocr.SPECS, **table.SPECS, **llama.SPECS}
# What `--all --full` runs: one of each family (the last needs about 5 GB of memory); any other by its name.
FULL = (*text.FULL, *vision.FULL, *trocr.FULL, *table.FULL, *llama.FULL)
_FAMILIES: dict[type[Spec], Any] = {
    TextSpec: text,
    VisionSpec: vision,
    TrOCRSpec: trocr,
    TableSpec: table,
    LlamaSpec: llama,
}


def config_of(spec: Spec, size: Size) -> dict[str, Any]:
    """The content of config.json."""
    config = _FAMILIES[type(spec)].config_of(spec, size)
    config["torch_dtype"] = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}[spec.dtype]
    return config


def shapes(spec: Spec, config: Mapping[str, Any]) -> Shapes:
    """Every tensor by the name that it has after `LayerNorm.gamma` became `LayerNorm.weight`; no integers."""
    for name, shape in _FAMILIES[type(spec)].body(config, spec.pooler):
        yield spec.prefix + name, shape
    yield from spec.head(config)
