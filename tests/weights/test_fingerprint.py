"""Fingerprints of weights: every byte counts, and what a file holds is hashed once while it stays as it is."""

from __future__ import annotations

import json
import os
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zoo.quant import QUANT_TYPES, QuantRows, QuantTensor
from zoo.typing import RawTensor
from zoo.weights import fingerprint
from zoo.weights.fingerprint import files_digest, weights_digest
from zoo.weights.safetensors import SafetensorsFile, write_safetensors


@pytest.fixture
def hashed(tmp_path, monkeypatch) -> list[int]:
    """The number of bytes of each chunk that is hashed; digests are kept of files of any size and age."""
    monkeypatch.setenv("HF_ASSETS_CACHE", str(tmp_path / "assets"))
    monkeypatch.setattr(fingerprint, "MIN_FILE_SIZE", 0)
    monkeypatch.setattr(fingerprint, "SETTLE_SECONDS", -1.0)
    seen: list[int] = []
    for name in ("_hash_of_array", "_hash_of_file"):
        original = getattr(fingerprint, name)

        def noted(chunk: Any, original: Any = original) -> bytes:
            seen.append(getattr(chunk, "nbytes", -1))
            return original(chunk)

        monkeypatch.setattr(fingerprint, name, noted)
    return seen


def random_array(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    return np.frombuffer(rng.bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize), dtype).reshape(shape).copy()


@pytest.mark.parametrize("chunk", [64, 8 << 20])
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i1", "u1"])
def test_every_byte_counts(dtype, chunk, rng, monkeypatch):
    monkeypatch.setattr(fingerprint, "CHUNK", chunk)
    x = random_array(rng, dtype, (13, 7))
    data = x.view(np.uint8).reshape(-1)
    seen = {weights_digest([("w", x)])}
    for at in range(data.size):
        data[at] ^= 1 << int(rng.integers(8))
        seen.add(weights_digest([("w", x)]))
    assert len(seen) == data.size + 1


def test_blocks_of_a_file_count_in_full_and_are_not_copied(monkeypatch):
    """Fields of blocks are strided views, which to flatten would copy the whole file."""
    blocks = np.zeros((2048, 64), [("d", np.float16), ("qs", np.uint8, 16)])
    leaf = QuantTensor([QuantRows(QUANT_TYPES["Q4_0"], 64 * 32, (blocks["d"], blocks["qs"]))])
    monkeypatch.setattr(fingerprint, "CHUNK", 1 << 16)
    tracemalloc.start()
    before = weights_digest([("w", leaf)])
    assert tracemalloc.get_traced_memory()[1] < blocks.nbytes / 2
    tracemalloc.stop()
    for field, at in (("qs", (-1, -1, -1)), ("qs", (1000, 3, 0)), ("d", (7, 63))):
        kept = blocks[field][at]
        blocks[field][at] += 1
        assert weights_digest([("w", leaf)]) != before, (field, at)
        blocks[field][at] = kept
    assert weights_digest([("w", leaf)]) == before
    in_order = QuantTensor([replace(leaf.parts[0], order=np.arange(2048))])
    assert weights_digest([("w", in_order)]) != before


def test_names_shapes_types_and_order_count():
    x, y = np.arange(6, dtype=np.float32), np.arange(6, dtype=np.float32) + 1
    many = [[("a", x)], [("b", x)], [("a", x.reshape(2, 3))], [("a", x.reshape(3, 2))], [("a", x.view(np.int32))]]
    many += [[("a", x), ("b", y)], [("a", y), ("b", x)], [("b", y), ("a", x)], [("a", x), ("b", x)], [], [("a", x[:0])]]
    assert len({weights_digest(leaves) for leaves in many}) == len(many)
    turned = np.ascontiguousarray(x.reshape(2, 3).T).T  # the same numbers in another order of memory
    assert weights_digest([("a", turned)]) == weights_digest([("a", x.reshape(2, 3))])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int8"])
def test_arrays_of_torch(dtype):
    torch = pytest.importorskip("torch", reason="needs torch, the other backend")
    x = torch.arange(64).reshape(8, 8).to(getattr(torch, dtype))
    before = weights_digest([("w", x)])
    x[5, 3] += 1
    assert weights_digest([("w", x)]) != before


def write(path: Path, seed: int = 0) -> Path:
    rng = np.random.default_rng(seed)
    tensors = {name: rng.standard_normal((40, 30)).astype(np.float32) for name in "ab"}
    write_safetensors(path, {name: RawTensor(x, "F32") for name, x in tensors.items()})
    return path


def mapped(path: Path) -> list[tuple[str, np.ndarray]]:
    source = SafetensorsFile(path)
    return [(name, source.read(name).array) for name in source.names()]


def test_a_file_is_hashed_once(hashed, tmp_path):
    path = write(tmp_path / "a.safetensors")
    copied = weights_digest([(name, x.copy()) for name, x in mapped(path)])
    hashed.clear()
    assert weights_digest(mapped(path)) == copied
    assert len(hashed) == 2
    assert weights_digest(mapped(path)) == copied
    assert len(hashed) == 2
    of_file = files_digest([path])
    assert files_digest([path]) == of_file
    assert len(hashed) == 3
    assert weights_digest(mapped(path)) == copied  # both kinds of digests are kept side by side
    assert len(hashed) == 3
    for kept in (tmp_path / "assets").rglob("*.json"):
        for content in (b"", b"{}", b"[]", b'{"state": 1, "digests": {}}', b"\xff"):
            kept.write_bytes(content)
            assert files_digest([path]) == of_file
            assert weights_digest(mapped(path)) == copied


@pytest.mark.parametrize("change", ["in place", "replaced"])
def test_a_file_that_changes_without_its_size_and_time(change, hashed, tmp_path):
    path = write(tmp_path / "a.safetensors")
    before, about = (files_digest([path]), weights_digest(mapped(path))), path.stat()
    other = write(tmp_path / "b.safetensors", seed=1)
    if change == "in place":
        path.write_bytes(other.read_bytes())
    else:
        other.replace(path)
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (about.st_size, about.st_mtime_ns)
    after = files_digest([path]), weights_digest(mapped(path))
    assert not set(after) & set(before)


@pytest.mark.skipif(os.name == "nt", reason="Windows replaces no file that is mapped")
def test_arrays_of_a_file_that_was_replaced_are_their_own(hashed, tmp_path):
    """They are still those of the old file, which no path leads to."""
    path = write(tmp_path / "a.safetensors")
    arrays = mapped(path)
    wanted = weights_digest([(name, x.copy()) for name, x in arrays])
    write(tmp_path / "b.safetensors", seed=1).replace(path)
    assert weights_digest(mapped(path)) != wanted
    assert weights_digest(arrays) == wanted
    path.unlink()
    assert weights_digest(arrays) == wanted


def test_a_file_that_may_still_change_is_not_kept(hashed, tmp_path, monkeypatch):
    monkeypatch.setattr(fingerprint, "SETTLE_SECONDS", 1000.0)
    path = write(tmp_path / "a.safetensors")
    assert files_digest([path]) == files_digest([path])
    assert len(hashed) == 2
    os.utime(path, (1, 1))  # the time of change of the inode is still now
    files_digest([path])
    assert not list((tmp_path / "assets").rglob("*.json"))


def test_few_files_are_kept(hashed, tmp_path, monkeypatch):
    monkeypatch.setattr(fingerprint, "MAX_FILES", 3)
    paths = [write(tmp_path / f"{i}.safetensors", seed=i) for i in range(6)]
    assert len({files_digest([path]) for path in paths}) == 6
    names = [json.loads(kept.read_text())["path"] for kept in (tmp_path / "assets").rglob("*.json")]
    assert 3 <= len(names) <= 4
    assert str(paths[-1]) in names


def test_without_a_place_to_write(hashed, tmp_path):
    (tmp_path / "assets").write_text("a file")
    path = write(tmp_path / "a.safetensors")
    assert files_digest([path]) == files_digest([path])


def test_several_files_in_order(tmp_path):
    a, b = write(tmp_path / "a.safetensors"), write(tmp_path / "b.safetensors", seed=1)
    assert len({files_digest(paths) for paths in ([a], [b], [a, b], [b, a], [a, a])}) == 5
    with pytest.raises(FileNotFoundError):
        files_digest([a, tmp_path / "none"])
