"""pytorch_model.bin, in both of its forms, against torch.save; random mutations of real files."""

from __future__ import annotations

import numpy as np
import pytest

from zoo.errors import CheckpointError, MissingWeightError
from zoo.weights.torch_bin import TorchBinFile

FORMS = pytest.mark.parametrize("zipped", [True, False], ids=["zip", "stream"])


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def save(torch, tmp_path, value, zipped=True, **options):
    path = tmp_path / "pytorch_model.bin"
    torch.save(value, path, _use_new_zipfile_serialization=zipped, **options)
    return path


def assert_same(torch, file, wanted):
    assert list(file.names()) == list(wanted)
    for name, tensor in wanted.items():
        array, dtype = file.read(name)
        assert array.shape == tuple(tensor.shape) == file.shape(name)
        assert dtype == file.dtype(name)
        assert not array.flags.writeable
        raw = tensor.detach().contiguous().reshape(-1)
        assert np.ascontiguousarray(array).tobytes() == raw.view(torch.uint8).numpy().tobytes(), name


# torch's names and ours
DTYPES = {
    "float32": "F32",
    "float64": "F64",
    "float16": "F16",
    "bfloat16": "BF16",
    "complex64": "C64",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
}


@FORMS
def test_every_dtype(torch, tmp_path, zipped):
    values = {name: torch.tensor([[0, 1, 2], [3, 4, 5]]).to(getattr(torch, name)) for name in DTYPES}
    file = TorchBinFile(save(torch, tmp_path, values, zipped))
    assert_same(torch, file, values)
    assert {name: file.dtype(name) for name in DTYPES} == DTYPES
    np.testing.assert_array_equal(file.read("float16").array, values["float16"].numpy())


def test_dtypes_of_untyped_storages(torch, tmp_path):
    names = ["float8_e4m3fn", "float8_e5m2", "uint16", "uint32", "uint64"]
    values = {name: torch.tensor([0, 1, 2, 3]).to(getattr(torch, name)) for name in names}
    values["view"] = values["uint16"][1:3]
    file = TorchBinFile(save(torch, tmp_path, values))
    assert_same(torch, file, values)
    assert [file.dtype(name) for name in names] == ["F8_E4M3", "F8_E5M2", "U16", "U32", "U64"]


@FORMS
def test_views_and_shapes(torch, tmp_path, zipped):
    x = torch.arange(24.0).reshape(2, 3, 4)
    values = {
        "whole": x,
        "scalar": torch.tensor(7.0),
        "empty": torch.zeros(0, 5),
        "no elements of a view": x[1:1, :, 2],
        "transposed": x.permute(2, 0, 1),
        "steps": x[:, ::2, 1::2],
        "from the middle": x[1],
        "expanded": torch.arange(3).expand(4, 3),
        "one row of many": x[:1, :1].expand(1, 5, 4),
        "column": x.reshape(6, 4)[:, 3],
    }
    file = TorchBinFile(save(torch, tmp_path, values, zipped))
    assert_same(torch, file, values)
    assert np.shares_memory(file.read("whole").array, file.read("from the middle").array)
    assert not np.shares_memory(file.read("whole").array, file.read("scalar").array)


@FORMS
@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_state_dict_of_a_module_with_ties(torch, tmp_path, zipped, protocol):
    module = torch.nn.Sequential(torch.nn.Embedding(5, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 5))
    module[2].weight = module[0].weight
    state = module.state_dict()
    state["parameter"] = torch.nn.Parameter(torch.ones(2))
    file = TorchBinFile(save(torch, tmp_path, state, zipped, pickle_protocol=protocol))
    assert_same(torch, file, state)
    assert np.shares_memory(file.read("0.weight").array, file.read("2.weight").array)
    assert file.skipped == []


@FORMS
@pytest.mark.parametrize("wrapper", ["state_dict", "model"])
def test_wrapped(torch, tmp_path, zipped, wrapper):
    values = {"w": torch.ones(2)}
    path = save(torch, tmp_path, {wrapper: values, "epoch": 3, "arch": "bert", "best": None, "loss": 0.5}, zipped)
    file = TorchBinFile(path)
    assert_same(torch, file, values)
    assert file.skipped == ["epoch", "arch", "best", "loss"]


@FORMS
def test_contents_that_are_not_a_state_dict(torch, tmp_path, zipped):
    w = {"w": torch.ones(2)}
    for value, says in {
        "two wrappers": ({"state_dict": w, "model": w}, "state_dict (dict of 1), model (dict of 1)"),
        "optimizer": ({"model": w, "optimizer": {"state": {}}}, "optimizer (dict of 1)"),
        "tensor beside": ({"model": w, "x": torch.ones(1)}, "x (tensor)"),
        "nested": ({"encoder": w, "decoder": w}, "encoder (dict of 1), decoder (dict of 1)"),
        "list": ([torch.ones(1)], "found a list"),
        "tensor": (torch.ones(1), "found a tensor"),
        "number as a name": ({1: torch.ones(1)}, "are not strings"),
        "list inside": ({**w, "sizes": [1, 2]}, "sizes (list)"),
    }.values():
        with pytest.raises(CheckpointError) as caught:
            TorchBinFile(save(torch, tmp_path, value, zipped))
        assert says in str(caught.value)


@FORMS
def test_whole_model(torch, tmp_path, zipped):
    path = save(torch, tmp_path, torch.nn.Linear(2, 2), zipped)
    with pytest.raises(CheckpointError, match=r"it holds torch\.nn\.modules\.linear\.Linear"):
        TorchBinFile(path)


def test_unknown_name(torch, tmp_path):
    file = TorchBinFile(save(torch, tmp_path, {"encoder.weight": torch.ones(1)}))
    with pytest.raises(MissingWeightError, match=r"did you mean 'encoder\.weight'"):
        file.read("encoder.wieght")
