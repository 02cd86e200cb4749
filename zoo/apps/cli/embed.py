"""`zoo embed`: the vectors of many texts or images as one file, written from disk so that memory stays bounded."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError, ZooError, quantity
from ...files.atomic_write import atomic_write, one_writer
from ...optional import import_optional
from ...tasks.progress import Progress, write_line
from ...tasks.vectors import quantise, truncate
from ..batch.mapping import job_key
from .generation import load
from .parser import UsageError
from .run import count_stdin, stdin_blocks
from .vector_spool import VectorSpool

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
    task: Any = load(args, "embed")
    reads_images = hasattr(task, "processor")
    if args.inputs in ([], ["-"]):
        total, items = count_stdin(), (line for _, lines in stdin_blocks() for line in lines)
    else:
        total, items = len(args.inputs), iter(args.inputs)
    try:
        with (
            one_writer(path, 0),
            VectorSpool(path, _key(task, args), args.resume, _record_image if reads_images else str) as spool,
        ):
            rest = spool.new_inputs(items)
            left, unit = None if total is None else max(0, total - spool.known), "images" if reads_images else "texts"
            with Progress(left, unit=unit) as advance:
                spool.add((_images if reads_images else _texts)(task, rest, args, advance))
            if spool.count == 0:
                raise InputError("no INPUT: there is nothing to embed")
            x = spool.array()
            with atomic_write(path) as partial, Progress(None, unit="", what=f"writing {path}"):
                WRITERS[path.suffix](partial, x, _ranges(x, args.precision), args.precision, spool.texts())
            del x  # Windows removes no file that is mapped
    except OSError as e:
        raise ZooError(f"cannot write {path}: {e.strerror or e}") from e
    known = f", {spool.known} of them from before" if spool.known else ""
    write_line(
        f"zoo: wrote {path}: {quantity(spool.count, 'vector')} of {spool.size} dimensions, {args.precision}{known}"
    )


def _key(task: Any, args: argparse.Namespace) -> str:
    """A hash of what decides the vectors but for the inputs and --precision, which the writer applies."""
    names = (*TEXT_OPTIONS, "truncate_dim")
    options = {name: getattr(args, name) for name in names}
    return job_key(task.checkpoint, "embed", {}, options, task.options)


def _record_image(path: str) -> list[Any]:
    """The path of an image with what shows that its file has changed."""
    try:
        state = os.stat(path)
    except OSError:
        return [path]
    return [path, state.st_size, state.st_mtime_ns]


Advance = Callable[[int], object]


def _texts(task: Any, texts: Iterator[str], args: argparse.Namespace, advance: Advance) -> Iterator[np.ndarray]:
    options = {name: getattr(args, name) for name in TEXT_OPTIONS if getattr(args, name) is not None}
    if args.route is not None:
        if args.prompt is None and args.prompt_name is None:
            options |= task.prompt_for(args.route)
        if not task.has_routes:
            del options["route"]
    return task.stream(texts, truncate_dim=args.truncate_dim, progress=advance, **options)


def _images(task: Any, paths: Iterator[str], args: argparse.Namespace, advance: Advance) -> Iterator[np.ndarray]:
    if given := [name for name in TEXT_OPTIONS[:4] if getattr(args, name) is not None and name != "pooling"]:
        raise UsageError(f"--{given[0].replace('_', '-')} is for texts, and {args.name} reads images")
    while some := list(islice(paths, IMAGES)):
        given = {} if args.pooling is None else {"pooling": args.pooling}
        found = task(some, **given, progress=False)
        advance(len(some))
        yield from truncate(found, args.truncate_dim, bool(args.normalize))


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


def _npy(path: Path, x: np.ndarray, ranges: Any, precision: str, texts: Iterator[str]) -> None:
    sample = next(_blocks(x[:1], ranges, precision))
    header = {"descr": sample.dtype.str, "fortran_order": False, "shape": (len(x), sample.shape[1])}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for block in _blocks(x, ranges, precision):
            file.write(block.tobytes())


def _safetensors(path: Path, x: np.ndarray, ranges: Any, precision: str, texts: Iterator[str]) -> None:
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


def _parquet(path: Path, x: np.ndarray, ranges: Any, precision: str, texts: Iterator[str]) -> None:
    pa, pq = import_optional("pyarrow", "a .parquet file"), import_optional("pyarrow.parquet", "a .parquet file")
    sample = next(_blocks(x[:1], ranges, precision))
    vector = pa.list_(pa.from_numpy_dtype(sample.dtype), sample.shape[1])
    schema = pa.schema([("text", pa.string()), ("embedding", vector)])
    with pq.ParquetWriter(path, schema) as writer:
        for block in _blocks(x, ranges, precision):
            column = pa.array(list(islice(texts, len(block))), pa.string())
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(block.ravel()), block.shape[1])
            writer.write_table(pa.Table.from_arrays([column, vectors], schema=schema))


WRITERS: dict[str, Callable[..., None]] = {".npy": _npy, ".parquet": _parquet, ".safetensors": _safetensors}
