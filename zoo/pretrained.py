"""Pretrained: a model that comes from a checkpoint, and can be written back as one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar, cast

from . import ops
from .config import Config
from .errors import UnsupportedError
from .nn import Module, leaves
from .weights import Layout, Named, Part, Random, Report, Source, Weights

M = TypeVar("M", bound="Pretrained")
DTYPES = ("float32", "float64", "float16", "bfloat16")  # the 16-bit ones on torch


class Pretrained(Module):
    """The base of every class that a checkpoint's `architectures` can name.

    A subclass has a constructor `(w: Weights, cfg)` that pulls its weights, and says how its family names them.
    """

    config_class: ClassVar[type[Config]]
    layout: ClassVar[Layout]
    is_body: ClassVar[bool] = False  # a bare model, whose tensors have no prefix
    tied: ClassVar[Mapping[str, str]] = {}  # canonical name -> the one that it shares its array with
    keeps_halves: ClassVar[bool] = False  # whether, on NumPy, matrices of 16-bit numbers are widened only in use
    depends_on_length = False  # whether the length of a text, padding too, changes what its tokens give

    config: Any
    report: Report
    _parts: dict[str, list[Part]]  # path of a parameter -> the checkpoint's tensors that it was made of
    _copies: dict[str, list[str]]  # name of a tensor -> others that the checkpoint holds with the same content

    def __init__(self, w: Weights, cfg: Any):
        raise NotImplementedError

    @classmethod
    def from_source(
        cls: type[M],
        source: Source | Random,
        config: Config,
        *,
        dtype: str | None = None,
        device: str | None = None,
    ) -> M:
        """The model with weights from `source`.  device None or "cpu": NumPy; "cuda", "torch:cpu", ...: torch."""
        if dtype is not None and not isinstance(dtype, str):
            raise UnsupportedError(f"dtype is {dtype!r}, expected a name: {', '.join(map(repr, DTYPES))}")
        backend, device = placement(device)
        # An untied projection still shares its bias with the head where the file has only one of the two.
        tied = {t: o for t, o in cls.tied.items() if config.tied or t.endswith(".bias")}
        named = Named(source, cls.layout, is_body=cls.is_body, tied=tied)
        if backend is not ops.on_numpy and dtype is None:
            dtype = _one_dtype(named)
        keeps = cls.keeps_halves and backend is ops.on_numpy and dtype is None
        w = Weights(named, backend, dtype=dtype, device=device, sizes=config.sizes(), keeps_halves=keeps)
        model = cls(w, config)
        model.report = w.report()
        model._parts = {path: w.reads.parts[id(array)] for path, array in leaves(model)}
        model._copies = named.copies
        return model

    @classmethod
    def from_config(cls: type[M], config: Config, seed: int = 0, **options: Any) -> M:
        """The model with random weights: for tests and benchmarks."""
        return cls.from_source(Random(seed), config, **options)

    @classmethod
    def from_pretrained(cls: type[M], name_or_folder: str | os.PathLike[str], **options: Any) -> M:
        """The model with the weights of a hub repository or a folder; options as for `zoo.load_model`."""
        from .checkpoint.load import load_model

        return cast(M, load_model(name_or_folder, model_class=cls, **options))


def _one_dtype(named: Named) -> str:
    """The element type of a checkpoint, float32 where it has several: torch multiplies no two kinds."""
    names = {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}
    found = {named.dtype(name) for name in named.names()} & names.keys()
    return names[found.pop()] if len(found) == 1 else "float32"


def placement(device: str | None) -> tuple[Any, str]:
    """The backend module and the device's name there, of a device that a user named."""
    if device is None or str(device) in ("cpu", "numpy"):
        return ops.on_numpy, "cpu"
    device = str(device)
    try:
        import torch
    except ImportError:
        raise UnsupportedError(
            f"device {device!r} needs torch, which is not installed: install zoo with its extra 'gpu'"
        ) from None
    from .ops import on_torch

    name = device.removeprefix("torch:") if device != "torch" else "cpu"
    try:
        found = torch.device(name)
    except RuntimeError:
        found = None
    if found is None or found.type not in ("cpu", "cuda"):
        raise UnsupportedError(f"device {device!r} is not supported, expected 'cpu', 'cuda', 'cuda:1' or 'torch:cpu'")
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise UnsupportedError(
            f"device {device!r}: torch {torch.__version__} finds {torch.cuda.device_count()} CUDA GPUs; "
            "'cpu' works everywhere"
        )
    return on_torch, name
