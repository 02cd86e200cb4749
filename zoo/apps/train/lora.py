"""LoRA (Hu et al. 2021, https://arxiv.org/abs/2106.09685): small matrices A and B are trained, the large W is frozen,
and the model computes with W + scale B A.  Adapters are saved in the format of the package peft.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...errors import InputError, UnsupportedError, ZooError
from ...files.atomic_folder import atomic_folder
from ...nn import modules
from ...ops.on_torch import to_raw
from ...weights.adapter import CONFIG, LABELS, PREFIX, WEIGHTS
from ...weights.safetensors import write_safetensors

# The families' names of attention projections.
TARGETS = ("query", "key", "value", "q_proj", "k_proj", "v_proj", "o_proj", "out_proj")


class LoRA:
    """An adapter of a trainable model, whose other tensors are frozen.

    rank: of A (rank, inputs) and B (outputs, rank); B begins at 0.  The scale is alpha / rank.
    keep: names of tensors that are trained themselves and saved with the adapter, such as a new head.
    """

    def __init__(self, model: Any, rank: int, alpha: float | None = None, *, seed: int = 0, keep: Sequence[str] = ()):
        if rank < 1:
            raise InputError(f"the rank of an adapter is {rank}, expected at least 1")
        self.model, self.rank, self.alpha = model, rank, float(2 * rank if alpha is None else alpha)
        self.whole = {n: p for n, p in model.named_parameters() if n in keep}
        for _, p in model.named_parameters():
            p.requires_grad_(False)
        for p in self.whole.values():
            p.requires_grad_(True)
        names = {id(p): n for n, p in model.named_parameters()}
        generator = torch.Generator().manual_seed(seed)
        self.pairs: dict[str, tuple[Tensor, Tensor]] = {}
        self._places: list[tuple[Any, list[tuple[Tensor, str | None]]]] = []  # (module, parts of its weight)
        for module in modules(model):
            weight = getattr(module, "weight", None)
            parts = list(weight) if isinstance(weight, tuple) else [weight] if isinstance(weight, Tensor) else []
            found: list[tuple[Tensor, str | None]] = []
            for part in parts:
                name = names.get(id(part), "").removesuffix(".weight")
                wanted = part.ndim == 2 and name.rpartition(".")[2] in TARGETS
                found.append((part, name if wanted else None))
                if wanted:
                    a = torch.rand(rank, part.shape[1], generator=generator) * 2 - 1
                    pair = a / part.shape[1] ** 0.5, torch.zeros(part.shape[0], rank)
                    self.pairs[name] = tuple(x.to(part.device).requires_grad_(True) for x in pair)  # type: ignore[assignment]
            if any(name for _, name in found):
                self._places.append((module, found))
        if not self.pairs:
            raise UnsupportedError(f"{type(model).__name__} has none of {', '.join(TARGETS)}, which an adapter needs")

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Every A and B, and the tensors of `keep`, under peft's names."""
        for name, (a, b) in self.pairs.items():
            yield f"{PREFIX}{name}.lora_A.weight", a
            yield f"{PREFIX}{name}.lora_B.weight", b
        for name, p in self.whole.items():
            yield PREFIX + name, p

    def apply(self) -> None:
        """Replace each W by W + scale B A; call it before every forward pass, since A and B change."""
        for module, parts in self._places:
            made = tuple(part if name is None else part + self._change(name) for part, name in parts)
            module.weight = made if isinstance(module.weight, tuple) else made[0]

    def merge(self) -> None:
        """Add the adapter to the model's own parameters for good, so that the model can be saved."""
        with torch.no_grad():
            for module, parts in self._places:
                for part, name in parts:
                    if name is not None:
                        part += self._change(name)
                module.weight = tuple(p for p, _ in parts) if isinstance(module.weight, tuple) else parts[0][0]

    def _change(self, name: str) -> Tensor:
        a, b = self.pairs[name]
        return (b @ a) * (self.alpha / self.rank)

    def save(self, folder: Path, base: str, task: str | None = None) -> None:
        """Write adapter_config.json and adapter_model.safetensors, and id2label.json, which peft ignores."""
        config = {
            "peft_type": "LORA",
            "task_type": task,
            "base_model_name_or_path": base,
            "r": self.rank,
            "lora_alpha": self.alpha if self.alpha % 1 else int(self.alpha),
            "lora_dropout": 0.0,
            "bias": "none",
            "fan_in_fan_out": False,
            "inference_mode": True,
            "target_modules": sorted({name.rpartition(".")[2] for name in self.pairs}),
            "modules_to_save": sorted({name.rpartition(".")[0] for name in self.whole}) or None,
        }
        tensors = {name: to_raw(p, "F32") for name, p in self.named_parameters()}
        try:
            with atomic_folder(folder, [LABELS]) as staged:
                (staged / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
                write_safetensors(staged / WEIGHTS, tensors)
                if self.whole:
                    text = json.dumps(self.model.config.id2label, ensure_ascii=False) + "\n"
                    (staged / LABELS).write_text(text, encoding="utf-8")
        except OSError as e:
            raise ZooError(f"cannot write to {folder}: {e.strerror or e}") from e
