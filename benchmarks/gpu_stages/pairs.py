"""One architecture on both sides: transformers and zoo, with the same random weights, which are made on the device."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from ..gpu_measure import Bench

ELEMENTS = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}
FOREIGN = ("architectures", "model_type", "torch_dtype", "transformers_version")
BACKBONES = ("backbone", "backbone_kwargs", "use_pretrained_backbone")


class Tensors:
    """A module's tensors as what zoo reads weights from; they pass through the host, once."""

    def __init__(self, state: Mapping[str, Any]):
        self.files: list[Path] = []
        seen: set[tuple[int, int]] = set()
        self._state = {}
        for name, tensor in state.items():  # tied tensors have two names, and checkpoints write the first
            place = (tensor.data_ptr(), tensor.numel())
            if place not in seen:
                seen.add(place)
                self._state[name] = tensor

    def names(self) -> Collection[str]:
        return self._state.keys()

    def __contains__(self, name: object) -> bool:
        return name in self._state

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._state[name].shape)

    def dtype(self, name: str) -> str:
        kind = str(self._state[name].dtype).removeprefix("torch.")
        return ELEMENTS.get(kind, "I64")

    def read(self, name: str) -> Any:
        import numpy as np
        import torch

        from zoo.weights import RawTensor

        x = self._state[name].detach().cpu()
        if x.dtype == torch.bfloat16:
            return RawTensor(x.view(torch.int16).numpy().view(np.uint16), "BF16")
        return RawTensor(x.numpy(), self.dtype(name))


class Pair:
    """ours, theirs (sdpa where transformers has it) of a spec of `parity.specs`, in bfloat16, with random weights.

    head: "Model" for the bare body.  changes: fields of config.json.
    """

    def __init__(self, bench: Bench, spec: str, head: str | None = None, changes: Mapping[str, Any] | None = None):
        import torch
        import transformers

        from parity.specs import SPECS, config_of
        from zoo.registry import config_class, model_class
        from zoo.runner import Runner, runner_for

        transformers.utils.logging.set_verbosity_error()
        raw = config_of(SPECS[spec], "tiny" if bench.tiny else "full")
        raw |= changes or {}
        before = torch.get_default_dtype()
        try:
            torch.set_default_dtype(torch.bfloat16)
            with torch.device(bench.device):
                config = _config(raw)
                name = raw["architectures"][0] if head is None else type(config).__name__.removesuffix("Config") + head
                self.theirs: Any = getattr(transformers, name)(config).eval()
        finally:
            torch.set_default_dtype(before)
        _fill(self.theirs, bench.device)
        ours = config_class(raw["model_type"]).from_dict(raw)
        source = Tensors(self.theirs.state_dict())
        self.ours: Any = model_class(ours, head).from_source(source, ours, device=f"torch:{bench.device}")
        self.runner: Any = runner_for(self.ours)
        self.has_graphs = type(self.runner) is not Runner  # where there is a GPU
        self.config = self.theirs.config
        self.bytes = sum(p.numel() * p.element_size() for p in self.theirs.parameters())

    def facts(self) -> dict[str, Any]:
        """What a row says about graphs: how many there are by then, and whether one could not be made."""
        return {"graphs": len(self.runner), "graphs_failed": self.runner.failed} if self.has_graphs else {}

    def twin(self, attention: str | None = None) -> Any:
        """Another module of transformers over the same tensors, so that each way of attention has one of its own."""
        shared: dict[int, Any] = {id(t): t for t in (*self.theirs.parameters(), *self.theirs.buffers())}
        twin = copy.deepcopy(self.theirs, shared)
        if attention is not None:
            twin.set_attn_implementation(attention)
        return twin

    def exact(self) -> Any:
        """transformers in float32: the reference of both."""
        module = copy.deepcopy(self.theirs).float()
        if self.has_sdpa:
            module.set_attn_implementation("eager")
        return module

    @property
    def has_sdpa(self) -> bool:
        return bool(getattr(self.theirs, "_supports_sdpa", False))


def _config(raw: Mapping[str, Any]) -> Any:
    """transformers' config of a config.json."""
    import transformers

    raw = copy.deepcopy(dict(raw))  # which takes parts out of what it is given
    fields = {name: value for name, value in raw.items() if name not in FOREIGN}
    if raw["model_type"] == "table-transformer":  # its backbone's config must be an object, and dilation a bool
        fields = {name: value for name, value in fields.items() if name not in BACKBONES}
        backbone = transformers.ResNetConfig(**{**raw["backbone_config"], "out_features": ["stage4"]})
        fields |= {"use_timm_backbone": False, "dilation": bool(raw.get("dilation")), "backbone_config": backbone}
    return transformers.AutoConfig.for_model(raw["model_type"], **fields)


def _fill(module: Any, device: str) -> None:
    """Random numbers on the scales of a trained model: no bias is 0, no norm the identity, nothing grows or fades."""
    import torch

    generator = torch.Generator(device).manual_seed(0)
    for name, x in module.state_dict().items():
        if not x.is_floating_point():
            continue
        if name.endswith("running_var"):
            x.uniform_(0.5, 1.5, generator=generator)
        elif x.ndim == 1 and name.endswith("weight"):
            x.normal_(1, 0.1, generator=generator)
        elif x.ndim == 1 or "embed" in name:
            x.normal_(0, 0.05, generator=generator)
        else:
            x.normal_(0, 1 / math.sqrt(math.prod(x.shape[1:])), generator=generator)


class Compiled:
    """torch.compile with CUDA graphs, for these shapes alone.  The first call is made four times.

    seconds: what compiling and recording took, None before the first call.
    """

    def __init__(self, bench: Bench, function: Callable[..., Any]):
        import torch

        self._bench = bench
        self.seconds: float | None = None
        options: dict[str, Any] = {"backend": "eager"} if bench.interpreted else {"mode": "reduce-overhead"}
        self._compiled = torch.compile(function, dynamic=False, **options)

    def __call__(self, *args: Any, **options: Any) -> Any:
        if self.seconds is None:  # compiles, warms up and records
            begin = time.monotonic()
            for _ in range(1 if self._bench.interpreted else 3):
                self._run(args, options)
            self._bench.synchronize()
            self.seconds = time.monotonic() - begin
        return self._run(args, options)

    def _run(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        import torch

        torch.compiler.cudagraph_mark_step_begin()
        return self._compiled(*args, **options)
