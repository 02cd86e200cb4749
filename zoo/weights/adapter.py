"""LoRA adapters in the layout of the package peft: read, and added to the checkpoint's matrices as these are read.

https://huggingface.co/docs/peft/developer_guides/checkpoint
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from ..config import named_labels
from ..errors import CheckpointError, ConfigError, InputError, NotFoundError, UnsupportedError
from ..files.folder import CheckpointFolder
from ..typing import RawTensor
from .name_map import NameMap
from .source import Source

CONFIG, WEIGHTS, LABELS = "adapter_config.json", "adapter_model.safetensors", "id2label.json"
PREFIX = "base_model.model."
FILES = (CONFIG, WEIGHTS, LABELS)
_FLOATS = ("F32", "F16", "BF16", "F64")
_LISTED = "F32, F16, BF16 and F64"
# Options that would change the result, with the values that are supported.
_PLAIN: dict[str, tuple[Any, ...]] = {
    "peft_type": ("LORA",),
    "bias": ("none",),
    "fan_in_fan_out": (False,),
    "use_dora": (False,),
    "alpha_pattern": ({},),
    "rank_pattern": ({},),
    "lora_bias": (False,),
    "layer_replication": (None,),
    "alora_invocation_tokens": (None,),
}


class Adapter:
    """An adapter's folder: A and B for each matrix, their scale, and tensors that replace the checkpoint's."""

    def __init__(self, folder: Path):
        from .files import open_weights

        contents = CheckpointFolder(folder)
        for name in (CONFIG, WEIGHTS):
            if not contents.has(name):
                raise NotFoundError(f"{folder} is not an adapter: it has no {name}")
        config = contents.json(CONFIG)
        for name, plain in _PLAIN.items():
            value = config.get(name, plain[0])
            if value is not None and value not in plain:
                raise UnsupportedError(
                    f"{folder / CONFIG}: {name} = {value!r} is not implemented, only {plain[0]!r} is"
                )
        rank, alpha = config.get("r"), config.get("lora_alpha")
        if type(rank) is not int or rank < 1 or isinstance(alpha, bool) or not isinstance(alpha, int | float):
            raise ConfigError(f"{folder / CONFIG}: r = {rank!r} and lora_alpha = {alpha!r}, expected numbers")
        self.folder, self.rank, self.contents = folder, rank, contents
        self.scale = alpha / (math.sqrt(rank) if config.get("use_rslora") else rank)
        self.source = open_weights([folder / WEIGHTS])
        self.pairs: dict[str, dict[str, str]] = {}  # name of a matrix -> the adapter's tensors by "A" and "B"
        self.whole: dict[str, str] = {}
        for name in self.source.names():
            bare = name.removeprefix(PREFIX)
            found = re.fullmatch(r"(.*)\.lora_([AB])(\.default)?\.weight", bare)
            if found:
                pair = self.pairs.setdefault(f"{found[1]}.weight", {})
                if found[2] in pair:
                    raise CheckpointError(f"{folder / WEIGHTS}: {pair[found[2]]!r} and {name!r} are the same matrix")
                shape, dtype = self.source.shape(name), self.source.dtype(name)
                if len(shape) != 2 or dtype not in _FLOATS:
                    raise CheckpointError(
                        f"{folder / WEIGHTS}: {name!r} is {dtype} of shape {shape}, expected a matrix in {_LISTED}"
                    )
                pair[found[2]] = name
            elif bare != name and "lora_" not in bare:
                self.whole[re.sub(r"\.modules_to_save(\.default)?", "", bare)] = name
            else:
                raise UnsupportedError(f"{folder / WEIGHTS}: {name!r} is neither a LoRA matrix nor a whole tensor")
        lacking = [name for name, pair in self.pairs.items() if len(pair) < 2]
        if lacking:
            raise CheckpointError(f"{folder / WEIGHTS}: {lacking[0]!r} has only one of lora_A and lora_B")

    def on(self, source: Source, name_map: NameMap) -> Adapted:
        """The source with the adapter added; name_map: of the model's family."""
        return Adapted(source, self, name_map)

    def labels(self) -> dict[int, str] | None:
        """The labels of the head in the adapter; None if the folder has none.  ConfigError: they are no labels."""
        if not self.contents.has(LABELS):
            return None
        found: Any = self.contents.json(LABELS)
        if bad := [label for label in found.values() if not isinstance(label, str)]:
            raise ConfigError(f"{self.folder / LABELS}: {bad[0]!r:.200} is not a text")
        try:
            return named_labels(None, found)
        except InputError as e:
            raise ConfigError(f"{self.folder / LABELS}: {e}") from None


class Adapted:
    """A source with an adapter added to its matrices as they are read, in the file's element type."""

    def __init__(self, source: Source, adapter: Adapter, name_map: NameMap):
        self.source, self.adapter, self.files = source, adapter, [*source.files, *adapter.source.files]
        self.name_map = name_map
        own = {self._canonical(name): name for name in source.names()}
        self.pairs = {own.get(self._canonical(name), ""): pair for name, pair in adapter.pairs.items()}
        if len(self.pairs) < len(adapter.pairs) and "" not in self.pairs:
            raise CheckpointError(f"{adapter.folder / WEIGHTS}: two of its matrices are for the same one of the model")
        self.whole = {own.get(self._canonical(name), name): given for name, given in adapter.whole.items()}
        if "" in self.pairs:
            name = next(n for n in adapter.pairs if self._canonical(n) not in own)
            raise CheckpointError(f"{adapter.folder} is an adapter of another model: the checkpoint has no {name!r}")

    def _canonical(self, name: str) -> str:
        for pattern, new in self.name_map.renames.items():
            name = re.sub(pattern, new, name)
        return name.removeprefix(self.name_map.prefix + ".")

    def names(self) -> Collection[str]:
        return dict.fromkeys([*self.source.names(), *self.whole])

    def __contains__(self, name: object) -> bool:
        return name in self.source or name in self.whole

    def shape(self, name: str) -> tuple[int, ...]:
        return self.adapter.source.shape(self.whole[name]) if name in self.whole else self.source.shape(name)

    def dtype(self, name: str) -> str:
        return self.adapter.source.dtype(self.whole[name]) if name in self.whole else self.source.dtype(name)

    def read(self, name: str) -> Any:
        if name in self.whole:
            found = self.adapter.source.read(self.whole[name])
            if isinstance(found, RawTensor) and found.dtype in _FLOATS:
                self._check_finite(name, _wide(found))
            return found
        stored = self.source.read(name)
        if name not in self.pairs:
            return stored
        if not isinstance(stored, RawTensor) or stored.dtype not in _FLOATS:
            raise UnsupportedError(
                f"{name} is stored as {self.source.dtype(name)}: adapters can be added to {_LISTED} only"
            )
        a, b = (_wide(self.adapter.source.read(self.pairs[name][key])) for key in "AB")
        if (b.shape[0], a.shape[1]) != stored.array.shape or a.shape[0] != b.shape[1]:
            raise CheckpointError(
                f"the adapter's {b.shape} x {a.shape} does not fit {name!r} of shape {stored.array.shape}"
            )
        with np.errstate(over="ignore", invalid="ignore"):
            wide = _wide(stored)
            changed = _narrow(wide + self.adapter.scale * (b @ a), stored.dtype)
        self._check_finite(name, np.where(np.isfinite(wide), _wide(changed), 0))
        return changed

    def _check_finite(self, name: str, x: np.ndarray) -> None:
        if not np.isfinite(x).all():
            raise CheckpointError(f"{name} has NaN or infinity with the adapter {self.adapter.folder}")


def _wide(stored: Any) -> np.ndarray:
    if stored.dtype == "BF16":
        return (stored.array.astype(np.uint32) << 16).view(np.float32)
    return np.asarray(stored.array, np.float64 if stored.dtype == "F64" else np.float32)


def _narrow(x: np.ndarray, dtype: str) -> RawTensor:
    if dtype == "BF16":  # to nearest, ties to even
        bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
        return RawTensor(((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16), dtype)
    return RawTensor(np.ascontiguousarray(x, {"F16": np.float16, "F32": np.float32, "F64": np.float64}[dtype]), dtype)
