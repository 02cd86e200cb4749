"""The checkpoints that parity can build: one module for each family or group of families, found by being here."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from zoo.registry import config_class, model_class

from ..drawing import Role, roles
from .common import Size, Spec

__all__ = ["FIRST", "FULL_SPECS", "SPECS", "Size", "Spec", "config_of", "first_of", "spec_class", "tensors"]

SPECS: dict[str, Spec] = {}
for _module in sorted(module.name for module in iter_modules(__path__)):
    SPECS |= getattr(import_module(f"{__name__}.{_module}"), "SPECS", {})
# The ones that `--all --full` runs; any other by its name.  Together they need about 5 GB of memory.
FULL_SPECS = tuple(name for name, spec in SPECS.items() if spec.full)
# The first of each family.
FIRST = tuple({spec.model_type: name for name, spec in reversed(SPECS.items())}.values())
DTYPES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}


def first_of(model_type: str) -> str | None:
    """The name of a family's first spec; None for a family without one."""
    return next((name for name, spec in SPECS.items() if spec.model_type == model_type), None)


def spec_class(model_type: str) -> type[Spec]:
    """The class of a family's specs."""
    name = first_of(model_type)
    return Spec if name is None else type(SPECS[name])


def config_of(spec: Spec, size: Size) -> dict[str, Any]:
    """The content of config.json."""
    head = {"architectures": [spec.architecture], "model_type": spec.model_type}
    return {**head, **spec.config, **(spec.tiny if size == "tiny" else {}), "torch_dtype": DTYPES[spec.dtype]}


def tensors(spec: Spec, config: Mapping[str, Any]) -> dict[str, Role]:
    """Every tensor that has weights, by the name that it has for transformers."""
    cfg: Any = config_class(spec.model_type).from_dict(dict(config))
    cls = spec.model_class
    found = roles(cls, cfg, spec.absent if spec.pooler else [*spec.absent, "pooler"], spec.massive)
    for head in spec.also:
        found = {**roles(model_class(cfg, head), cfg, spec.absent), **found}
    lacking = [part for part in (*spec.unused, *["pooler."] * spec.pooler) if not any(part in name for name in found)]
    if lacking:
        inner, prefix = spec.base_config(cfg)
        body = roles(model_class(inner, "Model"), inner, spec.absent)
        found |= {prefix + name: role for name, role in body.items() if any(part in name for part in lacking)}
    if spec.untied:
        found |= {target: found[owner] for target, owner in cls.tied.items()}
    return {name: _louder(role, name, spec.gains) for name, role in found.items()}


def _louder(role: Role, name: str, gains: Mapping[str, float]) -> Role:
    module, _, part = name.rpartition(".")
    ends = (module, name) if part == "weight" else (name,)
    gain = next((gain for end, gain in gains.items() if any(one.endswith(end) for one in ends)), 1)
    return role._replace(deviation=role.deviation * gain)
