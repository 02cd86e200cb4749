"""A model with its tokenizer as a GGUF file like that of llama.cpp's converter, written with the `gguf` package.

The tokenizer is in it twice: as llama.cpp's tokens, and as `tokenizer.huggingface.json`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...errors import UnsupportedError, ZooError, nearest
from ...files.atomic_write import atomic_write
from ...optional import import_optional
from ...quant import QUANT_TYPES, QuantRows, QuantTensor
from ...weights.gguf.names import NAMES, Names
from ...weights.gguf.source import rows_of_neighbours
from . import k_blocks
from .vocabulary import add_tokenizer

if TYPE_CHECKING:
    from ...tasks.base import TextTask

# The types that can be written -> llama.cpp's number for a file that is mostly of the type.
TYPES = {"f32": 0, "f16": 1, "bf16": 32, "q8_0": 7, "q5_1": 9, "q5_0": 8, "q4_1": 3, "q4_0": 2}
TYPES |= {"q6_k": 18, "q5_k": 16, "q4_k": 14}
# llama.cpp's type for rows that are not whole blocks of 256.
SUBSTITUTE_TYPES = {"q6_k": "q8_0", "q5_k": "q5_1", "q4_k": "q5_0"}
ARCHITECTURES = (
    "LlamaForCausalLM",
    "Qwen2ForCausalLM",
    "Qwen3ForCausalLM",
    "BertModel",
    "BertForSequenceClassification",
)
POOLINGS = {"mean": 1, "cls": 2, "lasttoken": 3}


class Tensor(NamedTuple):
    """A tensor under llama.cpp's name.  rows: a matrix (E, D), or another array, which stays float32."""

    name: str
    rows: QuantRows | np.ndarray
    heads: int  # the number of heads whose rows are reordered for llama.cpp, or 0


def export(task: TextTask, path: str | os.PathLike[str], kind: str = "q8_0") -> Path:
    """Write a task's model and tokenizer.  kind: one of TYPES, the type of matrices whose rows are whole blocks.

    Other matrices get the type in INSTEAD or float16, as in llama.cpp; vectors, positions and segments stay float32.  A
    matrix of this type is copied bit by bit.  UnsupportedError: GGUF cannot describe the model.
    """
    gguf = package()
    path, kind = Path(path).expanduser(), kind.lower()
    if kind not in TYPES:
        raise UnsupportedError(f"type {kind!r} is not one of {', '.join(TYPES)}{nearest(kind, TYPES)}")
    name, family = task.model.architecture, task.config.model_type
    if name not in ARCHITECTURES:
        raise UnsupportedError(f"{name} cannot be written as GGUF, only {', '.join(ARCHITECTURES)} can")
    writer = gguf.GGUFWriter(None, family)
    writer.add_file_type(TYPES[kind])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    _add_config(writer, task)
    add_tokenizer(writer, task)
    tensors = [*_factors(task), *_tensors(task, NAMES[family])]
    stored = [_stored_as(gguf, tensor, kind) for tensor in tensors]
    for tensor, quantised in zip(tensors, stored, strict=True):
        shape = tuple(tensor.rows.shape)
        writer.add_tensor_info(tensor.name, *_info(gguf, shape, quantised))
    try:
        with atomic_write(path) as part:
            writer.write_header_to_file(part)
            writer.write_kv_data_to_file()
            writer.write_ti_data_to_file()
            for tensor, quantised in zip(tensors, stored, strict=True):  # only one is in memory at a time
                writer.write_tensor_data(_data(gguf, tensor, quantised))
            writer.close()
    except OSError as e:
        raise ZooError(f"cannot write {path}: {e.strerror or e}") from e
    return path


def package() -> Any:
    """The gguf package."""
    return import_optional("gguf", "writing GGUF", "gguf")


def _add_config(writer: Any, task: TextTask) -> None:
    cfg = task.config
    name = task.checkpoint.name if task.checkpoint else type(task.model).__name__
    writer.add_name(Path(name).name)
    writer.add_context_length(task.max_tokens if cfg.model_type == "bert" else cfg.max_position_embeddings)
    writer.add_embedding_length(cfg.hidden_size)
    writer.add_block_count(cfg.num_hidden_layers)
    writer.add_feed_forward_length(cfg.intermediate_size)
    writer.add_head_count(cfg.num_attention_heads)
    writer.add_vocab_size(cfg.vocab_size)
    wanted = "gelu" if cfg.model_type == "bert" else "silu"
    if cfg.hidden_act != wanted:
        raise UnsupportedError(
            f"hidden_act = {cfg.hidden_act!r} cannot be written: a {cfg.model_type} in GGUF always has {wanted!r}"
        )
    if cfg.model_type == "bert":
        _add_bert(writer, task)
    else:
        _add_llama(writer, cfg)


def _add_llama(writer: Any, cfg: Any) -> None:
    if any(cfg.window(layer) is not None for layer in range(cfg.num_hidden_layers)):
        raise UnsupportedError(f"a {cfg.model_type} whose attention is within a window cannot be written as GGUF")
    writer.add_head_count_kv(cfg.key_heads)
    writer.add_key_length(cfg.head_size)
    writer.add_value_length(cfg.head_size)
    writer.add_rope_dimension_count(cfg.head_size)
    writer.add_layer_norm_rms_eps(cfg.rms_norm_eps)
    rope = cfg.rope()
    given = dict(rope.numbers)
    writer.add_rope_freq_base(rope.theta)
    if rope.kind in ("linear", "yarn"):
        writer.add_string(f"{cfg.model_type}.rope.scaling.type", rope.kind)
        writer.add_rope_scaling_factor(given["factor"])
        if rope.kind == "yarn":
            writer.add_rope_scaling_orig_ctx_len(rope.context)
            for name in ("beta_fast", "beta_slow"):
                if given.get(name):
                    writer.add_float32(f"{cfg.model_type}.rope.scaling.yarn_{name}", given[name])
            if given.keys() - {"factor", "beta_fast", "beta_slow", "truncate"} or given.get("truncate", 1.0) != 1:
                raise UnsupportedError(
                    f"rotary positions of kind yarn with {', '.join(given)} cannot be written as GGUF"
                )
    elif rope.kind not in ("default", "llama3"):
        raise UnsupportedError(f"rotary positions of kind {rope.kind!r} cannot be written as GGUF")


def _add_bert(writer: Any, task: TextTask) -> None:
    cfg = task.config
    if cfg.is_decoder:
        raise UnsupportedError("a BERT with is_decoder = True cannot be written as GGUF")
    writer.add_layer_norm_eps(cfg.layer_norm_eps)
    writer.add_causal_attention(False)
    if type(task.model).__name__ == "BertForSequenceClassification":
        writer.add_uint32("bert.pooling_type", 4)
        writer.add_array("bert.classifier.output_labels", list(cfg.id2label.values()))
        return
    encoder = getattr(task, "encoder", None)
    if encoder is None:
        writer.add_uint32("bert.pooling_type", 0)
        return
    steps = [getattr(step, "__name__", "dense") for step in encoder.steps]
    pooling = ", ".join(encoder.pooling)
    if encoder.truncate_dim is not None:
        steps.append(f"truncate_dim = {encoder.truncate_dim}")
    if steps != ["normalize"] or pooling not in POOLINGS or encoder.prompts:
        raise UnsupportedError(
            f"a sentence encoder with the pooling {pooling}, the steps {', '.join(steps) or 'none'} and "
            f"{len(encoder.prompts)} prompts cannot be written as GGUF, only one of {', '.join(POOLINGS)}, normalised"
        )
    writer.add_uint32("bert.pooling_type", POOLINGS[pooling])


def _factors(task: TextTask) -> Iterator[Tensor]:
    """The factors by which Llama 3's scaling divides the rotary frequencies."""
    if task.config.model_type != "llama" or (rope := task.config.rope()).kind != "llama3":
        return
    from dataclasses import replace

    plain = np.array(replace(rope, kind="default", numbers=()).frequencies(0))
    yield Tensor("rope_freqs.weight", (plain / np.array(rope.frequencies(0))).astype(np.float32), 0)


def _tensors(task: TextTask, names: Names) -> Iterator[Tensor]:
    from ...saving import rows_of

    model, cfg = task.model, task.config
    layout, legacy = model.name_map, {old: new for new, old in model.report.renamed.items()}
    done: set[str] = set()
    for _, array, parts in model.leaves_with_parts():
        for part, rows in rows_of(array, parts):
            name = legacy.get(part.name, part.name)
            if name.partition(".")[0] in layout.base:
                name = f"{layout.prefix}.{name}"
            if name in done or (type(model).__name__ == "BertModel" and ".pooler." in name):
                continue
            done.add(name)
            theirs = names.to_gguf(name)
            if theirs is None:
                raise UnsupportedError(f"the tensor {part.name!r} has no name in GGUF")
            heads = 0
            if names.is_rotated(theirs):
                heads = cfg.num_attention_heads if "attn_q" in theirs else cfg.key_heads
            yield Tensor(theirs, _to_arrays(rows), heads)


def _to_arrays(rows: Any) -> QuantRows | np.ndarray:
    """A tensor as NumPy arrays: a matrix as rows, anything else in float32."""
    if isinstance(rows, QuantTensor):
        (rows,) = rows.parts
    if isinstance(rows, QuantRows):
        return rows.map(np.asarray)
    array = np.asarray(rows)
    kind = {"float16": "F16", "float64": "F64"}.get(str(array.dtype), "F32")
    return QuantRows(QUANT_TYPES[kind], array.shape[1], (array,)) if array.ndim == 2 else array.astype(np.float32)


def _stored_as(gguf: Any, tensor: Tensor, kind: str) -> Any:
    wanted = gguf.GGMLQuantizationType[kind.upper()]
    if not isinstance(tensor.rows, QuantRows) or tensor.name.startswith(("position_embd", "token_types")):
        return gguf.GGMLQuantizationType.F32
    if tensor.rows.columns % gguf.GGML_QUANT_SIZES[wanted][0] == 0:
        return wanted
    return (
        _stored_as(gguf, tensor, SUBSTITUTE_TYPES[kind]) if kind in SUBSTITUTE_TYPES else gguf.GGMLQuantizationType.F16
    )


def _info(gguf: Any, shape: tuple[int, ...], quantised: Any) -> tuple[Any, ...]:
    """The arguments of `add_tensor_info` after the name."""
    block, size = gguf.GGML_QUANT_SIZES[quantised]
    count = int(np.prod(shape)) // block * size
    if quantised in (gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16):
        return shape, np.dtype(np.float32 if quantised == gguf.GGMLQuantizationType.F32 else np.float16), count, None
    return (*shape[:-1], shape[-1] // block * size), np.dtype(np.uint8), count, quantised


def _data(gguf: Any, tensor: Tensor, quantised: Any) -> np.ndarray:
    rows = tensor.rows
    if tensor.heads:
        rows = rows[rows_of_neighbours(len(rows), len(rows) // tensor.heads)]
    if not isinstance(rows, QuantRows):
        return np.ascontiguousarray(rows, np.float32)
    if rows.kind.name == quantised.name and rows.width == rows.columns:
        return np.ascontiguousarray(rows.in_order().arrays[0])
    wide = np.ascontiguousarray(rows.dequantise(), np.float32)
    if quantised.name.lower() in SUBSTITUTE_TYPES:  # the package only reads these
        return k_blocks.encode(wide, quantised.name)
    with np.errstate(over="ignore"):
        found = gguf.quants.quantize(wide, quantised)
    if quantised.name == "F16" and np.isinf(found).any():
        raise ZooError(f"{tensor.name} has values too large for float16: choose the type bf16 or f32")
    return found
