"""Random checkpoints in the layout of real ones, made offline: weights with their strays, config, and what goes
with them: tokenizer files, or what becomes of images.

What a checkpoint holds follows from spec, size and seed alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from zoo.errors import InputError, nearest
from zoo.registry import FAMILIES
from zoo.weights import RawTensor
from zoo.weights.safetensors import write_safetensors

from .drawing import draw
from .specs import (
    SPECS,
    Size,
    Spec,
    TableSpec,
    TextSpec,
    TrOCRSpec,
    VisionSpec,
    config_of,
    table,
    tensors,
    trocr,
    vision,
)
from .vocabularies import WRITERS


def build(spec_name: str, folder: Path, size: Size = "tiny", seed: int = 0) -> Path:
    """Write a checkpoint into `folder`, which is made if it is not there -> the folder."""
    if spec_name not in SPECS:
        raise InputError(f"there is no random checkpoint {spec_name!r}{nearest(spec_name, SPECS)}")
    spec = SPECS[spec_name]
    config = config_of(spec, size)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: _stored(array, spec.dtype) for name, array in _arrays(spec, config, seed)}
    _write_weights(folder, tensors, spec.format)
    _write_json(folder / "config.json", config)
    if isinstance(spec, VisionSpec):
        _write_json(folder / "preprocessor_config.json", vision.processor_of(spec, config))
    elif isinstance(spec, TrOCRSpec):
        decoder = config.get("decoder", config)
        WRITERS[spec.tokenizer](folder, decoder["vocab_size"], decoder["max_position_embeddings"])
        _write_json(folder / "generation_config.json", trocr.GENERATION)
        if spec.processor:
            _write_json(folder / "preprocessor_config.json", trocr.processor_of(spec, config))
    elif isinstance(spec, TableSpec):
        _write_json(folder / "preprocessor_config.json", table.processor_of(spec, config))
    elif isinstance(spec, TextSpec):
        usable = config["max_position_embeddings"] - (0 if spec.model_type == "bert" else config["pad_token_id"] + 1)
        WRITERS[spec.tokenizer](folder, config["vocab_size"], usable)
        if spec.pooling:
            _write_pooling(folder, spec.pooling, config["hidden_size"])
    return folder


def parameters(spec: Spec, size: Size) -> int:
    """How many numbers the checkpoint's weights are."""
    return sum(math.prod(role.shape) for role in tensors(spec, config_of(spec, size)).values())


def _arrays(spec: Spec, config: Mapping[str, Any], seed: int) -> Iterator[tuple[str, np.ndarray]]:
    for name, role in tensors(spec, config).items():
        # The two names of an output bias mean one parameter, wherever both are written.
        array = draw(role, name.replace("predictions.decoder.bias", "predictions.bias"), seed)
        if isinstance(spec, TextSpec) and spec.gamma_beta:
            name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        yield name, array
        if name.endswith("running_var") and not isinstance(spec, TableSpec):  # whose norms are frozen
            yield name.replace("running_var", "num_batches_tracked"), np.array(160000)
    if isinstance(spec, TextSpec) and spec.position_ids:
        yield f"{_prefix(spec)}embeddings.position_ids", np.arange(config["max_position_embeddings"])[None]
    if isinstance(spec, TrOCRSpec) and spec.float_tensor:
        yield "decoder.model.decoder.embed_positions._float_tensor", np.zeros(1, np.float32)
    if isinstance(spec, TableSpec):
        yield from ((name, np.array(0)) for name in table.counters(spec))
    if isinstance(spec, VisionSpec):
        for name in vision.indices(spec, config):
            yield _prefix(spec) + name, _relative_index(*vision.grid_of(config))


def _prefix(spec: Spec) -> str:
    """What a checkpoint with a head has before the names of its body's tensors."""
    cls = FAMILIES[spec.model_type].load(spec.architecture.removeprefix(FAMILIES[spec.model_type].prefix))
    return "" if cls.is_body else cls.layout.prefix + "."


def _relative_index(h: int, w: int) -> np.ndarray:
    """(h w + 1, h w + 1): for each pair of patches the row of the bias table; the last three are the class token's."""
    y, x = (axis.ravel() for axis in np.mgrid[:h, :w])
    down, right = y[:, None] - y + h - 1, x[:, None] - x + w - 1
    rows = (2 * h - 1) * (2 * w - 1)
    index = np.full((h * w + 1, h * w + 1), rows + 1)
    index[1:, 1:] = down * (2 * w - 1) + right
    index[0] = rows
    index[0, 0] = rows + 2
    return index


def _stored(array: np.ndarray, dtype: str) -> RawTensor:
    if array.dtype == np.int64:
        return RawTensor(array, "I64")
    if dtype == "BF16":
        bits = array.view(np.uint32)
        return RawTensor(((bits + (0x7FFF + (bits >> 16 & 1))) >> 16).astype(np.uint16), dtype)
    return RawTensor(array.astype(np.float16 if dtype == "F16" else np.float32, copy=False), dtype)


def _write_weights(folder: Path, tensors: dict[str, RawTensor], form: str) -> None:
    if form == "safetensors":
        write_safetensors(folder / "model.safetensors", tensors)
    elif form == "sharded":
        names = list(tensors)
        shards = [names[i::3] for i in range(3)]
        files = [f"model-{i + 1:05d}-of-{len(shards):05d}.safetensors" for i in range(len(shards))]
        for file, part in zip(files, shards, strict=True):
            write_safetensors(folder / file, {name: tensors[name] for name in part})
        total = sum(stored.array.nbytes for stored in tensors.values())
        places = {name: file for file, part in zip(files, shards, strict=True) for name in part}
        index = {"metadata": {"total_size": total}, "weight_map": places}
        _write_json(folder / "model.safetensors.index.json", index)
    else:
        import torch

        state = {name: torch.from_numpy(stored.array) for name, stored in tensors.items()}
        torch.save(state, folder / "pytorch_model.bin", _use_new_zipfile_serialization=form == "bin")


def _write_pooling(folder: Path, pooling: str, size: int) -> None:
    """The files by which sentence-transformers finds its modules."""
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds)
    ]
    _write_json(folder / "modules.json", modules)
    _write_json(folder / "sentence_bert_config.json", {"max_seq_length": 256, "do_lower_case": False})
    (folder / "1_Pooling").mkdir(exist_ok=True)
    modes = {
        "pooling_mode_cls_token": pooling == "cls",
        "pooling_mode_mean_tokens": pooling == "mean",
        "pooling_mode_max_tokens": False,
        "pooling_mode_mean_sqrt_len_tokens": False,
    }
    _write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": size, **modes})


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")
