"""From a name or a folder to a model, and back to a folder."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import ConfigError, UnsupportedError, UnusedWeightError, ZooError
from .json_file import read_json
from .nn import leaves
from .pretrained import Pretrained
from .registry import config_class
from .registry import model_class as class_for
from .replacing import replacing

if TYPE_CHECKING:
    from .config import Config
    from .hub import Checkpoint
    from .weights import Stored

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
) -> Pretrained:
    """The model of a hub repository or a local folder, without tokenizer or task.

    model_class or head ("ForMaskedLM", "Model", ...) override the config's architecture.  strict: tensors that no part
    of the model knows are an error, not a warning.  The other arguments are those of `zoo.load`.
    """
    from .hub import find

    checkpoint = find(
        name_or_folder, revision=revision, local_files_only=local_files_only, cache_dir=cache_dir, token=token
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
    from .weights.files import non_finite, open_weights

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
    if sum(path.stat().st_size for path in source.files) <= CHECKED_BYTES:
        bad = non_finite(source, dict.fromkeys(part.name for parts in model._parts.values() for part in parts))
        if bad:
            warnings.warn(f"{checkpoint.name} holds NaN or infinity in {_listed(bad)}", stacklevel=3)
    if model.report.unused:
        names = model.report.unused
        text = f"{checkpoint.name} holds {len(names)} tensors that {cls.__name__} does not know: {_listed(names)}"
        if strict:
            raise UnusedWeightError(text)
        warnings.warn(text, stacklevel=3)
    return model


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def save_model(model: Pretrained, folder: str | os.PathLike[str], *, dtype: str | None = None) -> Path:
    """Write config.json and model.safetensors, under the names and in the element types that the model was read with.

    dtype: another element type for all ("float32", "float16", "bfloat16").  Files appear complete or not at all.
    """
    folder = Path(folder).expanduser()
    types = {None: None, "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float64": "F64"}
    if dtype not in types:
        raise UnsupportedError(f"dtype {dtype!r} is not supported, expected one of {', '.join(t for t in types if t)}")
    tensors = _tensors(model, types[dtype])
    config = {**model.config.to_dict(), "architectures": [type(model).__name__]}
    if dtype is not None:  # transformers loads what is named here, whatever the file has
        config.pop("dtype", None)
        config["torch_dtype"] = dtype
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(folder / "config.json") as path:
            path.write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        with replacing(folder / "model.safetensors") as path:
            write_safetensors(path, tensors)
    except OSError as e:
        raise ZooError(f"cannot write to {folder}: {e.strerror or e}") from e
    return folder


def _tensors(model: Pretrained, dtype: str | None) -> dict[str, Stored]:
    """Every tensor that the model was made of, by its name in the checkpoint."""
    from .ops import backend

    out: dict[str, Stored] = {}
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
            stored = backend(array).stored(rows, dtype or part.dtype)
            if stored.dtype == "F16" and part.dtype != "F16" and np.isinf(stored.array).any():
                raise ZooError(f"{part.name} holds values beyond float16: save it as bfloat16 or float32")
            for name in (part.name, *model._copies.get(part.name, ())):
                out[name] = stored
    return out


def write_safetensors(path: Path, tensors: dict[str, Stored]) -> None:
    """Write the format of https://github.com/huggingface/safetensors, one tensor at a time.

    The library itself takes no bfloat16 from NumPy, and holds a second copy of everything while it writes.
    """
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, stored in tensors.items():
        begin, end = end, end + stored.array.nbytes
        header[name] = {"dtype": stored.dtype, "shape": list(stored.array.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at a multiple of 8
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little"))
        f.write(text)
        for stored in tensors.values():
            f.write(np.ascontiguousarray(stored.array).data)
