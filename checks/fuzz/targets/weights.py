"""Weight files and their indexes."""

from __future__ import annotations

import io
import json
import pickle
import struct
from pathlib import Path

import numpy as np

from .. import mutate
from .target import TARGETS, Target, as_json, tolerant, write


def _tensors() -> dict[str, np.ndarray]:
    return {"a.weight": np.ones((4, 3), np.float32), "b": np.arange(6).reshape(2, 3), "c": np.zeros((0, 2), np.float16)}


def _safetensors_seeds() -> list[bytes]:
    from safetensors.numpy import save

    return [save(_tensors()), save({"x": np.ones(8, np.uint8)}, {"format": "pt"}), save({})]


def _read_all(path: Path) -> None:
    from zoo.weights.files import non_finite, open_weights

    source = open_weights(path)
    for name in list(source.names())[:50]:
        source.shape(name), source.dtype(name)
        if int(np.prod(source.shape(name))) < 1 << 16:
            source.read(name)
            non_finite(source, [name])


TARGETS["safetensors"] = Target(
    _safetensors_seeds, mutate.of_safetensors, lambda data, at: _read_all(write(at, "model.safetensors", data))
)


class _Rebuilt:
    """Pickles as torch does a tensor, without torch."""

    def __init__(self, shape: tuple[int, ...], stride: tuple[int, ...], key: str = "0"):
        self.shape, self.stride, self.key = shape, stride, key


def _program(tensors: dict[str, _Rebuilt], count: int = 12) -> bytes:
    def text(value: str) -> bytes:
        return b"X" + struct.pack("<I", len(value.encode())) + value.encode()

    def numbers(values: tuple[int, ...]) -> bytes:
        return b"(" + b"".join(b"K" + bytes([n]) for n in values) + b"t"

    out = b"\x80\x02ccollections\nOrderedDict\nq\0)Rq\1("
    for name, tensor in tensors.items():
        storage = (
            b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text(tensor.key) + text("cpu") + b"K" + bytes([count])
        )
        out += text(name) + b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"tQK\0" + numbers(tensor.shape)
        out += numbers(tensor.stride) + b"\x89h\0)RtR"
    return out + b"u}" + text("_metadata") + b"h\0)Rsb."


_STATE = {"a": _Rebuilt((3, 4), (4, 1)), "b": _Rebuilt((4,), (3,)), "c": _Rebuilt((2, 0), (0, 1))}


def _stream_seeds() -> list[bytes]:
    head = b"".join(pickle.dumps(x, 2) for x in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}))
    storages = struct.pack("<q", 12) + bytes(48)
    wrapped = b"\x80\x02}X\5\0\0\0modelX\1\0\0\0aK\1s."
    return [head + program + pickle.dumps(["0"], 2) + storages for program in (_program(_STATE), wrapped)]


def _zip_seeds() -> list[bytes]:
    members = {"data.pkl": _program(_STATE), "byteorder": b"little", "data/0": bytes(48), "version": b"3"}
    return [mutate.zip_members({f"archive/{name}": body for name, body in members.items()})]


TARGETS["torch-stream"] = Target(
    _stream_seeds, mutate.of_stream, lambda data, at: _read_all(write(at, "pytorch_model.bin", data))
)
TARGETS["torch-zip"] = Target(
    _zip_seeds, mutate.of_zip, lambda data, at: _read_all(write(at, "pytorch_model.bin", data))
)


def _pickle(data: bytes, at: Path) -> None:
    from zoo.guards.pickles import GuardedUnpickler
    from zoo.weights.torch_bin import _NAMES, _storage

    GuardedUnpickler(data, at, _NAMES, _storage).load()


TARGETS["pickle"] = Target(
    lambda: [_program(_STATE), pickle.dumps({"a": [1, (2, 3.5)], 4: None}, 4)], mutate.of_pickle, _pickle
)


def _index(data: bytes, at: Path) -> None:
    from zoo.weights.files import read_index

    read_index(write(at, "model.safetensors.index.json", data))


TARGETS["weight-index"] = Target(
    lambda: [
        as_json({"metadata": {"total_size": 4}, "weight_map": {"a": "model-00001-of-00002.safetensors", "b": "b.bin"}})
    ],
    mutate.of_json(["../a", "C:\\a", "nul.bin", "a" * 256, "a/b.bin"]),
    _index,
)


def _npz_seeds() -> list[bytes]:
    out = io.BytesIO()
    np.savez(out, allow_pickle=False, **_tensors())
    return [out.getvalue()]


_NPY = [
    b"'<f4'",
    b"'|O'",
    b"'>f8'",
    b"'fortran_order': True",
    b"'shape': (2, 6)",
    b"(" * 200,
    b"\x93NUMPY\2\0",
    b"PK\1\2",
]
TARGETS["npz"] = Target(_npz_seeds, mutate.of_bytes(_NPY), lambda data, at: _read_all(write(at, "model.npz", data)))


def _quantised_seeds() -> list[bytes]:
    """The config of a matrix of 64 inputs and 16 outputs, with the shapes that its tensors are to have."""
    shapes = {"qweight": [8, 16], "qzeros": [2, 2], "scales": [2, 16], "g_idx": [64]}
    gptq = {"quant_method": "gptq", "bits": 4, "group_size": 32, "checkpoint_format": "gptq", "desc_act": False}
    awq = {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm", "zero_point": True}
    of_awq = {**shapes, "qweight": [64, 2]}
    return [as_json({"shapes": s, "config": c}) for s, c in ((shapes, gptq), (of_awq, awq), (shapes, {}))]


def _read_quantised(data: bytes, at: Path) -> None:
    from safetensors.numpy import save_file

    from zoo.weights.files import open_weights
    from zoo.weights.quantised_source import as_quantised_source

    found = json.loads(data)
    shapes, config = (found.get("shapes"), found.get("config")) if isinstance(found, dict) else (None, None)
    tensors = {}
    for name, shape in shapes.items() if isinstance(shapes, dict) else ():
        if isinstance(shape, list) and all(type(n) is int and 0 <= n < 99 for n in shape) and len(shape) < 4:
            dtype = {"scales": np.float16, "g_idx": np.int32}.get(name, np.int32)
            count = int(np.prod(shape))
            name = name[:50].encode("utf-8", "replace").decode()  # safetensors refuses half of a surrogate pair
            tensors[f"a.{name}"] = (np.arange(count) % 2).astype(dtype).reshape(shape)
    save_file(tensors, at / "model.safetensors")
    source = as_quantised_source(open_weights(at / "model.safetensors"), {"quantization_config": config})
    for name in source.names():
        source.shape(name), source.dtype(name), source.read(name)


TARGETS["quantization"] = Target(
    _quantised_seeds, mutate.of_json([4, 32, 128, -1, "gptq_v2", "gemv", "fp8", [64, 2]]), tolerant(_read_quantised)
)
