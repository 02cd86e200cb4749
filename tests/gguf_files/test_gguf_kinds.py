"""llama.cpp's kinds, beside the NumPy reference of the `gguf` package, and models that are stored in them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from made_gguf import KINDS as NAMED
from made_gguf import OWN, finish, gguf, put, write_bert, write_llama

import zoo
from tests.ops import naive
from zoo import ops
from zoo.errors import CheckpointError
from zoo.loading import load_model
from zoo.models.llama3 import LlamaConfig, LlamaForCausalLM
from zoo.nn import leaves
from zoo.quant import QUANT_TYPES, QuantRows, QuantTensor
from zoo.quant.ggml import GGML
from zoo.weights.gguf.source import GGUFFile

WRITTEN = ("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1")  # by the package; of the others it has the reading
ALL = [kind.name for kind in GGML]
# Where a record has its scales and minima; every scale of MXFP4 is a number.
HALVES = {"Q8_0": (0,), "Q4_0": (0,), "Q5_0": (0,), "Q4_1": (0, 2), "Q5_1": (0, 2), "IQ4_NL": (0,), "IQ4_XS": (0,)}
HALVES |= {"Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}


def records(kind: str, rows: int, blocks: int, rng: np.random.Generator) -> np.ndarray:
    """Random bytes, whose scales are numbers of the size that real ones have; the fewest and the most bits too."""
    _, size = gguf.GGML_QUANT_SIZES[NAMED[kind]]
    data = rng.integers(0, 256, (rows, blocks, size), np.uint8)
    data[0, 0], data[-1, -1] = 0, 255
    if kind == "MXFP4":  # powers of two
        data[..., 0] = rng.integers(116, 122, (rows, blocks))
        return data.reshape(rows, -1)
    for begin in HALVES[kind]:
        size = {"Q3_K": 1e-3, "IQ4_NL": 5e-4, "IQ4_XS": 3e-5}.get(kind, 0.01)  # codes up to 127, and factors up to 32
        scale = (rng.standard_normal((rows, blocks, 1)) * size).astype(np.float16)
        data[..., begin : begin + 2] = scale.view(np.uint8)
    return data.reshape(rows, -1)


@pytest.mark.parametrize("kind", ALL)
def test_numbers_are_those_of_the_reference(kind, rng):
    data = records(kind, 37, 5, rng)
    wanted = gguf.quants.dequantize(data, NAMED[kind])
    found = QuantRows(QUANT_TYPES[kind], wanted.shape[1], (data,)).check("a").dequantise()
    np.testing.assert_array_equal(found.view(np.uint32), wanted.view(np.uint32))
    naively = naive.dequantise(QuantTensor([QuantRows(QUANT_TYPES[kind], wanted.shape[1], (data[:3],))]))
    np.testing.assert_allclose(naively, wanted[:3], rtol=1e-6, atol=1e-6)
    part = QuantRows(QUANT_TYPES[kind], wanted.shape[1], (data,))[[5, 3, 3]]
    np.testing.assert_array_equal(part.dequantise(), wanted[[5, 3, 3]])


def test_the_sizes_are_those_of_the_reference():
    from zoo.weights.gguf.header import TYPES

    for number, (name, block, size) in TYPES.items():
        assert (NAMED[name], gguf.GGML_QUANT_SIZES[NAMED[name]]) == (number, (block, size))
        if not QUANT_TYPES[name].is_plain:
            assert (QUANT_TYPES[name].block, QUANT_TYPES[name].fields[0].per_block) == (block, size)


@pytest.mark.parametrize("tokens", [1, 3, 40])
@pytest.mark.parametrize("kind", ALL)
def test_products_and_rows(kind, tokens, rng):
    width = 2 * QUANT_TYPES[kind].block
    weight = QuantTensor([QuantRows(QUANT_TYPES[kind], width, (records(kind, rows, 2, rng),)) for rows in (70, 33)])
    x = rng.standard_normal((1, tokens, width), np.float32)
    found, wanted = ops.linear(x, weight, None), naive.linear(x, weight, None)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5 * np.abs(wanted).max())
    ids = rng.integers(0, 103, (2, 4))
    np.testing.assert_array_equal(ops.embedding(ids, weight), weight.dequantise()[ids])


@pytest.mark.parametrize("kind", HALVES)
def test_a_scale_that_is_no_number_is_refused(kind, rng):
    for begin in HALVES[kind]:
        data = records(kind, 3, 2, rng)
        data.reshape(3, 2, -1)[1, 1, begin : begin + 2] = np.float16([np.nan]).view(np.uint8)
        rows = QuantRows(QUANT_TYPES[kind], 2 * QUANT_TYPES[kind].block, (data,))
        with pytest.raises(CheckpointError, match=rf"'a' \({kind}\): a block's scale is NaN or infinite"):
            rows.check("a")


def wide_llama(folder: Path) -> Path:
    """A random Llama whose rows are whole blocks of 256, with a vocabulary that there is a tokenizer for."""
    raw = json.loads((OWN / "config.json").read_text())
    sizes = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "head_dim": None}
    config = LlamaConfig.from_dict({**raw, **sizes, "num_attention_heads": 4, "num_key_value_heads": 2})
    zoo.save(LlamaForCausalLM.from_config(config, seed=1), folder)
    shutil.copy(OWN / "tokenizer.json", folder)
    return folder


def any_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package writes K-blocks of random bits in the place of quantising."""
    quantize = gguf.quants.quantize

    def made(x, kind):
        if kind.name in WRITTEN or kind.name in ("F32", "F16", "BF16"):
            return quantize(x, kind)
        block, _ = gguf.GGML_QUANT_SIZES[kind]
        rows = x.reshape(-1, x.shape[-1])
        return records(kind.name, len(rows), x.shape[-1] // block, np.random.default_rng(len(rows)))

    monkeypatch.setattr(gguf.quants, "quantize", made)


@pytest.mark.parametrize("kind", ALL)
def test_a_model_in_blocks_is_that_of_its_numbers(kind, tmp_path, monkeypatch):
    any_kind(monkeypatch)
    path = write_llama(wide_llama(tmp_path / "folder"), tmp_path / "m.gguf", kind)
    packed = load_model(path)
    found = {part.kind.name for _, leaf in leaves(packed) if isinstance(leaf, QuantTensor) for part in leaf.parts}
    assert found == {kind}
    wide = load_model(path, dtype="float32")
    assert not any(isinstance(leaf, QuantTensor) and not leaf.is_plain for _, leaf in leaves(wide))
    ids = np.arange(3, 40)[None]
    a, b = packed(ids), wide(ids)
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * np.abs(b).max())


@pytest.mark.parametrize("kind", ALL)
def test_a_model_in_blocks_on_torch(kind, tmp_path, monkeypatch):
    """Packed beside numbers of 16 bits, and where no type is asked for; saved so, it is read without torch."""
    pytest.importorskip("torch", reason="needs torch, the other backend")
    any_kind(monkeypatch)
    path = write_llama(wide_llama(tmp_path / "folder"), tmp_path / "m.gguf", kind)
    ids = np.arange(3, 40)[None]
    wanted = load_model(path)(ids)
    for dtype, error in ((None, 1e-5), ("bfloat16", 0.05), ("float32", 1e-5)):
        model = load_model(path, device="torch:cpu", dtype=dtype)
        parts = [part for _, leaf in leaves(model) if isinstance(leaf, QuantTensor) for part in leaf.parts]
        assert bool(parts) == (dtype != "float32")
        assert not any(part.kind.is_plain or part.kind.name.startswith(("Q", "IQ")) for part in parts)
        assert np.abs(ops.to_numpy(model(ids)) - wanted).max() <= error * np.abs(wanted).max()
    again = load_model(zoo.save(load_model(path, device="torch:cpu"), tmp_path / "saved"))
    np.testing.assert_allclose(again(ids), wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_K"])
def test_rows_of_blocks_are_put_in_order_as_they_lie(kind, tmp_path, monkeypatch):
    """Queries and keys: the numbers of rows that were moved in blocks are those of rows that were moved."""
    any_kind(monkeypatch)
    source = GGUFFile(write_llama(wide_llama(tmp_path / "folder"), tmp_path / "m.gguf", kind))
    for name in ("self_attn.q_proj", "self_attn.k_proj"):
        rows = source.read(f"model.layers.1.{name}.weight")
        assert isinstance(rows, QuantRows)
        stored = gguf.GGUFReader(tmp_path / "m.gguf")
        (tensor,) = (t for t in stored.tensors if t.name == f"blk.1.attn_{name[10]}.weight")
        wide = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        heads = len(wide) // 64
        put_back = wide.reshape(heads, 32, 2, -1).swapaxes(1, 2).reshape(wide.shape)
        np.testing.assert_array_equal(rows.dequantise(), put_back)
        np.testing.assert_array_equal(rows.in_order().dequantise(), put_back)
        assert not rows.arrays[0].flags.owndata, "a copy was made, which a graph does not need"


@pytest.mark.parametrize("kind", ["Q8_0", "Q5_1"])
def test_a_sentence_encoder_in_blocks(kind, minilm, tmp_path):
    path = write_bert(minilm, tmp_path / "m.gguf", kind)
    texts = ["The cat sits outside.", "Ünïcode 日本語, hello!"]
    packed, wide, exact = zoo.load(path), zoo.load(path, dtype="float32"), zoo.load(minilm)
    np.testing.assert_allclose(packed(texts), wide(texts), rtol=0, atol=1e-5)
    cosines = (packed(texts) * exact(texts)).sum(axis=1)
    assert (cosines > (0.999 if kind == "Q8_0" else 0.98)).all()
    assert (cosines < 0.9999999).all()


@pytest.mark.parametrize("device", [None, "onnx"])
def test_kinds_are_kept_by_a_save(device, tmp_path):
    path = write_llama(wide_llama(tmp_path / "folder"), tmp_path / "m.gguf", "Q4_0")
    task = zoo.load(path)
    zoo.save(zoo.load(path, device=device), tmp_path / "saved")
    (stored,) = (tmp_path / "saved").glob("*.safetensors")
    assert stored.stat().st_size < 1.1 * path.stat().st_size
    again = zoo.load(tmp_path / "saved")
    ids = np.arange(3, 40)[None]
    np.testing.assert_array_equal(again.model(ids), task.model(ids))


def test_a_vector_in_blocks_is_widened(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_embedding_length(64)
    writer.add_head_count(1)
    x = np.linspace(-1, 1, 64, dtype=np.float32)
    writer.add_tensor("output_norm.weight", gguf.quants.quantize(x[None], NAMED["Q8_0"])[0], raw_dtype=NAMED["Q8_0"])
    put(writer, "token_embd.weight", np.ones((2, 64), np.float32), "F32")
    source = GGUFFile(finish(writer, tmp_path / "m.gguf"))
    found = source.read("model.norm.weight")
    assert not isinstance(found, QuantRows)
    np.testing.assert_allclose(found.array, x, atol=0.01)
