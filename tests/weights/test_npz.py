"""npz files beside numpy.load, and damaged ones."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

import zoo
from zoo.errors import CheckpointError, MissingWeightError
from zoo.loading import load_model
from zoo.models.bert import BertConfig, BertModel
from zoo.weights.files import open_weights
from zoo.weights.npz import NpzFile
from zoo.weights.safetensors import SafetensorsFile


def stored(tmp_path, **arrays):
    np.savez(tmp_path / "model.npz", **arrays)
    return tmp_path / "model.npz"


def test_arrays_are_those_of_numpy(tmp_path, rng):
    arrays = {
        "a.weight": rng.standard_normal((4, 3)).astype(np.float32),
        "by columns": np.asfortranarray(rng.standard_normal((5, 2))),
        "half": np.ones((2, 2), np.float16),
        "scalar": np.float32(3),
        "none": np.zeros((0, 7), np.int64),
        "bits": np.arange(9, dtype=np.uint8),
    }
    path = stored(tmp_path, **arrays)
    ours = NpzFile(path)
    assert list(ours.names()) == list(arrays)
    for name, array in arrays.items():
        found = ours.read(name)
        assert ours.shape(name) == array.shape
        np.testing.assert_array_equal(found.array, np.load(path)[name])
        assert not found.array.flags.writeable or name == "by columns"
    assert ours.dtype("half") == "F16"
    with pytest.raises(MissingWeightError, match=r"did you mean 'a\.weight'"):
        ours.read("a.wieght")


def test_a_model_of_an_npz_file(tmp_path):
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    model = BertModel.from_config(BertConfig(vocab_size=9, **sizes))
    zoo.save(model, tmp_path / "saved")
    source = SafetensorsFile(tmp_path / "saved" / "model.safetensors")
    np.savez(tmp_path / "saved" / "model.npz", **{name: source.read(name).array for name in source.names()})
    (tmp_path / "saved" / "model.safetensors").unlink()
    ids = np.ones((1, 3), int)
    again = load_model(tmp_path / "saved")
    np.testing.assert_array_equal(again(ids).last_hidden_state, model(ids).last_hidden_state)
    assert open_weights(tmp_path / "saved").files[0].name == "model.npz"


def zipped(name: str, data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr(name, data)
    return out.getvalue()


def npy(header: str, data: bytes = b"", version: bytes = b"\1\0") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY" + version + len(text).to_bytes(2, "little") + text + data


def header(descr: str = "'<f4'", shape: str = "(2,)", order: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}"


BAD = {
    "no zip": (b"no zip at all", "zip"),
    "another member": (zipped("a.txt", b"x"), "'a.txt' is not a .npy file"),
    "no magic": (zipped("a.npy", b"12345678"), "not a .npy file"),
    "nothing": (zipped("a.npy", b""), "not a .npy file"),
    "version 9": (zipped("a.npy", npy(header(), bytes(8), b"\x09\0")), "version of a .npy file|not a .npy file"),
    "objects": (zipped("a.npy", npy(header("'|O'"), bytes(16))), "a pickle"),
    "big-endian": (zipped("a.npy", npy(header("'>f4'"), bytes(8))), "of type '>f4'"),
    "records": (zipped("a.npy", npy(header("[('a', '<f4')]"), bytes(8))), "of type"),
    "texts": (zipped("a.npy", npy(header("'<U4'"), bytes(32))), "of type '<U4'"),
    "too few numbers": (zipped("a.npy", npy(header(), bytes(4))), "does not fill its 4 bytes"),
    "too many": (zipped("a.npy", npy(header(), bytes(12))), "does not fill its 12 bytes"),
    "2^60 numbers": (zipped("a.npy", npy(header(shape="(2**60,)"), bytes(8))), "not a .npy file|damaged"),
    "a shape beyond memory": (zipped("a.npy", npy(header(shape=f"({2**62}, 8)"), bytes(8))), "beyond any memory"),
    "a negative shape": (zipped("a.npy", npy(header(shape="(-2,)"), bytes(8))), "non-negative integers"),
    "a program": (zipped("a.npy", npy("__import__('os').system('true')", bytes(8))), "not a .npy file"),
    "a deep header": (zipped("a.npy", npy("(" * 3000, bytes(8))), "not a .npy file"),
    "a long header": (zipped("a.npy", npy(header() + " " * 60000, bytes(8))), "not a .npy file"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_ends_in_one_error(name, tmp_path):
    data, message = BAD[name]
    (tmp_path / "bad.npz").write_bytes(data)
    with pytest.raises(CheckpointError, match=message) as error:
        NpzFile(tmp_path / "bad.npz")
    assert "bad.npz" in str(error.value)


def test_compressed_ones_are_refused(tmp_path):
    np.savez_compressed(tmp_path / "model.npz", a=np.zeros(1000))
    with pytest.raises(CheckpointError, match=r"compressed: torch\.save and numpy\.savez store"):
        NpzFile(tmp_path / "model.npz")
