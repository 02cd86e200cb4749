"""Damaged and hostile GGUF files: each ends in one ZooError, within memory and time that its size allows."""

from __future__ import annotations

import random
import struct
import time
import warnings

import numpy as np
import pytest
from made_gguf import OWN, write_llama

import zoo
from zoo.errors import CheckpointError, UnsupportedError, ZooError
from zoo.weights.gguf.header import MAX_BYTES, MAX_STRINGS, read_header
from zoo.weights.gguf.source import GGUFFile


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def pair(key: str | bytes, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def array(kind: int, count: int, data: bytes = b"") -> bytes:
    return struct.pack("<IQ", kind, count) + data


def tensor(
    name: str, shape: tuple[int, ...] = (4,), kind: int = 0, offset: int = 0, dimensions: int | None = None
) -> bytes:
    count = len(shape) if dimensions is None else dimensions
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", count, *shape, kind, offset)


LLAMA = pair("general.architecture", 8, text("llama"))
WIDTH = pair("llama.embedding_length", 4, struct.pack("<I", 4)) + pair("llama.attention.head_count", 4, b"\1\0\0\0")


def file(
    *pairs: bytes,
    tensors: tuple[bytes, ...] = (),
    data: bytes = b"",
    version: int = 3,
    counts: tuple[int, int] | None = None,
) -> bytes:
    head = struct.pack("<4sIQQ", b"GGUF", version, *(counts or (len(tensors), len(pairs))))
    out = head + b"".join(pairs) + b"".join(tensors)
    return out + bytes(-len(out) % 32) + data


F32 = bytes(16)
BAD = {
    "empty": (b"", "empty"),
    "another format": (b"PK\3\4" + bytes(40), "begins with b'PK"),
    "four bytes": (b"GGUF", "at least 24"),
    "cut in the counts": (file()[:20], "at least 24"),
    "version 1": (file(version=1), "version 1: versions 2, 3"),
    "a version to come": (file(version=4), "version 4"),
    "big-endian": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "a big-endian file"),
    "2^64 - 1 tensors": (file(counts=(2**64 - 1, 0)), "tensors and 0 metadata pairs, expected at most"),
    "2^63 pairs": (file(counts=(0, 2**63)), "at most"),
    "more pairs than there are": (file(LLAMA, counts=(0, 9)), "cut short|twice"),
    "more tensors than there are": (file(LLAMA, tensors=(tensor("a"),), counts=(9, 1)), "cut short|at most"),
    "a key beyond the file": (file(struct.pack("<Q", 500) + b"a", counts=(0, 1)), "cut short"),
    "a key of 2^64 - 1 bytes": (file(struct.pack("<Q", 2**64 - 1), counts=(0, 1)), "a key of"),
    "a key that is not UTF-8": (file(pair(b"\xff", 4, bytes(4))), "not UTF-8"),
    "a key twice": (file(LLAMA, LLAMA), "occurs twice"),
    "a type that is none": (file(pair("a", 13, bytes(8))), "type 13, which GGUF does not have"),
    "a bool of 2": (file(pair("a", 7, b"\2")), "bool of value 2"),
    "a text beyond the file": (file(pair("a", 8, struct.pack("<Q", 2**40))), "at most|cut short"),
    "a text that is not UTF-8": (file(pair("a", 8, text(b"\xc3\x28"))), "not UTF-8"),
    "an array of 2^60 bytes": (file(pair("a", 9, array(0, 2**60))), "cut short"),
    "an array of 2^61 doubles": (file(pair("a", 9, array(12, 2**61))), "cut short"),
    "an array of 2^60 texts": (file(pair("a", 9, array(8, 2**60))), "strings"),
    "an array of arrays": (file(pair("a", 9, array(9, 2**30, array(9, 2**30)))), "an array of arrays"),
    "an array of nothing": (file(pair("a", 9, array(77, 1))), "an array of type 77"),
    "a name twice": (file(LLAMA, tensors=(tensor("a"), tensor("a", offset=32)), data=bytes(64)), "there twice"),
    "nine dimensions": (file(LLAMA, tensors=(tensor("a", (1,) * 9),), data=F32), "9 dimensions"),
    "2^32 - 1 dimensions": (file(LLAMA, tensors=(tensor("a", (), dimensions=2**32 - 1),), data=F32), "dimensions"),
    "a shape beyond any memory": (file(LLAMA, tensors=(tensor("a", (2**40, 2**40)),), data=F32), "beyond any memory"),
    "a shape that wraps": (file(LLAMA, tensors=(tensor("a", (2**33, 2**31)),), data=F32), "beyond any memory"),
    "no elements of a wide shape": (file(LLAMA, tensors=(tensor("a", (0, 2**63)),), data=F32), "beyond any memory"),
    "data beyond the file": (file(LLAMA, tensors=(tensor("a", (5,)),), data=F32), "cut short"),
    "an offset beyond the file": (file(LLAMA, tensors=(tensor("a", offset=2**63),), data=F32), "cut short"),
    "an offset that is not aligned": (file(LLAMA, tensors=(tensor("a", offset=8),), data=bytes(64)), "multiple of"),
    "tensors that overlap": (
        file(LLAMA, tensors=(tensor("a", (16,)), tensor("b", offset=32)), data=bytes(64)),
        "overlap",
    ),
    "blocks that are not whole": (
        file(LLAMA, tensors=(tensor("a", (33,), 8),), data=bytes(68)),
        "not whole blocks of Q8_0",
    ),
    "IQ2_XXS": (file(LLAMA, tensors=(tensor("a", (256,), 16),), data=bytes(66)), "IQ2_XXS, which is not implemented"),
    "a type to come": (file(LLAMA, tensors=(tensor("a", (256,), 99),), data=bytes(66)), "number 99"),
    "an alignment of 0": (file(LLAMA, pair("general.alignment", 4, bytes(4))), "general.alignment is 0"),
    "an alignment of 3": (file(LLAMA, pair("general.alignment", 4, b"\3\0\0\0")), "general.alignment is 3"),
    "an alignment of 2^31": (file(LLAMA, pair("general.alignment", 4, b"\0\0\0\x80")), "general.alignment is"),
    "an alignment that is a text": (file(LLAMA, pair("general.alignment", 8, text("32"))), "general.alignment"),
    "no architecture": (file(), "not stated"),
    "no width": (file(LLAMA), "no 'llama"),
    "a pointer of git-lfs": (b"version https://git-lfs.github.com/spec/v1\n", "git-LFS|git-lfs"),
    "a page": (b"<!DOCTYPE html><html>", "web page"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_ends_in_one_error(name, tmp_path):
    data, message = BAD[name]
    path = tmp_path / "bad.gguf"
    path.write_bytes(data)
    for read in (zoo.load, lambda path: GGUFFile(path) and zoo.load_model(path)):
        with pytest.raises(ZooError, match=message) as error:
            read(path)
        assert "bad.gguf" in str(error.value)
    assert isinstance(error.value, CheckpointError | UnsupportedError | ZooError)


@pytest.mark.parametrize("version", [2, 3])
def test_what_is_well_is_read(version, tmp_path):
    path = tmp_path / "good.gguf"
    numbers = pair("x.numbers", 9, array(6, 3, np.float32([1, 2, 3]).tobytes()))
    texts, wide = pair("x.texts", 9, array(8, 2, text("a") + text("é"))), pair("x.wide", 10, b"\xff" * 8)
    align = pair("general.alignment", 4, struct.pack("<I", 64))
    tensors = (tensor("a", (4, 1)), tensor("b", (32,), 8, 64))
    data = file(LLAMA, WIDTH, numbers, texts, wide, align, tensors=tensors, version=version, counts=(2, 7))
    data += bytes(-len(data) % 64) + bytes(64 + 34)
    path.write_bytes(data)
    header = read_header(path)
    assert header.metadata["x.numbers"].tolist() == [1, 2, 3]
    assert (header.metadata["x.texts"], header.metadata["x.wide"]) == (["a", "é"], 2**64 - 1)
    assert {n: (e.dtype, e.shape) for n, e in header.tensors.items()} == {"a": ("F32", (1, 4)), "b": ("Q8_0", (32,))}
    assert header.tensors["b"].begin % 64 == 0
    assert header.tensors["b"].end == len(data)


def test_a_large_header_is_refused_before_it_is_read(tmp_path):
    """A header of endless or empty texts is refused by its count, before memory is used."""
    path = tmp_path / "large.gguf"
    with path.open("wb") as out:
        out.write(file(pair("a", 8, struct.pack("<Q", MAX_BYTES + 1000)), counts=(0, 1)))
        out.truncate(MAX_BYTES + 5000)
    began = time.process_time()
    with pytest.raises(CheckpointError, match="at most"):
        read_header(path)
    with path.open("wb") as out:
        out.write(file(pair("a", 9, array(8, MAX_STRINGS + 1)), counts=(0, 1)))
        out.truncate(MAX_STRINGS * 8 + 5000)
    with pytest.raises(CheckpointError, match=f"at most {MAX_STRINGS}"):
        read_header(path)
    assert time.process_time() - began < 2


def test_mutations_of_a_file_end_in_one_error(tmp_path):
    rng = random.Random(0)
    good = write_llama(OWN, tmp_path / "m.gguf").read_bytes()
    path, refused = tmp_path / "changed.gguf", []
    for _ in range(150):
        data = bytearray(good)
        for _ in range(rng.choice((1, 1, 2, 5))):
            at = rng.randrange(20_000 if rng.random() < 0.8 else len(data))
            size = rng.choice((1, 4, 8))
            data[at : at + size] = rng.choice(
                (bytes(size), b"\xff" * size, rng.randbytes(size), bytes(data[at : at + 1]))
            )
        path.write_bytes(data if rng.random() < 0.9 else data[: rng.randrange(len(data))])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of NaN, and of tensors that nobody knows
                zoo.load(path)
        except ZooError as e:
            refused.append(str(e))
    assert all("changed.gguf" in message for message in refused)
    assert 20 < len(refused) < 150


def test_no_link_leaves_the_repository_of_a_hub_s_file():
    for name in (
        "org/name:../x.gguf",
        "org/name:/x.gguf",
        "org/name:a\\b.gguf",
        "org/name:a//b.gguf",
        "a/b:.gguf/.gguf",
    ):
        with pytest.raises(ZooError):
            zoo.load(name, local_files_only=True)


def test_a_file_of_the_hub_that_is_not_there():
    with pytest.raises(ZooError, match=r"'org/name:file\.gguf' is not in the cache"):
        zoo.load("org/name:file.gguf", local_files_only=True)
