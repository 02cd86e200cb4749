"""The disk cache of traced graphs, keyed by the bytes of the model's weights and of the code that makes graphs.

A graph is two or three files.  NAME.json has its inputs, outputs and guards, and NAME.onnx is the graph.  Its weights
refer to the checkpoint's own files; only if too many of them differ from those files, NAME.onnx.data has them all.
Each file is written whole or not at all, the JSON last; a graph that does not match its JSON is traced again.

The folder is `assets/zoo/onnx` beside the hub's cache (HF_HOME, HF_ASSETS_CACHE).  The graphs used least recently are
removed while all of them together have more than LIMIT bytes.  One process writes at a time.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from filelock import FileLock, Timeout

from ...errors import ZooError
from ...files.assets import assets_folder
from ...files.atomic_write import atomic_write, replace
from ...files.leftovers import temporary_folder
from ...nn import leaves
from ...weights.fingerprint import files_digest, weights_digest
from ...weights.mapped import region_of
from ...weights.memory import machine_memory
from .proto import MAX_INLINE_BYTES, Places, nbytes, numbers, places_beside, save_placed
from .session import Place, runtime
from .signature import Signature

if TYPE_CHECKING:
    from ...pretrained import Pretrained
    from .trace import Traced

LIMIT = 8 << 30  # bytes
MIN_ANNOUNCED_BYTES = 100 << 20  # bytes whose writing is announced
LOCK_TIMEOUT = 600  # seconds to wait for another process's graph
MAX_EMBEDDED_BYTES = 64 << 20  # bytes of weights that NAME.onnx may hold beside references to the checkpoint's files
VERSION = 3  # the version of the files' format
# The files and folders of zoo/ whose code runs while a model is read and traced.
PROGRAM = (
    *("config.py", "nn.py", "pretrained.py", "rope.py"),
    *("cache", "engines/onnx", "inputs", "models", "ops", "quant", "weights"),
)


class CachedGraph(NamedTuple):
    """A graph on disk.  folder: the checkpoint's, if the graph refers to weights in its files."""

    signature: Signature
    onnx: Path
    folder: Path | None
    weight_bytes: int  # what a session packs after some runs; 0: it packs all at once
    constants: Mapping[str, Place] = {}  # in NAME.onnx.data, if a session packs all at once


def root() -> Path:
    """The folder of all cached graphs."""
    return assets_folder() / "onnx"


def fingerprint(model: Pretrained, files: Iterable[Path]) -> str:
    """A hash of the class, the config and the weights: of the files if all weights follow from them, else of arrays."""
    config, files = json.dumps(model.config.to_dict(), sort_keys=True, default=str), tuple(files)
    weights = files_digest(files) if files else weights_digest(leaves(model))
    return hashlib.sha256(f"{model.architecture} {config} {weights}".encode()).hexdigest()


@functools.cache
def program() -> str:
    """A hash of what makes a graph: the source files of PROGRAM and the version of ONNX Runtime."""
    package = Path(__file__).parents[2]
    digest = hashlib.sha256(json.dumps([VERSION, runtime().__version__]).encode())
    for part in PROGRAM:
        found = [package / part] if part.endswith(".py") else sorted((package / part).rglob("*.py"))
        for path in found:
            content = path.read_bytes()
            digest.update(f"{path.relative_to(package).as_posix()} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()


class GraphFolder:
    """The cached graphs of one model in one precision."""

    def __init__(self, key: str):
        name = hashlib.sha256(f"{program()} {key}".encode()).hexdigest()[:32]
        self.path = root() / name
        self._temporary = ExitStack()
        self._own: Path | None = None

    def graphs(self, method: str, takes: str) -> Iterator[CachedGraph]:
        """The undamaged graphs of a method for inputs of one form; damaged ones are removed."""
        try:
            found = sorted(self.path.glob("*.json"))
        except OSError:
            return
        for path in found:
            try:
                raw = json.loads(path.read_bytes())
                if (raw["method"], raw["takes"]) != (method, takes):
                    continue
                kept = _read_graph(path, raw)
            except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
                for part in (path, path.with_suffix(".onnx"), path.with_suffix(".onnx.data")):
                    with suppress(OSError):
                        part.unlink()
                continue
            with suppress(OSError):
                os.utime(path)
            yield kept

    def writable(self) -> Path:
        """The folder itself, or a temporary one where none can be made there.  ZooError: neither can."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.path):
                return self.path
        except OSError as e:
            try:
                self._own = self._own or self._temporary.enter_context(temporary_folder())
            except OSError:
                raise ZooError(f"cannot write a graph to {self.path} (HF_ASSETS_CACHE): {e.strerror or e}") from e
            return self._own

    @contextmanager
    def making(self) -> Iterator[Path]:
        """The folder to write a graph to; meanwhile no other process writes there, where the file system has locks."""
        folder = self.writable()
        lock = FileLock(folder.parent.with_suffix(".lock") if folder == self.path else folder / ".lock")
        try:
            lock.acquire(LOCK_TIMEOUT)
            folder.mkdir(parents=True, exist_ok=True)  # the process before may have removed it, empty, to make room
            for left in folder.glob(".*"):  # by a process that was killed
                shutil.rmtree(left, ignore_errors=True)
        except (OSError, NotImplementedError, Timeout):
            pass
        try:
            yield folder
        finally:
            lock.release()


def _read_graph(path: Path, raw: dict[str, Any]) -> CachedGraph:
    """Return the graph that a JSON file describes.  ValueError: a file beside it has changed."""
    onnx, data = path.with_suffix(".onnx"), path.with_suffix(".onnx.data")
    if raw["key"] != path.parent.name:
        raise ValueError(f"{path} is of another model")
    if hashlib.sha256(onnx.read_bytes()).hexdigest() != raw["sha256"]:
        raise ValueError(f"{onnx} is damaged")
    if raw["data"] is not None and files_digest([data]) != raw["data"]:
        raise ValueError(f"{data} is damaged")
    folder = None if raw["folder"] is None else Path(raw["folder"])
    for name, digest in raw["uses"].items():
        if folder is None or files_digest([folder / name]) != digest:
            raise ValueError(f"{folder} has another {name}")
    check_memory(raw["method"], raw["memory"])
    constants = {name: Place(*place) for name, place in raw["constants"].items()}
    if constants and max(place.end for place in constants.values()) > os.path.getsize(data):
        raise ValueError(f"{data} ends before a constant does")
    return CachedGraph(Signature.from_json(raw["signature"]), onnx, folder, raw["weight_bytes"], constants)


def write_graph(traced: Traced, folder: Path, method: str, takes: str) -> CachedGraph:
    """Write a graph into a folder of the cache.

    ZooError: it needs more memory than the machine has, or more room than the disk.
    """
    try:
        return _write_graph(traced, folder, method, takes)
    except OSError as e:
        raise ZooError(f"cannot write a graph to {folder} (HF_ASSETS_CACHE): {e.strerror or e}") from e


def _write_graph(traced: Traced, folder: Path, method: str, takes: str) -> CachedGraph:
    signature = traced.signature
    name = hashlib.sha256(json.dumps([method, takes, signature.to_json()]).encode()).hexdigest()[:32]
    whole = sum(nbytes(stored) for stored in traced.constants.values())
    check_memory(method, whole)
    # Unpacked, MatMulNBits takes seconds for a row: such graphs are packed at once.
    weight_bytes = 0 if any(node.op == "MatMulNBits" for node in traced.nodes) else whole
    with tempfile.TemporaryDirectory(dir=folder, prefix=".", ignore_cleanup_errors=True) as part:
        onnx = Path(part) / f"{name}.onnx"
        data = onnx.with_name(f"{name}.onnx.data")
        base, uses = save_beside(traced, onnx, method)
        constants = {}
        if base is None and not weight_bytes:
            for constant, begin in places_beside(traced).items():
                stored = traced.constants[constant]
                constants[constant] = Place(str(stored.dtype), stored.shape, begin)
        about = {
            "key": folder.name,
            "method": method,
            "takes": takes,
            "signature": signature.to_json(),
            "sha256": hashlib.sha256(onnx.read_bytes()).hexdigest(),
            "data": files_digest([data]) if data.exists() else None,
            "folder": None if base is None else str(base),
            "uses": {file: files_digest([base / file]) for file in uses} if base else {},
            "weight_bytes": weight_bytes,
            "memory": whole,
            "constants": constants,
        }
        for path in (data, onnx):
            if path.exists():
                replace(path, folder / path.name)
    with atomic_write(folder / f"{name}.json") as path:
        path.write_text(json.dumps(about), encoding="utf-8")
    _limit_size(folder)
    return CachedGraph(signature, folder / f"{name}.onnx", base, weight_bytes, constants)


def save_beside(traced: Traced, onnx: Path, method: str) -> tuple[Path | None, set[str]]:
    """Write a graph that refers to the checkpoint's files -> their folder and their names; None: all of it.

    Writing much is announced in a line on stderr, with its seconds.
    """
    base, places = _places(traced)
    rest = sum(nbytes(stored) for name, stored in traced.constants.items() if name not in places)
    if rest > MAX_EMBEDDED_BYTES:
        base, places, rest = None, {}, sum(map(nbytes, traced.constants.values()))
    free, began = shutil.disk_usage(onnx.parent).free, time.monotonic()
    full = f"{onnx.parent.parent}: the graph of {method} needs {_size(rest)} on the disk"
    advice = "free some, or set HF_ASSETS_CACHE to a folder on another disk"
    if rest > free:
        raise ZooError(f"{full}, and {_size(free)} are free: {advice}")
    says = rest > MIN_ANNOUNCED_BYTES and sys.stderr is not None
    if says:
        print(f"zoo: writing {_size(rest)} for ONNX Runtime ({method}, once)", end="", file=sys.stderr, flush=True)
    try:
        if base is None:
            traced.save(onnx)
        else:
            save_placed(traced, onnx, places)
    except OSError as e:
        raise ZooError(f"{full}, which cannot be written: {e.strerror or e}: {advice}") from e
    finally:
        if says:
            print(f": {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return base, {name for of in places.values() for name, _ in of}


def check_memory(method: str, needed: int) -> None:
    """Raise ZooError if a graph's constants are larger than the machine's memory, or what its container may use."""
    there = machine_memory()
    if there is not None and needed > there:
        raise ZooError(
            f"the graph of {method} needs {_size(needed)} of memory, and there are {_size(there)}: "
            "weights='int4' needs the least"
        )


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def _places(traced: Traced) -> tuple[Path | None, Places]:
    """The checkpoint's folder, and (file, offset) for each part of each constant that its files hold."""
    found: dict[str, list[tuple[Path, int]]] = {}
    for name, stored in traced.constants.items():
        arrays = [numbers(part) for part in stored.parts]
        places = [region_of(array) if array is not None and array.flags.c_contiguous else None for array in arrays]
        if nbytes(stored) > MAX_INLINE_BYTES and None not in places:
            found[name] = [(Path(os.path.realpath(place.path)), place.begin) for place in places if place]
    folders = {path.parent for places in found.values() for path, _ in places}
    if len(folders) != 1:
        return None, {}
    return folders.pop(), {name: [(path.name, at) for path, at in places] for name, places in found.items()}


def _limit_size(kept: Path) -> None:
    """Remove the folders used least recently, but never `kept`, until at most LIMIT bytes are left."""
    folders = []
    with suppress(OSError):
        for folder in root().iterdir():
            with suppress(OSError):
                stats = [os.stat(path) for path in folder.rglob("*")]
                folders.append((max((s.st_mtime for s in stats), default=0.0), sum(s.st_size for s in stats), folder))
    total = sum(size for _, size, _ in folders)
    for _, size, folder in sorted(folders):
        if total <= LIMIT:
            return
        if folder != kept:
            shutil.rmtree(folder, ignore_errors=True)
            total -= size
