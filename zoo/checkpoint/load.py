"""From a name or a folder to a model, and back to a folder."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..config import named_labels
from ..errors import UnsupportedError, ZooError
from ..nn import leaves
from ..packed import Packed, Rows
from ..pretrained import Pretrained
from ..registry import config_class
from ..registry import model_class as class_for
from ..typing import Array
from ..weights.adapter import Adapter
from ..weights.packed_names import QUANT_METHOD, stored_fields
from . import config_file
from .atomic_write import atomic_write
from .conflicts import CONFIG, PACKED_WEIGHTS, WEIGHTS, refuse_other_kind, refuse_other_weights, refuse_package

if TYPE_CHECKING:
    from ..config import Config
    from ..hub import Checkpoint
    from ..weights import Part, RawTensor


def load_model(
    name_or_folder: str | os.PathLike[str],
    *,
    model_class: type[Pretrained] | None = None,
    head: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    weights: str | None = None,
    strict: bool = False,
    revision: str | None = None,
    local_files_only: bool = False,
    cache_dir: str | os.PathLike[str] | None = None,
    token: str | bool | None = None,
    lock: str | os.PathLike[str] | None = None,
    **training: Any,
) -> Pretrained:
    """The model of a hub repository or a local folder, without tokenizer or task.

    model_class or head ("ForMaskedLM", "Model", ...) override the config's architecture.  strict: tensors that no part
    of the model knows are an error, not a warning.  The other arguments are those of `zoo.load`; training: trainable,
    new_head, num_labels, id2label, seed and adapter.
    """
    from .lock import find

    checkpoint = find(
        name_or_folder,
        revision=revision,
        local_files_only=local_files_only,
        cache_dir=cache_dir,
        token=token,
        lock=lock,
    )
    options = {"device": device, "dtype": dtype, "weights": weights, "strict": strict, **training}
    return model_of(checkpoint, model_class=model_class, head=head, **options)


def read_config(folder: Path) -> Config:
    """The config of a checkpoint's folder, of its family's class."""
    return config_file.read_config(folder, config_class)


def model_of(
    checkpoint: Checkpoint,
    *,
    model_class: type[Pretrained] | None = None,
    head: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    weights: str | None = None,
    strict: bool = False,
    num_labels: int | None = None,
    id2label: Mapping[int, str] | Sequence[str] | None = None,
    adapter: str | os.PathLike[str] | None = None,
    **training: Any,
) -> Pretrained:
    """The model of a checkpoint whose files are at hand; training: trainable, new_head and seed."""
    config = read_config(checkpoint.folder)
    cls = model_class or class_for(config, head)
    if adapter is not None:
        training["adapter"] = found = Adapter(Path(adapter).expanduser())
        if num_labels is None and id2label is None and (labels := found.labels()) is not None:
            config = replace(config, id2label=named_labels(None, labels))
    if num_labels is not None or id2label is not None:
        config = replace(config, id2label=named_labels(num_labels, id2label))
        training["new_head"] = True
    placed = {"device": device, "dtype": dtype, "weights": weights}
    return cls.from_checkpoint(checkpoint, config, **placed, strict=strict, **training)


def save_model(model: Pretrained, folder: str | os.PathLike[str], *, dtype: str | None = None) -> Path:
    """Write config.json and model.safetensors, under the names and in the element types that the model was read with.

    dtype: another element type for all ("float32", "float16", "bfloat16"), packed matrices too, which otherwise stay
    so, in a layout of zoo's own (see `zoo.weights.packed_names`).  Files appear complete or not at all.
    ZooError where the folder holds other weights, or a checkpoint of another class of model with files of its own.
    """
    refuse_other_kind(Path(folder).expanduser(), _saved_config(model, dtype))
    return write_model(model, folder, dtype=dtype)


def write_model(model: Pretrained, folder: str | os.PathLike[str], *, dtype: str | None = None) -> Path:
    """`save_model` for one who has looked at what else the folder holds."""
    folder = Path(folder).expanduser()
    types = {None: None, "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float64": "F64"}
    if dtype not in types:
        raise UnsupportedError(f"dtype {dtype!r} is not supported, expected one of {', '.join(t for t in types if t)}")
    refuse_package(folder)
    name = PACKED_WEIGHTS if _stays_packed(model, dtype) else WEIGHTS
    refuse_other_weights(folder, name)
    tensors = _tensors(model, types[dtype])
    text = json.dumps(_saved_config(model, dtype), indent=2, ensure_ascii=False) + "\n"
    header = {name: (tensor.dtype, tuple(tensor.array.shape)) for name, tensor in tensors.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Neither takes its place before both are written.
        with atomic_write(folder / CONFIG) as config, atomic_write(folder / name) as weights:
            config.write_text(text, encoding="utf-8")
            _write(weights, header, lambda name: _converted(name, tensors[name]))
    except OSError as e:
        raise ZooError(f"cannot write to {folder}: {e.strerror or e}") from e
    return folder


def _saved_config(model: Pretrained, dtype: str | None) -> dict[str, Any]:
    config = {**model.config.to_dict(), "architectures": [type(model).__name__]}
    config.pop("quantization_config", None)  # of the file that was read
    if _stays_packed(model, dtype):
        config["quantization_config"] = {"quant_method": QUANT_METHOD}
    if dtype is not None:  # transformers loads what is named here, whatever the file has
        config.pop("dtype", None)
        config["torch_dtype"] = dtype
    return config


def _stays_packed(model: Pretrained, dtype: str | None) -> bool:
    return dtype is None and any(isinstance(leaf, Packed) and not leaf.is_plain for _, leaf in leaves(model))


class _Unsaved(NamedTuple):
    """A tensor before it is converted to what its file holds."""

    array: Array | Rows
    was: str  # its element type in the file that it came from
    dtype: str  # and in the one that is written


def _tensors(model: Pretrained, dtype: str | None) -> dict[str, _Unsaved]:
    """Every tensor that the model was made of, by its name in the checkpoint."""
    out: dict[str, _Unsaved] = {}
    owners: dict[str, Any] = {}
    for path, array in leaves(model):
        for part, rows in rows_of(array, model._parts[path]):
            if part.name in owners:
                if owners[part.name] is not array:
                    raise ZooError(
                        f"{part.name} is shared by parts of the model that now differ: {path} is another array"
                    )
                continue
            owners[part.name] = array
            for name in (part.name, *model._copies.get(part.name, ())):
                if isinstance(rows, Rows) and not rows.kind.plain and dtype is None:
                    out |= {n: _Unsaved(a, kind, kind) for n, kind, a in stored_fields(name, rows)}
                else:
                    was = part.dtype if part.dtype in _FLOATS else "F32"
                    out[name] = _Unsaved(rows, was, dtype or was)
    return out


def shapes_of(model: Pretrained) -> dict[str, tuple[int, ...]]:
    """The shapes of the tensors that a model was made of, by their names in the checkpoint."""
    return {name: tuple(tensor.array.shape) for name, tensor in _tensors(model, "F32").items()}


_FLOATS = ("F64", "F32", "F16", "BF16")


def rows_of(array: Any, parts: Sequence[Part]) -> Iterator[tuple[Part, Array | Rows]]:
    """The rows of an array or a packed matrix that came from each tensor."""
    if isinstance(array, Packed) and len(array.parts) == len(parts):
        yield from zip(parts, array.parts, strict=True)
        return
    start, whole = 0, array.parts[0] if isinstance(array, Packed) else array
    for part in parts:
        yield part, whole if len(parts) == 1 else whole[start : start + part.rows]
        start += part.rows


def _converted(name: str, tensor: _Unsaved) -> np.ndarray:
    from ..ops import backend

    of = tensor.array.arrays[0] if isinstance(tensor.array, Rows) else tensor.array
    array = backend(of).to_raw(tensor.array, tensor.dtype).array
    if tensor.dtype == "F16" and tensor.was != "F16" and np.isinf(array).any():
        raise ZooError(f"{name} holds values beyond float16: save it as bfloat16 or float32")
    return array


def write_safetensors(path: Path, tensors: Mapping[str, RawTensor]) -> None:
    """Write the format of https://github.com/huggingface/safetensors."""
    header = {name: (stored.dtype, stored.array.shape) for name, stored in tensors.items()}
    _write(path, header, lambda name: tensors[name].array)


def _write(
    path: Path, tensors: Mapping[str, tuple[str, tuple[int, ...]]], array_of: Callable[[str], np.ndarray]
) -> None:
    """tensors: name -> element type and shape.  Each array is asked for when its turn comes, and then let go.

    The library itself takes no bfloat16 from NumPy, and holds a second copy of everything while it writes.
    """
    from ..weights.mapped import element_bits

    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (dtype, shape) in tensors.items():
        begin, end = end, end + math.prod(shape) * element_bits(dtype) // 8
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at a multiple of 8
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little"))
        f.write(text)
        for name in tensors:
            f.write(np.ascontiguousarray(array_of(name)).data)
