"""A GGUF file that was split: NAME-00001-of-0000N.gguf and those that follow, with the metadata in the first.

Each part has `split.no` (from 0), `split.count` and how many tensors all have, as llama.cpp's gguf-split writes them.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from ...errors import CheckpointError, NotFoundError, nearest
from .header import Header, TensorEntry, read_header

_NAME = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.gguf", re.DOTALL)


def parts_of(file: str) -> list[str]:
    """The names of all parts of a split file, in order, from the name of one; of a whole file its own name."""
    found = _NAME.fullmatch(file)
    if not found or not 1 <= int(found[2]) <= int(found[3]):
        return [file]
    return [f"{found[1]}-{i + 1:05}-of-{found[3]}.gguf" for i in range(int(found[3]))]


def paths_of(path: Path) -> list[Path]:
    """The parts beside a path."""
    return [path.with_name(name) for name in parts_of(path.name)]


def check_all(file: str, names: Collection[str]) -> None:
    """Raise NotFoundError if a part of a split file is not among the `names`; file: the name of one part."""
    parts = parts_of(file)
    for i, part in enumerate(parts):
        if len(parts) > 1 and part not in names:
            near = nearest(part, [name for name in names if name not in parts])
            raise NotFoundError(f"{file} is one of {len(parts)} parts, and part {i + 1} is missing: {part}{near}")


def read_parts(path: Path) -> Header:
    """The header of a file, or of all its parts as one.

    NotFoundError where a part is missing, CheckpointError where they do not belong together.
    """
    paths = paths_of(path)
    if len(paths) > 1:
        check_all(path.name, {other.name for other in path.parent.iterdir()} if path.parent.is_dir() else ())
    headers = [read_header(part) for part in paths]
    tensors: dict[str, TensorEntry] = {}
    for i, (part, header) in enumerate(zip(paths, headers, strict=True)):
        found = tuple(header.metadata.get(f"split.{key}", whole) for key, whole in (("no", 0), ("count", 1)))
        wanted = {(i, len(paths))} | ({(0, 0)} if len(paths) == 1 else set())
        if not all(type(value) is int for value in found) or found not in wanted:
            raise CheckpointError(
                f"{part}: says that it is number {_shorten(found[0])} (from 0) of {_shorten(found[1])} parts; by its "
                f"name it is number {i} of {len(paths)}: parts are called NAME-00001-of-0000N.gguf"
            )
        for name, entry in header.tensors.items():
            if name in tensors:
                raise CheckpointError(f"{part}: the tensor {name[:200]!r} is in {paths[tensors[name].file].name} too")
            tensors[name] = entry._replace(file=i)
    total = headers[0].metadata.get("split.tensors.count", len(tensors))
    if type(total) is not int or total != len(tensors):
        raise CheckpointError(f"{paths[0]}: says {_shorten(total)} tensors, {len(paths)} parts have {len(tensors)}")
    return Header(headers[0].metadata, tensors, tuple(data for header in headers for data in header.data))


def _shorten(value: object) -> str:
    return f"{value!r:.40}"
