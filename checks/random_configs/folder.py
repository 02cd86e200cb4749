"""The checkpoint of a pair, written by transformers with random weights, and transformers as it reads it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from parity.drawing import WORD_SCALE
from parity.reference import Reference, require
from parity.specs import SPECS, Spec, spec_class
from parity.specs.common import pair
from parity.specs.table import TableSpec

from .plan import Plan

MAX_PARAMETERS = 4_000_000  # parameters
MAX_PATCHES = 5000  # patches of an image, all of which transformers has attend to each other in one array


class NoPairError(Exception):
    """transformers itself does not build, read or run this."""


def write_checkpoint(plan: Plan, folder: Path) -> None:
    """Write what the plan says; NoPairError where transformers has no such model."""
    require()
    import torch
    import transformers

    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    raw = plan.config
    text = json.dumps(raw)  # transformers adds to what it is given
    try:
        config = transformers.CONFIG_MAPPING[raw["model_type"]].from_dict(raw)
        config._attn_implementation = "eager"
        cls = getattr(transformers, plan.architecture)
        with torch.device("meta"):
            size = sum(p.numel() for p in cls(config).parameters())
        if size > MAX_PARAMETERS:
            raise NoPairError(f"{size} parameters")
        if (count := _patches(config)) > MAX_PATCHES:
            raise NoPairError(f"{count} patches of an image")
        if plan.architecture.endswith("ForMaskedImageModeling") and _stages_of(config) != config.num_hidden_layers:
            raise NoPairError("the decoder is as wide as num_hidden_layers says, the encoder as depths does")
        model = cls(config).eval()
        fill(model, plan.rng(0), {name: x for name, x in SPECS[plan.spec].gains.items() if x < 1})
        if plan.half:
            model.to(torch.bfloat16)
        model.save_pretrained(folder)
    except Exception as e:
        raise NoPairError(f"{type(e).__name__}: {e}") from e
    if not plan.rewritten:
        (folder / "config.json").write_text(text)


def _stages_of(config: Any) -> int:
    """The stages of Swin's encoder, or the layers of another."""
    depths = getattr(config, "depths", None)
    return len(depths) if depths else config.num_hidden_layers


def _patches(config: Any) -> int:
    """The patches of an image of a config's image_size, or of its encoder's; 0 where it has none."""
    vision = getattr(config, "vision_config", config)
    image, patch = getattr(vision, "image_size", None), getattr(vision, "patch_size", None)
    if not image or not patch:
        return 0
    (high, wide), (py, px) = pair(image), pair(patch)
    return high // py * (wide // px)


def fill(model: Any, rng: np.random.Generator, gains: Mapping[str, float]) -> None:
    """Give all tensors values that no other could have: factors near 1, biases that are not 0, small embeddings.

    gains: factors below 1 for the weights of modules, by the end of their names: of those whose numbers would grow
    until rounding is seen, as a box's size does, which is an exponential.
    """
    import torch

    done: set[int] = set()
    for path, module in model.named_modules():
        tensors = [*module.named_parameters(recurse=False), *_saved_buffers(module)]
        gain = next((gain for end, gain in gains.items() if path.endswith(end)), 1.0)
        for name, tensor in tensors:
            if id(tensor) in done or not tensor.is_floating_point() or _is_fixed(name, tensor):
                continue
            done.add(id(tensor))
            array = torch.as_tensor(_values(module, name, tuple(tensor.shape), rng))
            if name == "weight" and tensor.ndim > 1:
                array = array * gain
            with torch.no_grad():
                tensor.copy_(array)


def _is_fixed(name: str, tensor: Any) -> bool:
    """True for what follows from the config, such as sines, though it is saved: parameters that are never trained, and
    buffers but those of batch norms and of the bias of a head.
    """
    import torch

    if isinstance(tensor, torch.nn.Parameter):
        return not tensor.requires_grad
    return name not in ("running_mean", "running_var", "weight", "bias", "final_logits_bias")


def _saved_buffers(module: Any) -> list[tuple[str, Any]]:
    hidden = module._non_persistent_buffers_set
    return [(name, buffer) for name, buffer in module.named_buffers(recurse=False) if name not in hidden]


def _values(module: Any, name: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    x, kind = rng.standard_normal(shape, np.float32), type(module).__name__
    if name == "running_var":
        return np.abs(x) * 0.1 + 0.5
    if len(shape) < 2:
        return x * 0.1 + (1 if name in ("weight", "D") or "scale" in name or "lambda" in name else 0)
    if "Embedding" in kind or "token" in name or "position" in name:
        return x * WORD_SCALE
    return x * 1.4 / np.float32(np.sqrt(max(np.prod(shape[1:]), 1)))


class Theirs(Reference):
    """The reference on a pair's folder; NoPairError where it cannot read or run it."""

    def __init__(self, folder: Path, architecture: str, dtype: str = "float32"):
        try:
            super().__init__(folder, architecture, dtype=dtype)
        except Exception as e:
            raise NoPairError(f"{type(e).__name__}: {e}") from e
        for module in self.model.modules():
            if hasattr(module, "config"):
                module.config.return_dict = True  # outputs have names, whatever the config says
                module.config.use_cache = False  # as for zoo, which has no cache unless it is given one

    def load(self, cls: Any) -> tuple[Any, dict[str, Any]]:
        spec: type[Spec] = spec_class(self.config["model_type"])
        if issubclass(spec, TableSpec):  # the files of the hub need more
            spec = Spec
        return spec.load_reference(cls, self.folder, self.config, self.dtype)

    def outputs(self, arrays: Mapping[str, np.ndarray], switches: Sequence[str] = ()) -> dict[str, np.ndarray]:
        try:
            return super().outputs(arrays, switches)
        except Exception as e:
            raise NoPairError(f"{type(e).__name__}: {e}") from e


__all__ = ["MAX_PARAMETERS", "SPECS", "NoPairError", "Theirs", "fill", "write_checkpoint"]
