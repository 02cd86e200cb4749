"""Opens weight files as one Source: chooses among a repository's files, reads indices of shards, joins files."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

import numpy as np

from .. import plugins
from ..errors import CheckpointError, MissingWeightError, NotFoundError, list_names, nearest
from ..files.inside import checkpoint_file, is_file_name
from ..files.json_file import read_json
from ..files.pages import release
from ..quant import QuantRows
from ..typing import RawTensor
from .packed_names import with_packed_tensors
from .source import Source

# In the order in which transformers looks for them; it does not know the last two.
WEIGHT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
    "model.packed.safetensors",  # written by `zoo.save` for quantised matrices
    "model.npz",  # written by numpy.savez
)
_INDEX = ".index.json"
Index = dict[str, list[str]]  # name of a shard -> names of its tensors
_WEIGHT_SUFFIXES = {
    *(".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".pkl", ".npz", ".h5", ".msgpack"),
    *(".onnx", ".gguf", ".ggml", ".ot", ".tflite", ".mlmodel"),
}


def choose_weight_file(names: Collection[str]) -> str:
    """The weight file, or the index of weight files, to load among the file names of a repository or folder.

    Only the names in WEIGHT_FILES, or of a format in `plugins`: no variants (`model.fp16.safetensors`), subfolders or
    other frameworks.
    """
    for name in (*WEIGHT_FILES, *plugins.FORMATS):
        if name in names:
            return name
    others = [n for n in names if PurePosixPath(n).suffix.lower() in _WEIGHT_SUFFIXES or n.endswith(_INDEX)]
    found = list_names(sorted(others)) or "no weight file at all"
    raise NotFoundError(f"no weights that zoo can load: found {found}, expected {' or '.join(WEIGHT_FILES)}")


def weight_files(folder: Path, index: Index | None = None) -> tuple[list[Path], Index | None]:
    """The weight file in a folder, or an index and its shards, with its content; NotFoundError for one missing.

    index: the content of the index, if it was read.
    """
    names = os.listdir(folder)
    try:
        paths = [checkpoint_file(folder, choose_weight_file(names))]
    except NotFoundError as error:
        raise NotFoundError(f"{folder} has {error}") from error
    if index is None and is_index(paths[0].name):
        index = read_index(paths[0])
    paths += [checkpoint_file(folder, shard) for shard in index or ()]
    for path in paths:
        if not path.is_file():
            raise NotFoundError(f"{folder} has no {path.name}, which the index names{nearest(path.name, names)}")
    return paths, index


def is_index(name: str) -> bool:
    """Return True for the file that names the shards of weights."""
    return name.endswith(_INDEX)


def open_weights(
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], index: Index | None = None
) -> Source:
    """The tensors of a weight file, of several files, or of an index and its shards; a quantised matrix is one tensor.

    files: one path or several; of a folder, its `weight_files`.  Shards are next to their index,
    so an index alone is enough; files given with an index must be its shards.  index: its content, if it was read.
    """
    return with_packed_tensors(_open_all(files, index))


def _open_all(files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], index: Index | None) -> Source:
    paths = [Path(files)] if isinstance(files, str | os.PathLike) else [Path(f) for f in files]
    if len(paths) == 1 and paths[0].is_dir():
        try:
            paths, index = weight_files(paths[0])
        except OSError as e:
            raise CheckpointError(f"{paths[0]}: cannot be read: {e}") from None
    indices = [path for path in paths if is_index(path.name)]
    given = [path for path in paths if path not in indices]
    if not indices:
        if not given:
            raise NotFoundError("no weight file was given")
        return (
            _open(given[0]) if len(given) == 1 or _are_parts(given) else Sharded({path: _open(path) for path in given})
        )
    if len(indices) > 1:
        raise CheckpointError(f"{indices[0]} and {indices[1]}: expected one index, found two")
    index = read_index(indices[0]) if index is None else index
    beside = {shard: indices[0].parent / shard for shard in index}
    for path in given:
        if path.absolute() not in (p.absolute() for p in beside.values()):
            raise CheckpointError(f"{path} is not a shard of {indices[0]}{nearest(path.name, beside)}")
    for path in beside.values():
        _check_inside(path, indices[0])
    if indices[0].name in plugins.FORMATS:
        return plugins.weight_format(indices[0].name).open_index(indices[0], list(beside.values()))
    return Sharded({path: _open(path) for path in beside.values()}, index, indices[0])


def read_index(path: str | Path) -> Index:
    """The content of an index file, which has a `weight_map` of name -> shard.

    A shard must be a plain file name, so that no index can lead out of its folder.
    """
    found = read_json(path, error=CheckpointError).get("weight_map")
    if not isinstance(found, dict) or not found:
        kind = "nothing" if not found else type(found).__name__
        raise CheckpointError(f"{path}: weight_map is {kind}, expected an object of tensor names and file names")
    index: Index = {}
    for name, shard in found.items():
        if not isinstance(shard, str):
            raise CheckpointError(f"{path}: {name[:200]!r} is mapped to a {type(shard).__name__}, not to a file name")
        if shard not in index and not is_file_name(shard):
            raise CheckpointError(f"{path}: the shard {shard[:200]!r} is not the plain name of a file beside the index")
        index.setdefault(shard, []).append(name)
    return index


class Sharded:
    """A Source made of the Source of each shard, checked against the index if there is one.

    It has the tensors that the index does not list, too, so that they are reported.
    """

    def __init__(self, shards: dict[Path, Source], index: Index | None = None, index_path: Path | None = None):
        """shards: in order, by path; index: from `read_index` of the file `index_path`."""
        self.files = [file for source in shards.values() for file in source.files]
        self._of: dict[str, Source] = {}
        paths: dict[str, Path] = {}
        for path, source in shards.items():
            for name in source.names():
                if name in self._of:
                    raise CheckpointError(f"the tensor {name[:200]!r} is both in {paths[name]} and in {path}")
                self._of[name], paths[name] = source, path
        for shard, names in (index or {}).items():
            for name in names:
                if name not in paths:
                    raise CheckpointError(f"{index_path}: {shard} has no {name[:200]!r}, and no other shard has it")
                if paths[name].name != shard:
                    raise CheckpointError(
                        f"{index_path}: {name[:200]!r} is mapped to {shard}, but is in {paths[name].name}"
                    )

    def names(self) -> Collection[str]:
        return self._of.keys()

    def __contains__(self, name: object) -> bool:
        return name in self._of

    def shape(self, name: str) -> tuple[int, ...]:
        return self._source(name).shape(name)

    def dtype(self, name: str) -> str:
        return self._source(name).dtype(name)

    def read(self, name: str) -> RawTensor | QuantRows:
        return self._source(name).read(name)

    def _source(self, name: str) -> Source:
        try:
            return self._of[name]
        except KeyError:
            raise MissingWeightError(f"none of {len(self.files)} shards has {name}{nearest(name, self._of)}") from None


def non_finite(source: Source, names: Iterable[str] | None = None, stays: bool = True) -> list[str]:
    """The names of tensors (default: among all) that contain NaN or infinity.  Reads all of their bytes, in blocks.

    stays: float32, which NumPy uses in place, stays in memory.
    """
    is_bad = partial(_is_bad, stays=stays)
    return [n for n in (source.names() if names is None else names) if any(map(is_bad, _blocks(source.read(n))))]


_BLOCK = 1 << 20
# Element types that NumPy lacks -> the bits that are all set if a number is not finite.
_NOT_FINITE = {"BF16": 0x7F80, "F8_E5M2": 0x7C, "F8_E4M3": 0x7F, "F8_E8M0": 0xFF}


def _blocks(stored: RawTensor | QuantRows) -> Iterator[RawTensor]:
    if isinstance(stored, QuantRows):  # scales are checked when they are read
        return
    flat = stored.array.reshape(-1)
    for begin in range(0, flat.size, _BLOCK):
        yield RawTensor(flat[begin : begin + _BLOCK], stored.dtype)


def _is_bad(block: RawTensor, stays: bool) -> bool:
    bad = _has_bad(*block)
    if block.dtype != "F32" or not stays:
        release(block.array)
    return bad


def _has_bad(array: np.ndarray, dtype: str) -> bool:
    if dtype in _NOT_FINITE:
        bits = _NOT_FINITE[dtype]
        return bool(((array & bits) == bits).any())
    if dtype.endswith("FNUZ"):  # no infinity, and NaN is what would be -0
        return bool((array == 0x80).any())
    if array.dtype in (np.float32, np.float64):
        with np.errstate(all="ignore"):
            if math.isfinite(np.dot(array, array)):  # twice as fast; an overflow is checked below
                return False
    return array.dtype.kind in "fc" and not bool(np.isfinite(array).all())


def _open(path: Path) -> Source:
    suffix = path.suffix.lower()
    if suffix == ".safetensors":
        from .safetensors import SafetensorsFile

        return SafetensorsFile(path)
    if suffix in (".bin", ".pt", ".pth"):
        from .torch_bin import TorchBinFile

        return TorchBinFile(path)
    if suffix == ".npz":
        from .npz import NpzFile

        return NpzFile(path)
    if suffix == ".gguf":
        from .gguf.source import GGUFFile

        return GGUFFile(path)
    raise CheckpointError(f"{path}: expected a .safetensors, .bin, .npz or .gguf file, found {suffix or 'no suffix'}")


def _are_parts(paths: Sequence[Path]) -> bool:
    """True if these are the parts of one GGUF file."""
    from .gguf.parts import paths_of

    return list(paths) == paths_of(paths[0])


def _check_inside(path: Path, index: Path) -> None:
    checkpoint_file(path.parent, path.name)
    if not path.exists():
        there = sorted(p.name for p in path.parent.iterdir())
        raise NotFoundError(f"{index} lists {path.name}, which is not in its folder{nearest(path.name, there)}")
