"""From a name or a folder to a model, and back to a folder."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import ConfigError, UnsupportedError, UnusedWeightError, ZooError
from ..nn import leaves
from ..pretrained import Pretrained
from ..registry import config_class
from ..registry import model_class as class_for
from ..typing import Array
from ..warning import warn
from .atomic_write import atomic_write
from .conflicts import CONFIG, WEIGHTS, refuse_other_kind, refuse_other_weights, refuse_package
from .json_file import read_json

if TYPE_CHECKING:
    from ..config import Config
    from ..hub import Checkpoint
    from ..weights import RawTensor

# Weights up to this size are searched for NaN and infinity when they are loaded, at a quarter of a second a GiB; larger
# ones are left to be mapped as they are used.
CHECKED_BYTES = 1 << 30


def load_model(
    name_or_folder: str | os.PathLike[str],
    *,
    model_class: type[Pretrained] | None = None,
    head: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    strict: bool = False,
    revision: str | None = None,
    local_files_only: bool = False,
    cache_dir: str | os.PathLike[str] | None = None,
    token: str | bool | None = None,
    lock: str | os.PathLike[str] | None = None,
) -> Pretrained:
    """The model of a hub repository or a local folder, without tokenizer or task.

    model_class or head ("ForMaskedLM", "Model", ...) override the config's architecture.  strict: tensors that no part
    of the model knows are an error, not a warning.  The other arguments are those of `zoo.load`.
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
    return model_of(checkpoint, model_class=model_class, head=head, device=device, dtype=dtype, strict=strict)


def read_config(folder: Path) -> Config:
    """The config of a checkpoint's folder, of its family's class."""
    path = folder / "config.json"
    if not path.is_file():
        raise ConfigError(f"{folder} has no config.json: it is not a checkpoint's folder")
    raw = read_json(path)
    try:
        cls = config_class(raw.get("model_type"))
        return cls.from_dict(raw)
    except ZooError as e:
        raise type(e)(f"{path}: {e}") from None


def model_of(
    checkpoint: Checkpoint,
    *,
    model_class: type[Pretrained] | None = None,
    head: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    strict: bool = False,
) -> Pretrained:
    """The model of a checkpoint whose files are at hand."""
    from ..weights.files import non_finite, open_weights

    config = read_config(checkpoint.folder)
    cls = model_class or class_for(config, head)
    if not isinstance(config, cls.config_class):
        raise UnsupportedError(
            f"{checkpoint.name} is a {config.model_type} checkpoint, and {cls.__name__} is not of that family"
        )
    source = open_weights(checkpoint.weights)
    try:
        model = cls.from_source(source, config, dtype=dtype, device=device)
    except ZooError as e:
        saved_as = ", ".join(config.architectures) or "nothing in particular"
        raise type(e)(f"{checkpoint.name}, read as {cls.__name__} (config.json says {saved_as}): {e}") from None
    model.report = replace(model.report, fingerprint=checkpoint.fingerprint)
    if sum(path.stat().st_size for path in source.files) <= CHECKED_BYTES:
        bad = non_finite(source, dict.fromkeys(part.name for parts in model._parts.values() for part in parts))
        if bad:
            warn(f"{checkpoint.name} holds NaN or infinity in {_listed(bad)}")
    if model.report.unused:
        names = model.report.unused
        text = f"{checkpoint.name} holds {len(names)} tensors that {cls.__name__} does not know: {_listed(names)}"
        if strict:
            raise UnusedWeightError(text)
        warn(text)
    return model


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def save_model(model: Pretrained, folder: str | os.PathLike[str], *, dtype: str | None = None) -> Path:
    """Write config.json and model.safetensors, under the names and in the element types that the model was read with.

    dtype: another element type for all ("float32", "float16", "bfloat16").  Files appear complete or not at all.
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
    refuse_other_weights(folder)
    tensors = _tensors(model, types[dtype])
    text = json.dumps(_saved_config(model, dtype), indent=2, ensure_ascii=False) + "\n"
    header = {name: (tensor.dtype, tuple(tensor.array.shape)) for name, tensor in tensors.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Neither takes its place before both are written.
        with atomic_write(folder / CONFIG) as config, atomic_write(folder / WEIGHTS) as weights:
            config.write_text(text, encoding="utf-8")
            _write(weights, header, lambda name: _converted(name, tensors[name]))
    except OSError as e:
        raise ZooError(f"cannot write to {folder}: {e.strerror or e}") from e
    return folder


def _saved_config(model: Pretrained, dtype: str | None) -> dict[str, Any]:
    config = {**model.config.to_dict(), "architectures": [type(model).__name__]}
    if dtype is not None:  # transformers loads what is named here, whatever the file has
        config.pop("dtype", None)
        config["torch_dtype"] = dtype
    return config


class _Unsaved(NamedTuple):
    """A tensor before it is converted to what its file holds."""

    array: Array
    was: str  # its element type in the file that it came from
    dtype: str  # and in the one that is written


def _tensors(model: Pretrained, dtype: str | None) -> dict[str, _Unsaved]:
    """Every tensor that the model was made of, by its name in the checkpoint."""
    out: dict[str, _Unsaved] = {}
    owners: dict[str, Any] = {}
    for path, array in leaves(model):
        parts, start = model._parts[path], 0
        for part in parts:
            rows = array if len(parts) == 1 else array[start : start + part.rows]
            start += part.rows
            if part.name in owners:
                if owners[part.name] is not array:
                    raise ZooError(
                        f"{part.name} is shared by parts of the model that now differ: {path} is another array"
                    )
                continue
            owners[part.name] = array
            for name in (part.name, *model._copies.get(part.name, ())):
                out[name] = _Unsaved(rows, part.dtype, dtype or part.dtype)
    return out


def _converted(name: str, tensor: _Unsaved) -> np.ndarray:
    from ..ops import backend

    array = backend(tensor.array).to_raw(tensor.array, tensor.dtype).array
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
