"""A model of zoo and its counterpart of transformers on one card, with the same random weights."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Collection, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from zoo.registry import config_class, model_class
from zoo.runner import Runner, runner_for
from zoo.weights import RawTensor

from .measure import Bench

ELEMENTS = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}
FOREIGN = ("architectures", "model_type", "torch_dtype", "transformers_version")
BACKBONES = ("backbone", "backbone_kwargs", "use_pretrained_backbone")
POSITIONS = {"max_position_embeddings": 8192}
SMALLEST = {"hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 1, "vocab_size": 50, "head_dim": 8}


class ModelPair:
    """`ours` and `theirs` of a spec of parity.specs, in bfloat16, with the same random weights.

    head: "Model" for the bare body.  changes: fields of config.json.
    """

    def __init__(self, bench: Bench, spec: str, head: str | None = None, changes: Mapping[str, Any] | None = None):
        import transformers

        from parity.specs import SPECS, config_of

        transformers.utils.logging.set_verbosity_error()
        raw = {**config_of(SPECS[spec], "tiny" if bench.tiny else "full"), **(changes or {})}
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
        self.bench, self.config = bench, self.theirs.config
        self._load = partial(self.loaded, config_class(raw["model_type"]).from_dict(raw), head)
        self.has_sdpa = bool(getattr(self.theirs, "_supports_sdpa", False))
        self.bytes = sum(p.numel() * p.element_size() for p in self.theirs.parameters())

    @cached_property
    def ours(self) -> Any:
        """zoo's model, loaded when it is first asked for."""
        return self._load()

    @cached_property
    def runner(self) -> Any:
        return runner_for(self.ours)

    @property
    def has_graphs(self) -> bool:
        """True where there is a GPU."""
        return type(self.runner) is not Runner

    def loaded(self, config: Any, head: str | None = None, **options: Any) -> Any:
        """zoo's model of the same weights."""
        source, device = Tensors(self.theirs.state_dict()), f"torch:{self.bench.device}"
        return model_class(config, head).from_source(source, config, device=device, **options)

    def facts(self) -> dict[str, Any]:
        """The number of CUDA graphs, and True if one could not be recorded."""
        return {"graphs": len(self.runner), "graphs_failed": self.runner.failed} if self.has_graphs else {}

    def twin(self, attention: str | None = None) -> Any:
        """Another module of transformers over the same tensors, with an attention of its own."""
        shared: dict[int, Any] = {id(t): t for t in (*self.theirs.parameters(), *self.theirs.buffers())}
        twin = copy.deepcopy(self.theirs, shared)
        if attention is not None and self.has_sdpa:
            twin.set_attn_implementation(attention)
        return twin

    def exact(self) -> Any:
        """transformers in float32: the reference of both."""
        module = copy.deepcopy(self.theirs).float()
        if self.has_sdpa:
            module.set_attn_implementation("eager")
        return module


class LastPair:
    """The last row's pair, for the next one if that has the same: there is room for one on the card."""

    def __init__(self, bench: Bench):
        self.bench = bench
        self.key: tuple[Any, ...] | None = None

    def get(self, *key: Any) -> ModelPair:
        if key != self.key:
            self.key = self.pair = None
            self.bench.free()
            self.pair, self.key = ModelPair(self.bench, *key), key
        assert self.pair is not None
        return self.pair

    def llama(self, spec: str) -> ModelPair:
        return self.get(spec, None, SMALLEST if self.bench.tiny else POSITIONS)


class Tensors:
    """A module's tensors as a source that zoo reads weights from."""

    def __init__(self, state: Mapping[str, Any]):
        self.files: list[Path] = []
        self._state: dict[str, Any] = {}
        seen: set[tuple[int, int]] = set()
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
        return ELEMENTS.get(self._state[name].dtype, "I64")

    def read(self, name: str) -> RawTensor:
        x = self._state[name].detach().cpu()
        array = x.view(torch.int16).numpy().view(np.uint16) if x.dtype == torch.bfloat16 else x.numpy()
        return RawTensor(array, self.dtype(name))


def _config(raw: Mapping[str, Any]) -> Any:
    """transformers' config of a config.json."""
    import transformers

    raw = copy.deepcopy(dict(raw))  # transformers takes parts out of it
    fields = {name: value for name, value in raw.items() if name not in FOREIGN}
    if raw["model_type"] == "table-transformer":  # its backbone's config must be an object, and dilation a bool
        fields = {name: value for name, value in fields.items() if name not in BACKBONES}
        backbone = transformers.ResNetConfig(**{**raw["backbone_config"], "out_features": ["stage4"]})
        fields |= {"use_timm_backbone": False, "dilation": bool(raw.get("dilation")), "backbone_config": backbone}
    return transformers.AutoConfig.for_model(raw["model_type"], **fields)


def _fill(module: Any, device: str) -> None:
    """Random numbers on the scales of a trained model: no bias is 0, no norm the identity, nothing grows or fades."""
    generator = torch.Generator(device).manual_seed(0)
    for name, x in module.state_dict().items():
        if not x.is_floating_point():
            continue
        if name.endswith("running_var"):
            x.uniform_(0.5, 1.5, generator=generator)
        elif x.ndim == 1 and name.endswith("weight"):
            x.normal_(1, 0.1, generator=generator)
        else:
            spread = 0.05 if x.ndim == 1 or "embed" in name else 1 / math.sqrt(math.prod(x.shape[1:]))
            x.normal_(0, spread, generator=generator)


def compile_fixed(bench: Bench, function: Callable[..., Any]) -> Callable[..., Any]:
    """torch.compile with CUDA graphs, for these shapes alone."""
    options: dict[str, Any] = {"backend": "eager"} if bench.interpreted else {"mode": "reduce-overhead"}
    compiled = torch.compile(function, dynamic=False, **options)

    def call(*args: Any, **options: Any) -> Any:
        torch.compiler.cudagraph_mark_step_begin()
        return compiled(*args, **options)

    return call


def warmed(bench: Bench, call: Callable[[], Any]) -> Callable[[], Any]:
    """The call after it was compiled and recorded: our graphs are made at the second call, torch's at the third."""

    def warm() -> Any:
        for _ in range(1 if bench.interpreted else 3):
            call()
        return call()

    return warm
