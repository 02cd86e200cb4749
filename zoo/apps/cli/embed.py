"""`zoo embed`: the vectors of many texts or images as one file, written from disk so that memory stays bounded."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import numpy as np

import zoo

from ...errors import InputError, ZooError
from ...files.atomic_write import atomic_write
from ...optional import import_optional
from ...tasks.vectors import quantise, truncate
from .generation import loading_of
from .parser import UsageError
from .run import stdin_blocks

TEXT_OPTIONS = ("prompt", "prompt_name", "pooling", "route", "normalize")
BLOCK = 4096  # vectors in memory at once
IMAGES = 32
SAFETENSORS = {"float32": "F32", "int8": "I8", "uint8": "U8"}


def embed(args: argparse.Namespace) -> None:
    """The command, with the arguments as parsed."""
    path = Path(args.output)
    if path.suffix not in WRITERS:
        raise UsageError(f"--output {args.output}: expected a name that ends in {', '.join(WRITERS)}")
    if path.suffix == ".parquet":
        import_optional("pyarrow", "a .parquet file")  # a missing package is an error before the work
    if not args.inputs and (sys.stdin is None or sys.stdin.isatty()):
        raise UsageError("no INPUT: give texts or paths of images, or '-' for the lines of stdin")
    task: Any = zoo.load(args.name, task="embed", **loading_of(args))
    vectors = _images if hasattr(task, "processor") else _texts
    items = args.inputs if args.inputs not in ([], ["-"]) else (line for _, lines in stdin_blocks() for line in lines)
    try:
        with (
            atomic_write(path) as partial,
            tempfile.TemporaryFile(dir=path.parent) as raw,
            tempfile.TemporaryFile("w+", encoding="utf-8", dir=path.parent) as texts,
        ):
            count, size = _spool(vectors(task, _tee(items, texts), args), raw)
            if count == 0:
                raise InputError("no INPUT: there is nothing to embed")
            x = np.memmap(raw, np.float32, "r", shape=(count, size))
            texts.seek(0)
            WRITERS[path.suffix](partial, x, _ranges(x, args.precision), args.precision, texts)
    except OSError as e:
        raise ZooError(f"cannot write {path}: {e.strerror or e}") from e
    print(f"zoo: wrote {path}: {count} vectors of {size} dimensions, {args.precision}", file=sys.stderr)


def _texts(task: Any, texts: Iterator[str], args: argparse.Namespace) -> Iterator[np.ndarray]:
    options = {name: getattr(args, name) for name in TEXT_OPTIONS if getattr(args, name) is not None}
    if args.route is not None:
        if args.prompt is None and args.prompt_name is None:
            options |= task.prompt_for(args.route)
        if not task.has_routes:
            del options["route"]
    return task.stream(texts, truncate_dim=args.truncate_dim, **options)


def _images(task: Any, paths: Iterator[str], args: argparse.Namespace) -> Iterator[np.ndarray]:
    if given := [name for name in TEXT_OPTIONS[:4] if getattr(args, name) is not None and name != "pooling"]:
        raise UsageError(f"--{given[0].replace('_', '-')} is for texts, and {args.name} reads images")
    while some := list(islice(paths, IMAGES)):
        found = task(some, pooling=args.pooling, progress=False)
        yield from truncate(found, args.truncate_dim, bool(args.normalize))


def _tee(items: Any, file: IO[str]) -> Iterator[str]:
    """The inputs, each written to a line of a file as it passes."""
    for item in items:
        file.write(json.dumps(item) + "\n")
        yield item


def _spool(vectors: Iterator[np.ndarray], file: IO[bytes]) -> tuple[int, int]:
    """Write vectors one after the other; their number and their size."""
    first = next(vectors, None)
    if first is None:
        return 0, 0
    count = 0
    for vector in chain([first], vectors):
        file.write(vector.astype(np.float32, copy=False).tobytes())
        count += 1
    file.flush()
    return count, len(first)


def _ranges(x: np.ndarray, precision: str) -> np.ndarray | None:
    if precision not in ("int8", "uint8"):
        return None
    if len(x) < 2:
        raise InputError(f"--precision {precision} needs at least two vectors: their ranges are divided into 255 steps")
    parts = [x[at : at + BLOCK] for at in range(0, len(x), BLOCK)]
    return np.stack([np.min([p.min(0) for p in parts], axis=0), np.max([p.max(0) for p in parts], axis=0)])


def _blocks(x: np.ndarray, ranges: Any, precision: str) -> Iterator[np.ndarray]:
    for at in range(0, len(x), BLOCK):
        yield np.ascontiguousarray(quantise(x[at : at + BLOCK], precision, ranges))


def _npy(path: Path, x: np.ndarray, ranges: Any, precision: str, texts: IO[str]) -> None:
    sample = next(_blocks(x[:1], ranges, precision))
    header = {"descr": sample.dtype.str, "fortran_order": False, "shape": (len(x), sample.shape[1])}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for block in _blocks(x, ranges, precision):
            file.write(block.tobytes())


def _safetensors(path: Path, x: np.ndarray, ranges: Any, precision: str, texts: IO[str]) -> None:
    sample = next(_blocks(x[:1], ranges, precision))
    tensors: dict[str, Any] = {"embeddings": _entry(sample, len(x), 0)}
    if ranges is not None:
        tensors["ranges"] = _entry(ranges, 2, len(x) * sample.nbytes)
    header = json.dumps({"__metadata__": {"precision": precision}, **tensors}).encode()
    header += b" " * (-len(header) % 8)
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for block in _blocks(x, ranges, precision):
            file.write(block.tobytes())
        file.write(b"" if ranges is None else ranges.tobytes())


def _entry(row: np.ndarray, count: int, at: int) -> dict[str, Any]:
    shape = [count, row.shape[1]]
    nbytes = count * row.shape[1] * row.itemsize
    return {"dtype": SAFETENSORS[row.dtype.name], "shape": shape, "data_offsets": [at, at + nbytes]}


def _parquet(path: Path, x: np.ndarray, ranges: Any, precision: str, texts: IO[str]) -> None:
    pa, pq = import_optional("pyarrow", "a .parquet file"), import_optional("pyarrow.parquet", "a .parquet file")
    sample = next(_blocks(x[:1], ranges, precision))
    vector = pa.list_(pa.from_numpy_dtype(sample.dtype), sample.shape[1])
    schema = pa.schema([("text", pa.string()), ("embedding", vector)])
    with pq.ParquetWriter(path, schema) as writer:
        for block in _blocks(x, ranges, precision):
            column = pa.array([json.loads(line) for line in islice(texts, len(block))], pa.string())
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(block.ravel()), block.shape[1])
            writer.write_table(pa.Table.from_arrays([column, vectors], schema=schema))


WRITERS: dict[str, Callable[..., None]] = {".npy": _npy, ".parquet": _parquet, ".safetensors": _safetensors}
