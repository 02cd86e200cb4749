"""LoRA adapters in the layout of the package peft: read, and added to the checkpoint's tensors as these are read.

https://huggingface.co/docs/peft/developer_guides/checkpoint
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..config import named_labels
from ..errors import CheckpointError, ConfigError, InputError, NotFoundError, UnsupportedError
from ..files.folder import CheckpointFolder
from ..typing import RawTensor
from .adapter_config import AdapterConfig
from .name_map import RenamedSource

CONFIG, WEIGHTS, LABELS = "adapter_config.json", "adapter_model.safetensors", "id2label.json"
WEIGHTS_BIN = "adapter_model.bin"  # read where there is no other
PREFIX = "base_model.model."
FILES = (CONFIG, WEIGHTS, WEIGHTS_BIN, LABELS)
_FLOATS = ("F32", "F16", "BF16", "F64")
_FLOAT_TYPES = "F32, F16, BF16 and F64"
# The ends of names, after a module's, and what they are; peft may have put the adapter's own name behind them.
_PARTS = {
    r"lora_A(\.default)?\.weight": "A",
    r"lora_B(\.default)?\.weight": "B",
    r"lora_embedding_A(\.default)?": "embedding A",
    r"lora_embedding_B(\.default)?": "embedding B",
    r"lora_magnitude_vector(\.default)?(\.weight)?": "magnitude",
    r"(token_adapter\.)?trainable_tokens_delta(\.default)?": "rows",
}
_BIAS = r"(.*)\.lora_B(\.default)?\.bias"
_FACTOR_PAIRS = (("A", "B"), ("embedding A", "embedding B"))


@dataclass(frozen=True)
class Change:
    """What an adapter does to one tensor of the model.  module: its module, by the adapter's name.

    parts: what it is made of -> the name in the adapter's file.  "whole" replaces the tensor, "rows" replaces rows, A
    and B are added as their product, scaled to "magnitude" if there is one, "bias" is added to a bias.
    is_own: not of names that share the tensor with this one.
    """

    module: str
    parts: Mapping[str, str]
    is_own: bool = True
    is_transposed: bool = field(default=False, compare=False)  # whether the file has a matrix as (inputs, outputs)


class Adapter:
    """An adapter's folder."""

    def __init__(self, folder: Path):
        from .files import open_weights

        contents = CheckpointFolder(folder)
        weights = WEIGHTS if contents.has(WEIGHTS) or not contents.has(WEIGHTS_BIN) else WEIGHTS_BIN
        for name in (CONFIG, weights):
            if not contents.has(name):
                raise NotFoundError(f"{folder} is not an adapter: it has no {name}")
        self.folder, self.contents, self.path = folder, contents, folder / weights
        self.config = AdapterConfig(folder / CONFIG, contents.json(CONFIG))
        self.source = open_weights([self.path])
        found: dict[str, tuple[str, dict[str, str]]] = {}  # name of a tensor -> its module, and its parts
        for name in self.source.names():
            plain = re.sub(r"\.(modules_to_save\.default|original_module)(?=\.)", "", name)
            if plain != name and plain in self.source:
                continue  # with bias = "all" peft writes the biases of saved modules three times, and reads these
            tensor, module, part = self._part(name)
            parts = found.setdefault(tensor, (module, {}))[1]
            if part in parts:
                raise CheckpointError(f"{self.path}: {parts[part]!r} and {name!r} are the same matrix")
            parts[part] = name
        self.changes: dict[str, Change] = {}
        for name, (module, parts) in found.items():
            for a, b in _FACTOR_PAIRS:
                if (a in parts) != (b in parts):
                    raise CheckpointError(f"{self.path}: {name!r} has only one of lora_A and lora_B")
            has_pair = any(a in parts for a, _ in _FACTOR_PAIRS)
            for part, option, wanted in (("magnitude", "use_dora", has_pair), ("bias", "lora_bias", "bias" in parts)):
                given = bool(self.config.raw.get(option))
                if (part in parts) != (given and wanted):
                    has = "has a" if part in parts else "has no"
                    raise CheckpointError(f"{self.path}: {name!r} {has} {part}, but {option} = {given} in {CONFIG}")
            is_own = parts.keys() != {"whole"} or self.config.is_saved(module)
            self.changes[name] = Change(module, parts, is_own)

    def _part(self, name: str) -> tuple[str, str, str]:
        """The tensor that one of the file is about, its module, and which part of a `Change` it is."""
        bare = name.removeprefix(PREFIX)
        dtype, shape = self.source.dtype(name), self.source.shape(name)
        for end, part in _PARTS.items():
            if found := re.fullmatch(rf"(.*?)\.{end}", bare):
                module = found[1]
                if part != "rows":
                    self.config.check_target(module)
                if dtype not in _FLOATS or (part != "magnitude" and len(shape) < 2):
                    raise CheckpointError(
                        f"{self.path}: {name!r} is {dtype} of shape {shape}, expected a matrix in {_FLOAT_TYPES}"
                    )
                return f"{module}.weight", module, part
        if found := re.fullmatch(_BIAS, bare):
            self.config.check_target(found[1])
            return f"{found[1]}.bias", found[1], "bias"
        if bare == name or "lora_" in bare:
            raise UnsupportedError(f"{self.path}: {name!r} is neither a LoRA matrix nor a whole tensor")
        tensor = re.sub(r"\.(modules_to_save(\.default)?|base_layer)(?=\.)", "", bare)
        return tensor, tensor.rpartition(".")[0], "whole"

    def on(self, named: RenamedSource) -> Adapted:
        """The source with the adapter added; named: it, by the model's names, with its ties."""
        return Adapted(named, self)

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

    def read(self, name: str) -> np.ndarray:
        """A tensor of the adapter, in float32 or float64."""
        return _widen(self.source.read(name))


class Adapted:
    """A source with an adapter added to its tensors as they are read, in the file's element type.

    Where an adapter changes one of several names that share an array, each of these gets an array of its own.
    """

    def __init__(self, named: RenamedSource, adapter: Adapter):
        source: Any = named.source
        self.source, self.adapter, self.name_map = source, adapter, named.name_map
        self.files = [*source.files, *adapter.source.files, adapter.folder / CONFIG]  # all that its numbers follow from
        self.changes: dict[str, Change] = {}  # by the name in the file, or a new one
        self.bases: dict[str, str] = {}  # new name -> the one in the file whose array it begins with
        self.unties = False  # whether names that shared an array have arrays of their own now
        left: dict[str, tuple[str, Change]] = {}  # the model's name without the prefix -> the adapter's, its change
        for name, change in adapter.changes.items():
            if (key := self._canonical(name)) in left:
                raise CheckpointError(f"{adapter.path}: two of its tensors are for {key!r} of the model")
            left[key] = name, change
        sharing: dict[str, list[str]] = {}
        for name, file in named.origin.items():
            sharing.setdefault(file, []).append(name)
        for file, names in sharing.items():
            found = {n: left.pop(key)[1] for n in names if (key := self._canonical(n)) in left}
            if found:
                self._change(file, names, found, named)
        lost = [n for n, file in named.own.items() if file not in self.changes and not self._is_ignored(n)]
        if lost := [n for n in lost if adapter.config.is_saved(n.rpartition(".")[0])]:
            raise CheckpointError(
                f"{adapter.path} has no {lost[0]!r}, which is in modules_to_save = {[*adapter.config.saved]}"
            )
        for name, change in left.values():
            if change.parts.keys() != {"whole"}:
                raise CheckpointError(
                    f"{adapter.folder} is an adapter of another model: the checkpoint has no {name!r}"
                )
            self.changes[name] = change

    def _change(self, file: str, names: list[str], found: dict[str, Change], named: RenamedSource) -> None:
        """Note the changes of the names that share an array of the file."""
        transposes = self.name_map.transposes(names[0], self.source.dtype(file))
        found = {name: replace(change, is_transposed=transposes) for name, change in found.items()}
        owner = next(name for name in names if name not in named.tied)
        every = {name: found.get(name) for name in names}
        if self.adapter.config.ties:
            every = dict.fromkeys(names, found.get(owner) or next(iter(found.values())))
        elif whole := next((c.parts["whole"] for c in found.values() if "whole" in c.parts and not c.is_own), None):
            # peft copies it into the array that all of them share.
            module = next(iter(found.values())).module
            plain = Change(module, {"whole": whole}, False, transposes)
            every = {
                name: plain if change is None else replace(change, parts={**change.parts, "whole": whole})
                for name, change in every.items()
            }
        rows = None if found.get(owner) is None else found[owner].parts.get("rows")
        if rows is not None and all("rows" not in c.parts for n, c in found.items() if n != owner):
            every = dict.fromkeys(names, found[owner])
        alike = len({change and tuple(change.parts.items()) for change in every.values()}) == 1
        self.unties |= not alike
        for name, change in every.items():
            own = named.own.get(name, name)  # the name in the file
            if alike and own not in self.source:
                continue
            if own not in self.source:
                self.bases[own] = file
            if change is not None:
                self.changes[own] = change

    def check_vocabulary(self, rows: int | None) -> None:
        """Raise UnsupportedError where the adapter replaces a matrix with a row for each token by one of other rows."""
        for name in self.changes:
            whole = self._replacement(name)
            if whole is None or (name not in self.source and name not in self.bases):
                continue
            before, after = self.source.shape(self.bases.get(name, name)), self.shape(name)
            if len(before) == 2 and before[0] == rows != after[0]:
                raise UnsupportedError(
                    f"{self.adapter.path}: {whole!r} has {after[0]} rows, one for each token, and the checkpoint has "
                    f"{rows} tokens: an adapter with a vocabulary of its own is not implemented: merge it with peft, "
                    "and save the result with its tokenizer"
                )

    def _is_ignored(self, name: str) -> bool:
        return any(re.search(pattern, name) for pattern in self.name_map.ignored)

    def _canonical(self, name: str) -> str:
        return self.name_map.rename(name).removeprefix(self.name_map.prefix + ".")

    def names(self) -> Collection[str]:
        return dict.fromkeys([*self.source.names(), *self.bases, *self.changes])

    def __contains__(self, name: object) -> bool:
        return name in self.source or name in self.bases or name in self.changes

    def shape(self, name: str) -> tuple[int, ...]:
        whole = self._replacement(name)
        return self.source.shape(self.bases.get(name, name)) if whole is None else self.adapter.source.shape(whole)

    def dtype(self, name: str) -> str:
        whole = self._replacement(name)
        return self.source.dtype(self.bases.get(name, name)) if whole is None else self.adapter.source.dtype(whole)

    def _replacement(self, name: str) -> str | None:
        """The tensor of the adapter that replaces one of the checkpoint."""
        return self.changes[name].parts.get("whole") if name in self.changes else None

    def read(self, name: str) -> Any:
        whole = self._replacement(name)
        base = self.source.read(self.bases.get(name, name)) if whole is None else self.adapter.source.read(whole)
        if (change := self.changes.get(name)) is None:
            return base
        more = change.parts.keys() - {"whole"}
        if not isinstance(base, RawTensor) or base.dtype not in _FLOATS:
            if not more:
                return base
            raise UnsupportedError(
                f"{name} is stored as {self.dtype(name)}: adapters can be added to {_FLOAT_TYPES} only"
            )
        wide = _widen(base)
        if not more:
            self._check_finite(name, wide)
            return base
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            changed = _round_to(self._add_adapter(name, wide, change), base.dtype)
        self._check_finite(name, np.where(np.isfinite(wide), _widen(changed), 0))
        return changed

    def _add_adapter(self, name: str, wide: np.ndarray, change: Change) -> np.ndarray:
        """The tensor, in float32 or float64, with all that the adapter adds."""
        parts, config, read = change.parts, self.adapter.config, self.adapter.read
        if "rows" in parts:
            rows, new = config.rows(change.module), read(parts["rows"])
            if new.shape != (len(rows), wide.shape[1]) or max(rows, default=0) >= len(wide):
                self._refuse(name, f"{len(rows)} rows up to {max(rows, default=0)} of shape {new.shape}", wide)
            wide = wide.copy()
            wide[rows] = new
        if "bias" in parts:
            new = read(parts["bias"])
            if new.shape != wide.shape:
                self._refuse(name, f"lora_B.bias of shape {new.shape}", wide)
            rank = self.adapter.source.shape(self._pair(change)["A"])[0]
            wide = wide + config.scale(change.module, rank) * new
        is_embedding = "embedding A" in parts
        if "A" in parts or is_embedding:
            a, b = (read(parts[f"embedding {x}" if is_embedding else x]) for x in "AB")
            scale, turns = config.scale(change.module, len(a)), is_embedding or change.is_transposed
            shape = wide.shape[::-1] if turns else wide.shape
            flat = b.reshape(len(b), -1), a.reshape(len(a), -1)  # of a convolution: B has pixels 1 x 1
            if (len(b), *a.shape[1:]) != shape or flat[0].shape[1] != len(a):
                self._refuse(name, f"{b.shape} x {a.shape}", wide)
            product = (flat[0] @ flat[1]).reshape(shape)
            if config.subtracted is not None and wide.ndim == 2 and not is_embedding:
                wide = wide - _initial(wide, config.subtracted, len(a), scale)
            wide = wide + scale * (product.T if turns else product)
            if "magnitude" in parts:
                wide = _with_magnitude(wide, read(parts["magnitude"]), -1 if turns else 0)
        return wide

    def _pair(self, change: Change) -> Mapping[str, str]:
        return self.adapter.changes[f"{change.module}.weight"].parts

    def _refuse(self, name: str, found: str, wide: np.ndarray) -> None:
        raise CheckpointError(f"the adapter's {found} does not fit {name!r} of shape {wide.shape}")

    def _check_finite(self, name: str, x: np.ndarray) -> None:
        if not np.isfinite(x).all():
            raise CheckpointError(f"{name} has NaN or infinity with the adapter {self.adapter.folder}")


def _initial(weight: np.ndarray, init: str, rank: int, scale: float) -> np.ndarray:
    """The product that an adapter began with, and that training took out of the base's matrix.

    pissa (Meng et al. 2024, https://arxiv.org/abs/2404.02948): the part of the largest singular values.
    olora (Büyükakyüz 2024, https://arxiv.org/abs/2406.01775): the first columns and rows of a QR decomposition.
    """
    if init == "pissa":
        u, s, v = np.linalg.svd(weight, full_matrices=False)
        return (u[:, :rank] * s[:rank]) @ v[:rank]
    q, r = np.linalg.qr(weight)
    return scale * (q[:, :rank] @ r[:rank])


def _with_magnitude(weight: np.ndarray, magnitude: np.ndarray, axis: int) -> np.ndarray:
    """Each output's weights, along an axis, with the length that DoRA learned for it (Liu et al. 2024,
    https://arxiv.org/abs/2402.09353).
    """
    others = tuple(i for i in range(weight.ndim) if i != axis % weight.ndim)
    length = np.sqrt((weight * weight).sum(others, keepdims=True))
    return magnitude.reshape(length.shape) / length * weight


def _widen(stored: Any) -> np.ndarray:
    if stored.dtype == "BF16":
        return (stored.array.astype(np.uint32) << 16).view(np.float32)
    return np.asarray(stored.array, np.float64 if stored.dtype == "F64" else np.float32)


def _round_to(x: np.ndarray, dtype: str) -> RawTensor:
    if dtype == "BF16":  # to nearest, ties to even
        bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
        return RawTensor(((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16), dtype)
    return RawTensor(np.ascontiguousarray(x, {"F16": np.float16, "F32": np.float32, "F64": np.float64}[dtype]), dtype)
