"""Random checkpoints in the layout of real ones, made offline: weights, config, and tokenizer or image processor.

The content follows from spec, size and seed alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from zoo.errors import InputError, nearest
from zoo.weights import RawTensor
from zoo.weights.safetensors import write_safetensors
from zoo.weights.stacked_experts import stack, stacks_of

from .drawing import draw
from .specs import SPECS, Size, Spec, config_of, tensors
from .vocabularies import write_json


def build(spec_name: str, folder: Path, size: Size = "tiny", seed: int = 0) -> Path:
    """Write a checkpoint into `folder`, which is made if it is not there -> the folder."""
    if spec_name not in SPECS:
        raise InputError(f"there is no random checkpoint {spec_name!r}{nearest(spec_name, SPECS)}")
    spec = SPECS[spec_name]
    config = config_of(spec, size)
    folder.mkdir(parents=True, exist_ok=True)
    arrays = dict(_arrays(spec, config, seed))
    for name, experts in stacks_of(arrays).items() if spec.model_class.name_map.stacks_experts else ():
        arrays[name] = stack([[arrays.pop(part) for part in expert] for expert in experts])
    stored = {name: _to_raw(array, spec.dtype) for name, array in arrays.items()}
    _write_weights(folder, stored, spec.format)
    write_json(folder / "config.json", config)
    spec.write_files(folder, config)
    return folder


def parameters(spec: Spec, size: Size) -> int:
    """The number of values in the checkpoint's weights."""
    return sum(math.prod(role.shape) for role in tensors(spec, config_of(spec, size)).values())


def _arrays(spec: Spec, config: Mapping[str, Any], seed: int) -> Iterator[tuple[str, np.ndarray]]:
    tied, layout = spec.model_class.tied, spec.model_class.name_map
    found = tensors(spec, config)
    for name, role in found.items():
        # The two names of an output bias mean one parameter, wherever both are written.
        drawn = tied.get(name, name) if name.endswith(".bias") else name
        array = draw(role, drawn, seed)
        array = np.ascontiguousarray(array.T) if layout.transposes(name, "F32") else array
        yield spec.file_name(name), spec.array_in_file(name, array, config)
    yield from spec.unread_tensors(config, found)


def _to_raw(array: np.ndarray, dtype: str) -> RawTensor:
    if array.dtype == np.int64:
        return RawTensor(array, "I64")
    if dtype == "BF16":
        bits = array.view(np.uint32)
        return RawTensor(((bits + (0x7FFF + (bits >> 16 & 1))) >> 16).astype(np.uint16), dtype)
    return RawTensor(array.astype(np.float16 if dtype == "F16" else np.float32, copy=False), dtype)


def _write_weights(folder: Path, stored: dict[str, RawTensor], form: str) -> None:
    if form == "safetensors":
        write_safetensors(folder / "model.safetensors", stored)
    elif form == "sharded":
        names = list(stored)
        shards = [names[i::3] for i in range(3)]
        files = [f"model-{i + 1:05d}-of-{len(shards):05d}.safetensors" for i in range(len(shards))]
        for file, part in zip(files, shards, strict=True):
            write_safetensors(folder / file, {name: stored[name] for name in part})
        total = sum(one.array.nbytes for one in stored.values())
        places = {name: file for file, part in zip(files, shards, strict=True) for name in part}
        write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": places})
    else:
        import torch

        state = {name: torch.from_numpy(one.array) for name, one in stored.items()}
        torch.save(state, folder / "pytorch_model.bin", _use_new_zipfile_serialization=form == "bin")
