"""The options `dtype` and `graphs`: the values they may have, and the errors for all others."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from zoo.errors import InputError, UnsupportedError


@pytest.mark.parametrize("load", [zoo.load, zoo.load_model])
@pytest.mark.parametrize("dtype", [32, ["float32"]], ids=repr)
def test_dtype_that_is_neither_a_name_nor_a_type(load, dtype):
    with pytest.raises(UnsupportedError) as e:
        load("stories260k", dtype=dtype)
    assert f"dtype {str(dtype)!r} is not supported, expected float32 or float64" in str(e.value)


@pytest.mark.parametrize("dtype", [np.float64, np.dtype("float64")], ids=repr)
def test_dtype_as_a_type_of_numpy(dtype):
    model = zoo.load_model("stories260k", dtype=dtype)
    assert {array.dtype for _, array in zoo.nn.leaves(model)} == {np.dtype("float64")}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_numpy_says_where_16_bits_can_be_had(dtype):
    wanted = (
        f'NumPy has no product of {dtype} matrices: use dtype="float32", or device="cuda", "torch:cpu" or "openvino"'
    )
    with pytest.raises(UnsupportedError, match=wanted):
        zoo.load("stories260k", dtype=dtype)
    pytest.importorskip("torch", reason="needs torch, which the message sends to")
    assert zoo.load("stories260k", dtype=dtype, device="torch:cpu")("Once", max_new_tokens=1)


def test_dtype_that_nobody_knows():
    with pytest.raises(UnsupportedError, match="dtype 'float31' is not supported, expected float32 or float64"):
        zoo.load("stories260k", dtype="float31")


@pytest.mark.parametrize(("device", "meant"), [("onxx", "onnx"), ("gpu", None), ("torch.cpu", "torch:cpu")])
def test_device_that_nobody_knows(device, meant):
    """The message does not speak of torch or of the checkpoint, with which nothing is wrong."""
    with pytest.raises(UnsupportedError, match=f"^device '{device}' is not supported, expected 'cpu', ") as e:
        zoo.load("stories260k", device=device)
    assert e.value.argument == "device"
    assert (f"did you mean '{meant}'" in str(e.value)) == (meant is not None)


@pytest.mark.parametrize("device", [None, "torch"])
def test_what_the_table_of_devices_lists_runs(device):
    if device:
        pytest.importorskip("torch", reason="needs torch")
    texts = {
        dtype: zoo.load("stories260k", device=device, dtype=dtype)("Once upon", max_new_tokens=5)
        for dtype in (None, "float32", "float64")
    }
    assert len(set(texts.values())) == 1


@pytest.mark.parametrize("graphs", ["yes", 1, 0, np.True_], ids=repr)
def test_graphs_is_true_false_or_none(graphs):
    with pytest.raises(InputError) as e:
        zoo.load("stories260k", graphs=graphs)
    assert f"graphs is {graphs!r}, expected True, False or None" in str(e.value)
