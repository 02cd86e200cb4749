"""From a model to the folder of a checkpoint."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .checkpoint.conflicts import (
    CONFIG,
    PACKED_WEIGHTS,
    WEIGHTS,
    refuse_other_kind,
    refuse_other_weights,
    refuse_package,
)
from .errors import UnsupportedError, ZooError
from .files.atomic_folder import atomic_folder
from .nn import leaves
from .ops import backend
from .pretrained import Pretrained
from .quant import QuantRows, QuantTensor
from .typing import Array
from .weights.packed_names import QUANT_METHOD, stored_fields
from .weights.safetensors import write_tensors
from .weights.stacked_experts import stack, stacks_of

if TYPE_CHECKING:
    from .weights import TensorPart


def save_model(model: Pretrained, folder: str | os.PathLike[str], *, dtype: str | None = None) -> Path:
    """Write config.json and model.safetensors, with the names and the element types of the checkpoint that was read.

    dtype: another element type for all tensors ("float32", "float16", "bfloat16").  Without one, quantised matrices
    stay quantised, in zoo's own layout (see `zoo.weights.packed_names`).  The folder changes at once, or not at all.
    ZooError where the folder has other weights, or a checkpoint of another class of model.
    """
    refuse_other_kind(Path(folder).expanduser(), _saved_config(model, dtype))
    return write_model(model, folder, dtype=dtype)


def write_model(
    model: Pretrained,
    folder: str | os.PathLike[str],
    *,
    dtype: str | None = None,
    beside: Callable[[Path], object] = lambda path: None,
) -> Path:
    """`save_model` without its check of the folder's other files.  beside(folder): writes more files."""
    if not model.runner.has_weights:
        raise UnsupportedError(
            f"this {model.architecture} has not all of its weights here: copy its checkpoint instead"
        )
    folder = Path(folder).expanduser()
    types = {None: None, "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float64": "F64"}
    if dtype not in types:
        raise UnsupportedError(f"dtype {dtype!r} is not supported, expected one of {', '.join(t for t in types if t)}")
    refuse_package(folder)
    name = PACKED_WEIGHTS if _stays_packed(model, dtype) else WEIGHTS
    refuse_other_weights(folder, name)
    tensors = _tensors(model, types[dtype])
    text = json.dumps(_saved_config(model, dtype), indent=2, ensure_ascii=False) + "\n"
    header = {name: (tensor.dtype, tensor.shape) for name, tensor in tensors.items()}
    try:
        with atomic_folder(folder) as staged:
            (staged / CONFIG).write_text(text, encoding="utf-8")
            write_tensors(staged / name, header, lambda name: _convert(name, tensors[name]))
            beside(staged)
    except OSError as e:
        raise ZooError(f"cannot write to {folder}: {e.strerror or e}") from e
    return folder


def _saved_config(model: Pretrained, dtype: str | None) -> dict[str, Any]:
    config = {**model.config.to_dict(), "architectures": [model.architecture]}
    config.pop("quantization_config", None)  # the one of the file that was read
    if _stays_packed(model, dtype):
        config["quantization_config"] = {"quant_method": QUANT_METHOD}
    if dtype is not None:  # transformers loads this type, whatever the file has
        config.pop("dtype", None)
        config["torch_dtype"] = dtype
    return config


def _stays_packed(model: Pretrained, dtype: str | None) -> bool:
    return dtype is None and any(isinstance(leaf, QuantTensor) and not leaf.is_plain for _, leaf in leaves(model))


class _Unsaved(NamedTuple):
    """A tensor before it is converted to its file's element type."""

    array: Array | QuantRows
    was: str  # its element type in the file that was read
    dtype: str  # the element type in the new file
    transposed: bool = False  # whether files have it so
    heads: int = 0  # those that files have its columns by
    parts: Sequence[Sequence[Any]] = ()  # a stack in place of the array: those of each expert

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape in the file."""
        if self.parts:
            rows, *columns = self.parts[0][0].shape
            return len(self.parts), *columns, rows * len(self.parts[0])
        shape = tuple(self.array.shape)
        shape = shape[::-1] if self.transposed else shape
        return (shape[0], self.heads, shape[1] // self.heads) if self.heads else shape


def _tensors(model: Pretrained, dtype: str | None) -> dict[str, _Unsaved]:
    """Every tensor of the model, by its name in the checkpoint."""
    out: dict[str, _Unsaved] = {}
    owners: dict[str, Any] = {}
    for path, array, parts in model.leaves_with_parts():
        for part, rows in rows_of(array, parts):
            if part.name in owners:
                if owners[part.name] is not array:
                    raise ZooError(
                        f"{part.name} is shared by parts of the model that now differ: {path} is another array"
                    )
                continue
            owners[part.name] = array
            for name in (part.name, *model._copies.get(part.name, ())):
                if isinstance(rows, QuantRows) and not rows.kind.is_plain and dtype is None:
                    out |= {n: _Unsaved(a, kind, kind) for n, kind, a in stored_fields(name, rows)}
                else:
                    was = part.dtype if part.dtype in _FLOATS else "F32"
                    layout = model.name_map
                    heads = model.config.num_attention_heads if layout.splits(name, was) else 0
                    out[name] = _Unsaved(rows, was, dtype or was, layout.transposes(name, was), heads)
    for name, experts in stacks_of(out).items() if model.name_map.stacks_experts else ():
        parts = [[out.pop(part) for part in expert] for expert in experts]
        out[name] = parts[0][0]._replace(array=None, parts=parts)
    for name, (array, was) in model._only_saved.items():
        out[name] = _Unsaved(array, was, dtype or was if was in _FLOATS else was)
    return out


def shapes_of(model: Pretrained) -> dict[str, tuple[int, ...]]:
    """The shapes of a model's tensors, by their names in the checkpoint."""
    return {name: tensor.shape for name, tensor in _tensors(model, "F32").items()}


_FLOATS = ("F64", "F32", "F16", "BF16")


def rows_of(array: Any, parts: Sequence[TensorPart]) -> Iterator[tuple[TensorPart, Array | QuantRows]]:
    """The rows of an array or a packed matrix that came from each tensor."""
    if isinstance(array, QuantTensor) and len(array.parts) == len(parts):
        yield from zip(parts, array.parts, strict=True)
        return
    start, whole = 0, array.parts[0] if isinstance(array, QuantTensor) else array
    for part in parts:
        yield part, whole if len(parts) == 1 else whole[start : start + part.rows]
        start += part.rows


def _convert(name: str, tensor: _Unsaved) -> np.ndarray:
    if tensor.parts:
        return stack([[_convert(name, part) for part in expert] for expert in tensor.parts])
    if isinstance(tensor.array, np.ndarray) and tensor.dtype not in _FLOATS:  # a counter
        return tensor.array
    of = tensor.array.arrays[0] if isinstance(tensor.array, QuantRows) else tensor.array
    array = backend(of).to_raw(tensor.array, tensor.dtype).array
    if tensor.dtype == "F16" and tensor.was != "F16" and np.isinf(array).any():
        raise ZooError(f"{name} has values beyond float16's range: save it as bfloat16 or float32")
    array = np.ascontiguousarray(array.T) if tensor.transposed else array
    return array.reshape(tensor.shape) if tensor.heads else array
