"""safetensors files against the official library, a table of bad files, and random mutations."""

from __future__ import annotations

import json
import os
import random
import struct

import numpy as np
import pytest
from limits import run_limited

from zoo.errors import CheckpointError, MissingWeightError, NotFoundError, UnsupportedError, ZooError
from zoo.weights.mapped import DTYPES
from zoo.weights.safetensors import SafetensorsFile

library = pytest.importorskip("safetensors")


def pack(header: object, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor(shape, begin, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def write(tmp_path, data: bytes):
    path = tmp_path / "model.safetensors"
    path.write_bytes(data)
    return path


def accepted_by_library(path) -> bool:
    try:
        with library.safe_open(path, framework="numpy") as file:
            list(file.keys())
    except Exception:
        return False
    return True


A = tensor([1], 0, 4)
HUGE = 2**64

# name -> (bytes, what the message says)
BAD = {
    "empty": (b"", "empty"),
    "under 8 bytes": (b"\x02\0\0\0", "at least 8"),
    "header beyond the file": (struct.pack("<Q", 50) + b"{}", "is the download incomplete"),
    "header of 2^63 bytes": (struct.pack("<Q", 2**63) + b"{}", "at most"),
    "header of 2^64-1 bytes": (struct.pack("<Q", 2**64 - 1) + b"{}", "at most"),
    "header over the limit": (struct.pack("<Q", 100_000_001) + b"{}", "at most"),
    "header of no bytes": (struct.pack("<Q", 0), "empty"),
    "header not UTF-8": (pack(b'{"\xff": 1}'), "not UTF-8"),
    "header a list": (pack([]), "JSON list"),
    "header with trailing bytes": (pack(b"{}x"), "Extra data"),
    "header with trailing NUL": (pack(b"{}\0"), "Extra data"),
    "header with a byte order mark": (pack(b"\xef\xbb\xbf{}"), "refused by safetensors"),
    "depth bomb": (pack(b'{"a":' + b"[" * 100_000), "nested too deeply"),
    "entry null": (pack({"a": None}), "None"),
    "entry without a shape": (pack({"a": {"dtype": "F32", "data_offsets": [0, 0]}}), "'a'"),
    "unknown dtype": (pack({"a": tensor([1], 0, 4, "F23")}, bytes(4)), "'F23'"),
    "dtype a list": (pack({"a": tensor([1], 0, 4, ["F32"])}, bytes(4)), "unknown dtype"),
    "negative offset": (pack({"a": tensor([1], -4, 0)}, bytes(4)), "data_offsets"),
    "float offset": (pack({"a": tensor([1], 0, 4.0)}, bytes(4)), "data_offsets"),
    "bool offset": (pack({"a": tensor([1], 0, True, "U8")}, bytes(1)), "data_offsets"),
    "string offset": (pack({"a": tensor([1], 0, "4")}, bytes(4)), "data_offsets"),
    "one offset": (pack({"a": {**A, "data_offsets": [4]}}, bytes(4)), "data_offsets"),
    "three offsets": (pack({"a": {**A, "data_offsets": [0, 4, 4]}}, bytes(4)), "data_offsets"),
    "end before begin": (pack({"a": tensor([0], 4, 0)}, bytes(4)), "data_offsets"),
    "overlap": (pack({"a": tensor([2], 0, 8), "b": tensor([2], 4, 12)}, bytes(12)), "'b' overlaps"),
    "same span twice": (pack({"a": A, "b": A}, bytes(4)), "overlaps"),
    "empty tensor inside another": (pack({"a": tensor([2], 0, 8), "b": tensor([0], 4, 4)}, bytes(8)), "overlaps"),
    "hole": (pack({"a": A, "b": tensor([1], 8, 12)}, bytes(12)), "hole of 4 bytes"),
    "hole at the start": (pack({"a": tensor([1], 4, 8)}, bytes(8)), "hole of 4 bytes"),
    "tail bytes": (pack({"a": A}, bytes(5)), "1 bytes after the last"),
    "tail bytes, no tensors": (pack({}, bytes(1)), "after the last"),
    "cut after the header": (pack({"a": A}), "is the download incomplete"),
    "cut in a tensor": (pack({"a": A}, bytes(3)), "is the download incomplete"),
    "shape too small": (pack({"a": tensor([1], 0, 8)}, bytes(8)), "does not fill"),
    "shape too large": (pack({"a": tensor([3], 0, 8)}, bytes(8)), "does not fill"),
    "shape overflows to 0": (pack({"a": tensor([2**32, 2**32], 0, 0)}), "beyond any memory"),
    "shape overflows beside 0": (pack({"a": tensor([2**40, 2**40, 0], 0, 0)}), "beyond any memory"),
    "shape beyond 64 bits": (pack({"a": tensor([HUGE], 0, 4)}, bytes(4)), "beyond 64 bits"),
    "negative dimensions": (pack({"a": tensor([-1, -1], 0, 4)}, bytes(4)), "non-negative integers"),
    "bool dimension": (pack({"a": tensor([True], 0, 4)}, bytes(4)), "non-negative integers"),
    "float dimension": (pack({"a": tensor([1.0], 0, 4)}, bytes(4)), "non-negative integers"),
    "shape a number": (pack({"a": tensor(1, 0, 4)}, bytes(4)), "expected a list"),
    "metadata of numbers": (pack({"__metadata__": {"a": 1}}), "__metadata__"),
    "metadata a string": (pack({"__metadata__": "pt"}), "__metadata__"),
    "odd bits": (pack({"a": tensor([1], 0, 1, "F4")}, bytes(1)), "does not fill"),
    "half a surrogate pair": (pack(b'{"\\ud800": ' + json.dumps(A).encode() + b"}", bytes(4)), "surrogate"),
    "git-LFS pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n", "git lfs pull"),
    "web page": (b"\n<!DOCTYPE html><html><body>401</body></html>" + b" " * 99, "web page"),
}

# Refused here, though the library reads them.
STRICTER = {
    "duplicate name": (pack(b'{"a": %b, "a": %b}' % ((json.dumps(A).encode(),) * 2), bytes(4)), "'a' occurs twice"),
    "unknown field": (pack({"a": {**A, "more": 1}}, bytes(4)), "'more'"),
    "entry as a list": (pack({"a": ["F32", [1], [0, 4]]}, bytes(4)), "expected an object"),
    "40 dimensions": (pack({"a": tensor([1] * 40, 0, 4)}, bytes(4)), "40 dimensions"),
    "empty, but 2^63 wide": (pack({"a": tensor([0, 2**62], 0, 0)}), "beyond any memory"),
}


@pytest.mark.parametrize(("data", "says"), (BAD | STRICTER).values(), ids=BAD | STRICTER)
def test_bad(tmp_path, data, says):
    path = write(tmp_path, data)
    with pytest.raises(CheckpointError, match=r"model\.safetensors") as caught:
        SafetensorsFile(path)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("name", BAD)
def test_library_refuses_what_we_refuse(tmp_path, name):
    assert not accepted_by_library(write(tmp_path, BAD[name][0]))


@pytest.mark.parametrize("name", STRICTER)
def test_where_we_are_stricter(tmp_path, name):
    assert accepted_by_library(write(tmp_path, STRICTER[name][0]))


NUMPY = ["bool", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "c8"]


@pytest.mark.parametrize("kind", NUMPY)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (5,), (2, 3, 4)], ids=str)
def test_values_of_every_dtype(tmp_path, kind, shape):
    from safetensors.numpy import save_file

    wanted = np.random.default_rng(0).integers(0, 100, shape).astype(kind)
    save_file({"w": wanted, "other": np.ones(3, np.uint8)}, tmp_path / "x.safetensors", {"format": "np"})
    file = SafetensorsFile(tmp_path / "x.safetensors")
    array, dtype = file.read("w")
    assert (array.dtype, array.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(array, wanted)
    assert not array.flags.writeable
    assert file.shape("w") == shape
    assert DTYPES[dtype][1] is not None
    assert set(file.names()) == {"w", "other"}
    assert "w" in file
    assert "v" not in file
    assert file.metadata == {"format": "np"}


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "uint16", "uint64"])
def test_values_against_torch(tmp_path, dtype):
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file

    wanted = torch.tensor([0.5, 1, 2, 64] if "float" in dtype else [1, 2, 3, 65535]).to(getattr(torch, dtype))
    save_file({"w": wanted}, tmp_path / "x.safetensors")
    array, name = SafetensorsFile(tmp_path / "x.safetensors").read("w")
    assert array.dtype.itemsize == wanted.element_size()
    assert array.tobytes() == wanted.view(torch.uint8).numpy().tobytes()
    assert name == {"bfloat16": "BF16", "uint16": "U16", "uint64": "U64"}.get(
        dtype, dtype.upper().replace("FLOAT8", "F8").removesuffix("FNU").removesuffix("FN")
    )


def test_unaligned_data_is_read_in_place(tmp_path):
    for pad in range(8):
        header = json.dumps({"b": tensor([1], 0, 1, "U8"), "w": tensor([2, 2], 1, 17)}).encode() + b" " * pad
        path = write(tmp_path, pack(header, b"\x07" + np.arange(4, dtype="<f4").tobytes()))
        file = SafetensorsFile(path)
        np.testing.assert_array_equal(file.read("w").array, [[0, 1], [2, 3]])
        assert np.shares_memory(file.read("w").array, file.read("w").array)
        assert (file.read("w").array * 2).flags.aligned
        del file
        path.unlink()


def test_packed_types_are_listed_and_not_read(tmp_path):
    file = SafetensorsFile(write(tmp_path, pack({"w": tensor([4], 0, 2, "F4")}, bytes(2))))
    assert (file.shape("w"), file.dtype("w")) == ((4,), "F4")
    with pytest.raises(UnsupportedError, match="w: elements of type F4"):
        file.read("w")


def test_bool_that_is_none(tmp_path):
    file = SafetensorsFile(write(tmp_path, pack({"w": tensor([2], 0, 2, "BOOL")}, b"\x01\x02")))
    with pytest.raises(CheckpointError, match="w: a bool of value 2"):
        file.read("w")


def test_metadata_with_the_fields_of_a_tensor(tmp_path):
    metadata = {"dtype": "F32", "shape": "x", "data_offsets": "y"}
    assert SafetensorsFile(write(tmp_path, pack({"__metadata__": metadata}))).metadata == metadata
    many = {str(i): "x" for i in range(100_000)}
    assert SafetensorsFile(write(tmp_path, pack({"__metadata__": many}))).metadata == many


def test_unknown_name(tmp_path):
    file = SafetensorsFile(write(tmp_path, pack({"encoder.weight": A}, bytes(4))))
    with pytest.raises(MissingWeightError, match=r"did you mean 'encoder\.weight'"):
        file.read("encoder.wieght")


@pytest.mark.parametrize("change", ["header", "size", "nothing"])
def test_a_file_that_was_accepted_is_checked_again_if_it_changes(tmp_path, change):
    path = write(tmp_path, pack({"x": tensor([2], 0, 8)}, b"\0" * 8))
    first, before = SafetensorsFile(path), path.stat()
    data = path.read_bytes()
    with open(path, "r+b") as file:  # in place, to the same size, with the time of before
        if change == "header":
            file.write(data.replace(b"[2]", b"[3]"))
        elif change == "size":
            file.truncate(len(data) - 4)
        elif change == "nothing":
            file.write(data[:-8] + b"\1" * 8)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    if change == "nothing":
        assert SafetensorsFile(path).read("x").array.view(np.uint8).tolist() == [1] * 8
    else:
        with pytest.raises(CheckpointError, match=r"does not fill|ends at byte 8 of only 4"):
            SafetensorsFile(path)
    assert list(first.names()) == ["x"]
    with pytest.raises(TypeError):
        first._entries["y"] = first._entries["x"]


def test_what_is_not_a_file(tmp_path):
    with pytest.raises(NotFoundError, match="no such file"):
        SafetensorsFile(tmp_path / "x.safetensors")
    with pytest.raises(CheckpointError, match="a folder"):
        SafetensorsFile(tmp_path)
    with pytest.raises(CheckpointError, match="cannot be read"):
        SafetensorsFile("x\0.safetensors")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "x.safetensors")
        with pytest.raises(CheckpointError, match="special file"):
            SafetensorsFile(tmp_path / "x.safetensors")


def test_mutations_agree_with_the_library(tmp_path):
    """Whatever is accepted has the library's values; whatever is refused raises a ZooError and nothing else."""
    from safetensors.numpy import load_file, save

    arrays = {"a.weight": np.arange(6, dtype="f4").reshape(2, 3), "b": np.array(3, "i8"), "c": np.ones((0, 2), "f2")}
    real = save(arrays, {"format": "pt"})
    rng = random.Random(0)
    snippets = [b"0", b"-", b"9" * 25, b'"', b"{", b"]", b",", b"null", b"true", b"1e9", b"\xff", b"\\ud800", b'"b":']
    accepted = 0
    for i in range(1500):
        data = bytearray(real)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(data) - 25 if rng.random() < 0.9 else len(data))
            match rng.randrange(4):
                case 0:
                    data[at] = rng.randrange(256)
                case 1:
                    data[at : at + rng.randint(1, 4)] = b""
                case 2:
                    data[at:at] = rng.choice(snippets)
                case 3:
                    data[at] = ord(rng.choice("0123456789"))
        if rng.random() < 0.7:  # or else nearly all end at the length of the header
            data[:8] = struct.pack("<Q", max(0, len(data) - 8 - 32))
        path = tmp_path / f"{i}.safetensors"
        path.write_bytes(data)
        try:
            file = SafetensorsFile(path)
            found = {name: file.read(name).array for name in file.names()}
        except ZooError:
            continue
        finally:
            path.unlink()
        path.write_bytes(data)
        wanted = load_file(path) if all(file.dtype(n) in _IN_NUMPY for n in found) else {}
        path.unlink()
        for name, array in wanted.items():
            assert array.tobytes() == found[name].tobytes()
            assert array.shape == found[name].shape
        accepted += 1
    assert accepted > 10


_IN_NUMPY = {d for d, (_, kind) in DTYPES.items() if kind and d[:2] not in ("F8", "BF") and d != "C64"}

OPEN = """
from zoo.errors import ZooError
from zoo.weights.safetensors import SafetensorsFile
try:
    file = SafetensorsFile(sys.argv[1])
    print(len(file.names()), file.read(list(file.names())[-1]).array.sum())
except ZooError as e:
    print(str(e)[:500])
"""


def test_bombs_in_little_memory(tmp_path):
    deep = write(tmp_path, pack(b'{"a":' * 3_000_000))
    assert "nested too deeply" in run_limited(OPEN, deep)
    digits = write(tmp_path, pack(b'{"a":{"dtype":"F32","shape":[' + b"9" * 10_000_000 + b'],"data_offsets":[0,0]}}'))
    assert "beyond 64 bits" in run_limited(OPEN, digits)
    rank = write(
        tmp_path, pack(b'{"a":{"dtype":"F32","shape":[' + b"1," * 3_000_000 + b'1],"data_offsets":[0,4]}}', bytes(4))
    )
    assert "3000001 dimensions" in run_limited(OPEN, rank)


@pytest.mark.parametrize(("count", "megabytes"), [(50_000, 300), pytest.param(250_000, 800, marks=pytest.mark.nightly)])
def test_very_many_tensors(tmp_path, count, megabytes):
    """A quarter of a million: memory and time are proportional to the number."""
    header = {f"layer.{i}.weight": tensor([1], 4 * i, 4 * i + 4) for i in range(count)}
    path = write(tmp_path, pack(header, np.ones(count, "<f4").tobytes()))
    assert run_limited(OPEN, path, megabytes=megabytes, seconds=120).strip() == f"{count} 1.0"
