"""`weights="int8"` and "int4": what is quantised, how it is saved and read again, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import zoo
from zoo.errors import CheckpointError, UnsupportedError, ZooError
from zoo.loading import load_model
from zoo.models.bert import BertConfig, BertForMaskedLM
from zoo.models.llama3 import LlamaConfig, LlamaForCausalLM
from zoo.nn import count_parameters, leaves
from zoo.ops.on_numpy.quantise import quantise
from zoo.quant import QuantTensor
from zoo.saving import save_model
from zoo.typing import RawTensor
from zoo.weights.safetensors import SafetensorsFile, write_safetensors

SIZES = {"vocab_size": 80, "hidden_size": 48, "intermediate_size": 70, "num_hidden_layers": 2, "num_attention_heads": 4}
CHOICES = {"int8": ("INT8", "INT8"), "int4": ("INT4_32", "INT8")}
IDS = np.array([[1, 2, 3, 4, 5]])


def llama(folder: Path, dtype: str = "float32", **changes) -> Path:
    config = LlamaConfig.from_dict({"model_type": "llama", "num_key_value_heads": 2, **SIZES, **changes})
    return save_model(LlamaForCausalLM.from_config(config), folder, dtype=dtype)


def bert(folder: Path) -> Path:
    return save_model(BertForMaskedLM.from_config(BertConfig(**SIZES)), folder)


def kinds(model) -> dict[str, set[str]]:
    return {
        path: {part.kind.name for part in leaf.parts} if isinstance(leaf, QuantTensor) else {str(leaf.dtype)}
        for path, leaf in leaves(model)
    }


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("family", [llama, bert])
def test_matrices_are_quantised_and_nothing_else(family, choice, tmp_path):
    folder = family(tmp_path)
    plain, model = load_model(folder), load_model(folder, weights=choice)
    matrices, tables = CHOICES[choice]
    for path, found in kinds(model).items():
        if "position" in path or "segment" in path or not path.endswith((".weight", ".word")) or "norm" in path:
            assert found == {"float32"}, path
        else:
            assert found == {tables if path.endswith(("word", "head.weight", "decoder.weight")) else matrices}, path
    assert count_parameters(model) == count_parameters(plain)
    assert np.isfinite(model(IDS)).all()


def test_what_shares_an_array_still_does(tmp_path):
    model = load_model(llama(tmp_path, tie_word_embeddings=True), weights="int4")
    assert model.head.weight is model.base_model.embeddings.word


@pytest.mark.parametrize(("choice", "error"), [("int8", 0.05), ("int4", 0.5)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_the_result_is_near(choice, error, dtype, tmp_path):
    folder = llama(tmp_path, dtype)
    wanted, found = load_model(folder)(IDS), load_model(folder, weights=choice)(IDS)
    assert 0 < np.linalg.norm(found - wanted) < error * np.linalg.norm(wanted)


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("family", [llama, bert])
def test_saving_keeps_every_bit_and_loading_maps_them(family, choice, tmp_path):
    model = load_model(family(tmp_path / "a"), weights=choice)
    folder = zoo.save(model, tmp_path / "b")
    again = load_model(folder)
    np.testing.assert_array_equal(again(IDS), model(IDS))
    source = SafetensorsFile(folder / "model.packed.safetensors")
    for (path, a), (_, b) in zip(leaves(model), leaves(again), strict=True):
        if isinstance(a, QuantTensor):
            for x, y in zip(a.parts, b.parts, strict=True):
                assert x.kind is y.kind, path
                for one, other in zip(x.arrays, y.arrays, strict=True):
                    np.testing.assert_array_equal(one, other)
                    assert not other.flags.aligned or not other.flags.owndata, path
    stored = {source.dtype(name) for name in source.names()}
    assert stored == {"int8": {"I8", "F32"}, "int4": {"U8", "F16", "I8", "F32"}}[choice]
    twice = zoo.save(again, tmp_path / "c")
    assert (twice / source.path.name).read_bytes() == source.path.read_bytes()
    assert load_model(folder, weights=choice, strict=True) is not None  # which it has already


def test_a_type_that_is_asked_for_widens_what_is_read_and_what_is_written(tmp_path):
    model = load_model(llama(tmp_path / "a"), weights="int8")
    packed, wide = zoo.save(model, tmp_path / "b"), zoo.save(model, tmp_path / "c", dtype="float32")
    for folder, dtype in ((packed, "float32"), (wide, None)):
        found = load_model(folder, dtype=dtype)
        assert not any(isinstance(leaf, QuantTensor) and not leaf.is_plain for _, leaf in leaves(found))
        np.testing.assert_allclose(found(IDS), model(IDS), rtol=0, atol=1e-5)
    method = [json.loads((f / "config.json").read_text()).get("quantization_config") for f in (packed, wide)]
    assert method == [{"quant_method": "zoo"}, None]


def test_transformers_refuses_it(tmp_path):
    transformers = pytest.importorskip("transformers", reason="needs transformers, which must not misread it")
    folder = zoo.save(load_model(llama(tmp_path / "a"), weights="int8"), tmp_path / "b")
    with pytest.raises(OSError, match=r"no file named model\.safetensors"):
        transformers.AutoModelForCausalLM.from_pretrained(folder)


@pytest.mark.parametrize("dtype", [None, "bfloat16"])
@pytest.mark.parametrize("choice", CHOICES)
def test_torch(choice, dtype, tmp_path):
    torch = pytest.importorskip("torch", reason="needs torch, the other backend")
    folder = llama(tmp_path / "a")
    wanted = load_model(folder, weights=choice)
    model = load_model(folder, device="torch:cpu", weights=choice, dtype=dtype)
    found = model(IDS).float().numpy()
    assert np.abs(found - wanted(IDS)).max() <= (1e-5 if dtype is None else 3e-2) * np.abs(found).max()
    qkv = model.base_model.layers[0].attention.qkv.weight
    assert [str(array.dtype) for array in qkv.parts[0].arrays] == {
        "int8": ["torch.int8", "torch.float32"],
        "int4": ["torch.uint8", "torch.float16"],
    }[choice]
    assert len(qkv.parts) == 1
    assert torch.is_tensor(model.like)
    if dtype is None:  # else norms were rounded
        again = load_model(zoo.save(model, tmp_path / "b"))
        np.testing.assert_array_equal(again(IDS), wanted(IDS))


def test_rounded_weights_are_not_trained(tmp_path):
    pytest.importorskip("torch", reason="needs torch, which trains")
    with pytest.raises(UnsupportedError, match="trainable"):
        load_model(llama(tmp_path / "a"), weights="int8", trainable=True, device="torch:cpu")


def test_what_is_refused(tmp_path):
    folder = llama(tmp_path / "a")
    with pytest.raises(UnsupportedError, match=r"weights='int5' is not (supported, expected|one of) 'int8'"):
        load_model(folder, weights="int5")
    quantised = zoo.save(load_model(folder, weights="int8"), tmp_path / "b")
    with pytest.raises(UnsupportedError, match=r"weights='int4' .* is quantised already, to INT8: leave"):
        load_model(quantised, weights="int4")
    with pytest.raises(CheckpointError, match=r"tensor 'w' contains NaN, infinity or numbers too large for INT8's"):
        quantise(RawTensor(np.full((40, 40), np.nan, np.float32), "F32"), "INT8", "w")


def changed(folder: Path, change) -> Path:
    path = folder / "model.packed.safetensors"
    source = SafetensorsFile(path)
    tensors = {name: np.array(source.read(name).array) for name in source.names()}
    types = {name: source.dtype(name) for name in tensors}
    change(tensors)
    write_safetensors(path, {name: RawTensor(array, types[name]) for name, array in tensors.items()})
    return folder


NAME = "model.layers.1.mlp.up_proj.weight"
DATA, SCALE = f"{NAME}.INT4_32.data", f"{NAME}.INT4_32.scale"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.update({DATA: t[DATA][:-1]}), rf"{NAME}' has shape \(69, 64\), expected \(70, 48\)"),
        (lambda t: t.update({DATA: t[DATA][:, :16]}), r"has shape \(70, 32\), expected \(70, 48\)"),
        (lambda t: t.update({SCALE: t[SCALE][:, :1]}), r"its scale has shape \(70, 1\), expected \(70, 2\)"),
        (lambda t: t[SCALE].fill(np.nan), rf"{NAME}' \(INT4_32\): its scale holds NaN"),
        (lambda t: t.pop(SCALE), rf"{NAME}' is stored as INT4_32, but .*scale' is missing"),
    ],
)
def test_a_damaged_file_is_refused(change, said, tmp_path):
    folder = zoo.save(load_model(llama(tmp_path / "a"), weights="int4"), tmp_path / "b")
    with pytest.raises(ZooError, match=said):
        load_model(changed(folder, change))


@pytest.mark.parametrize("kind", ["INT8", "INT8_32", "INT4_32"])
def test_numbers_are_rounded_to_the_nearest(kind, rng):
    w = (rng.standard_normal((50, 70)) * rng.uniform(0.01, 10, (50, 1))).astype(np.float32)
    w[3] = 0
    w[4, :40] = 0
    rows = quantise(RawTensor(w, "F32"), kind, "w").check("w")
    found = rows.dequantise()
    scale = rows.arrays[1].astype(np.float32).reshape(50, -1)
    each = np.repeat(scale, 70 if kind == "INT8" else 32, 1)[:, :70]
    ends = w / np.where(each == 0, 1, each) > 7.5 if kind == "INT4_32" else np.zeros(w.shape, bool)  # +8 is beyond
    near = np.abs(found - w) <= np.abs(each) * (0.5 + 1e-3)
    assert (near | ends | (np.abs(found - w) <= 1.5 * np.abs(each)) & (kind == "INT4_32")).all()
    assert near.mean() > 0.9
    assert not found[3].any()
    assert not found[4, :32].any()
    error = {"INT8": 0.01, "INT8_32": 0.007, "INT4_32": 0.1}[kind]
    assert np.linalg.norm(found - w) <= error * np.linalg.norm(w)
