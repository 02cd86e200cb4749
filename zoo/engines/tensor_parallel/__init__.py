"""Tensor parallelism: one Llama, Mistral or Qwen over processes of torch.distributed, which all run the same program.

    torchrun --nproc-per-node 2 program.py

Each process reads its slices of the weights alone.  All must make the same calls with the same arguments, in one order.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
import torch.distributed as dist

from ...devices import placement
from ...errors import UnsupportedError
from ...generate import GenerationConfig
from ...hub import find
from ...options import DEFAULTS, MODEL, Options
from ...pretrained import Pretrained
from ...registry import model_class
from ...runner import Runner
from ...tasks.generate import Generate
from ...text.tokenizer import Tokenizer
from ...warning import warn
from ...weights.quantised_source import as_quantised_source
from ...weights.slices import Slices, Split
from .layers import SplitEmbeddings, SplitHead, SumOfParts

NOT_TAKEN = ("weights", "trainable", "new_head", "num_labels", "id2label", "adapter")


class RankRunner(Runner):
    """Calls a model directly, since no graph can wait for other processes."""

    has_weights = False  # but for a part of each


class RankGenerate(Generate):
    """`Generate` in every process: a seed that is not given is the first process's."""

    def _merge_options(self, options: Mapping[str, Any]) -> GenerationConfig:
        config = super()._merge_options(options)
        if not config.do_sample or config.seed is not None:
            return config
        seed: Any = torch.randint(1 << 62, (1,), device=self.model.like.device)  # type: ignore[attr-defined]
        dist.broadcast(seed, 0)
        return config.replace(seed=int(seed))


def load(name_or_folder: str | os.PathLike[str], *, device: str | None = None, **options: Any) -> RankGenerate:
    """The task `generate`, as `zoo.load` returns it, on this process's part of the model; arguments as `load_model`."""
    checkpoint, model = _load(name_or_folder, device, options)
    tokenizer, generation = (
        Tokenizer.from_folder(checkpoint.contents),
        GenerationConfig.from_folder(checkpoint.contents),
    )
    return RankGenerate(model, tokenizer, checkpoint, generation)


def load_model(name_or_folder: str | os.PathLike[str], *, device: str | None = None, **options: Any) -> Pretrained:
    """This process's part of a decoder, which gives the logits of the whole; options of `zoo.load_model`.

    device: of torch, by default the GPU of LOCAL_RANK where there are some, else "torch:cpu".  The default process
    group is used, or made as torchrun's variables say.
    """
    return _load(name_or_folder, device, options)[1]


def _load(name: str | os.PathLike[str], device: str | None, more: Mapping[str, Any]) -> tuple[Any, Pretrained]:
    if device is None:
        device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}" if torch.cuda.is_available() else "torch:cpu"
    options = DEFAULTS.update({**more, "device": device}, MODEL)
    for given in NOT_TAKEN:
        if getattr(options, given) != getattr(DEFAULTS, given):
            raise UnsupportedError(f"{given} is not for a model that processes share: leave it out")
    where = placement(device)
    if where.is_numpy:
        raise UnsupportedError(f"processes cannot share a model on {device!r}: expected 'torch:cpu', 'cuda:0', ...")
    checkpoint = find(name, options)
    config = checkpoint.config
    cls: Any = model_class(config)
    if not cls.__name__.endswith("ForCausalLM"):
        raise UnsupportedError(f"{checkpoint.name} is a {cls.__name__}: processes can share only language models")
    if not dist.is_initialized():
        if "WORLD_SIZE" not in os.environ:
            raise UnsupportedError("there is no group of processes: start the program by torchrun --nproc-per-node N")
        Split(config, int(os.environ["WORLD_SIZE"]))  # an error before the processes wait for each other
        dist.init_process_group("nccl" if where.device.startswith("cuda") else "gloo")
    return checkpoint, _part_of(cls, checkpoint, config, options)


def _part_of(cls: Any, checkpoint: Any, config: Any, options: Options) -> Pretrained:
    """This rank's part of a model, with layers that put the parts' results together."""
    rank, ranks, group = dist.get_rank(), dist.get_world_size(), dist.group.WORLD
    split, source = Split(config, ranks), checkpoint.open_weights()
    if as_quantised_source(source, config.extra) is not source:
        raise UnsupportedError(f"{checkpoint.name} is quantised: only plain numbers can be split over processes")
    model = cls.from_source(Slices(source, split, rank), split.config_of(rank), options)
    if model.report.unused:
        warn(f"{checkpoint.name} has tensors that {model.architecture} does not know: {', '.join(model.report.unused)}")
    widths = [split.words(i).stop - split.words(i).start for i in range(ranks)]
    base = model.base_model
    base.embeddings = SplitEmbeddings(base.embeddings, split.words(rank), group)
    for layer in base.layers:
        layer.attention.out = SumOfParts(layer.attention.out, group)
        layer.mlp.down = SumOfParts(layer.mlp.down, group)
    model.head = SplitHead(model.head, widths, group)
    model.config = base.config = replace(model.config, vocab_size=config.vocab_size)
    model.runner = base.runner = RankRunner()
    return model
