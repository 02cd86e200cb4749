"""Which kinds of checkpoint there are to build: the names, shapes and strays of real ones, and their config.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zoo.registry import config_class, model_class

from ..drawing import Role, roles
from . import llama, table, text, trocr, vision
from .common import Size, Spec
from .llama import LlamaSpec
from .table import TableSpec
from .text import TextSpec
from .trocr import TrOCRSpec
from .vision import VisionSpec

__all__ = [
    "FULL",
    "SPECS",
    "LlamaSpec",
    "Size",
    "Spec",
    "TableSpec",
    "TextSpec",
    "TrOCRSpec",
    "VisionSpec",
    "config_of",
    "tensors",
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


def tensors(spec: Spec, config: Mapping[str, Any]) -> dict[str, Role]:
    """Every tensor by the name that it has after `LayerNorm.gamma` became `LayerNorm.weight`; no integers."""
    cfg: Any = config_class(spec.model_type).from_dict(dict(config))
    cls = model_class(cfg)
    absent = [] if spec.architecture.endswith("ForMaskedImageModeling") else ["mask_token"]
    found = roles(cls, cfg, absent if spec.pooler else [*absent, "pooler"], spec.massive)
    for head in spec.also:
        found = {**roles(model_class(cfg, head), cfg, absent), **found}
    if spec.pooler and not any("pooler." in name for name in found):  # which the class does not need
        inner, prefix = (cfg.encoder, "encoder.") if "encoder" in config else (cfg, cls.layout.prefix + ".")
        body = roles(model_class(inner, "Model"), inner, ["mask_token"])
        found |= {prefix + name: role for name, role in body.items() if "pooler." in name}
    if spec.untied:
        found |= {target: found[owner] for target, owner in cls.tied.items()}
    if getattr(spec, "timm", False):
        found = {table.timm_name(name): role for name, role in found.items()}
    return {name: _louder(role, name, spec.gains) for name, role in found.items()}


def _louder(role: Role, name: str, gains: Mapping[str, float]) -> Role:
    module, _, part = name.rpartition(".")
    gain = next((gain for end, gain in gains.items() if module.endswith(end)), 1) if part == "weight" else 1
    return role._replace(deviation=role.deviation * gain)
