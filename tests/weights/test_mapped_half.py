"""Weights of 16 bits stay as their file has them: loading, saving, counting, memory.  Without torch."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from zoo.errors import UnsupportedError
from zoo.loading import load_model
from zoo.models.llama3 import LlamaConfig, LlamaForCausalLM
from zoo.nn import count_parameters, leaves, map_leaves
from zoo.quant import QUANT_TYPES, QuantRows, QuantTensor
from zoo.saving import save_model
from zoo.weights import RawTensor
from zoo.weights.safetensors import SafetensorsFile, write_safetensors

CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 40,
    "hidden_size": 24,
    "intermediate_size": 36,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "tie_word_embeddings": True,
}


def checkpoint(folder: Path, dtype: str, seed: int = 0, **changes) -> Path:
    """A random Llama of elements of that type."""
    config = {**CONFIG, **changes}
    model = LlamaForCausalLM.from_config(LlamaConfig.from_dict(config), seed=seed)
    folder.mkdir(exist_ok=True)
    return save_model(model, folder, dtype={"BF16": "bfloat16", "F16": "float16", "F32": "float32"}[dtype])


def in_file(array, source: SafetensorsFile) -> bool:
    return np.may_share_memory(array, source._data)


@pytest.mark.parametrize("dtype", ["BF16", "F16"])
def test_matrices_stay_and_vectors_are_widened(dtype, tmp_path):
    model = load_model(checkpoint(tmp_path, dtype))
    kinds = {path: array.dtype for path, array in leaves(model)}
    assert {kind for path, kind in kinds.items() if "norm" in path or "before" in path or "between" in path} == {
        np.dtype(np.float32)
    }
    matrices = [part for _, array in leaves(model) if array.ndim == 2 for part in array.parts]
    assert {m.kind.name for m in matrices} == {dtype}
    assert not any(m.arrays[0].flags.writeable or m.arrays[0].flags.owndata for m in matrices)
    assert model.head.weight is model.base_model.embeddings.word  # tied: one mapped tensor


def test_tied_and_untied(tmp_path):
    model = load_model(checkpoint(tmp_path, "BF16", tie_word_embeddings=False))
    assert model.head.weight is not model.base_model.embeddings.word
    tied = load_model(checkpoint(tmp_path, "BF16"))
    assert count_parameters(model) - count_parameters(tied) == 40 * 24


@pytest.mark.parametrize("dtype", ["BF16", "F16"])
def test_wide_and_narrow_say_the_same(dtype, tmp_path, rng):
    folder = checkpoint(tmp_path, dtype)
    narrow, wide = load_model(folder), load_model(folder, dtype="float32")
    assert {array.dtype for _, array in leaves(wide)} == {np.dtype(np.float32)}
    assert count_parameters(narrow) == count_parameters(wide)
    for (path, a), (other, b) in zip(leaves(narrow), leaves(wide), strict=True):
        assert path == other
        np.testing.assert_array_equal(*(x.dequantise() if isinstance(x, QuantTensor) else x for x in (a, b)))
    for shape in ((1, 1), (3, 50)):
        ids = rng.integers(0, 40, shape)
        a, b = narrow(ids), wide(ids)
        assert a.dtype == np.float32
        assert np.linalg.norm(a - b) <= 1e-6 * np.linalg.norm(b)


@pytest.mark.parametrize("dtype", ["BF16", "F16", "F32"])
def test_saving_keeps_every_bit(dtype, tmp_path):
    folder = checkpoint(tmp_path / "a", dtype)
    again = save_model(load_model(folder), tmp_path / "b")
    a, b = (SafetensorsFile(f / "model.safetensors") for f in (folder, again))
    assert set(a.names()) == set(b.names())
    for name in a.names():
        assert a.dtype(name) == b.dtype(name) == dtype
        assert a.read(name).array.tobytes() == b.read(name).array.tobytes()


@pytest.mark.parametrize("dtype", ["BF16", "F16"])
def test_saving_in_another_type(dtype, tmp_path):
    folder = checkpoint(tmp_path / "a", dtype)
    wide = save_model(load_model(folder), tmp_path / "b", dtype="float32")
    before, after = (SafetensorsFile(f / "model.safetensors") for f in (folder, wide))
    for name in before.names():
        assert after.dtype(name) == "F32"
        stored = before.read(name)
        vector = stored.array.reshape(1, -1)
        found = QuantRows(QUANT_TYPES[stored.dtype], vector.shape[1], (vector,)).dequantise()
        np.testing.assert_array_equal(after.read(name).array, found.reshape(stored.array.shape))


def test_float32_stays_float32(tmp_path):
    folder = checkpoint(tmp_path, "F32")
    source = SafetensorsFile(folder / "model.safetensors")
    model = load_model(folder)
    assert {array.dtype for _, array in leaves(model)} == {np.dtype(np.float32)}
    assert source.read("model.embed_tokens.weight").array.dtype == np.float32


def test_a_header_of_odd_length(tmp_path, rng):
    """Nothing is aligned in such a file: matrices are copied, or read element by element."""
    folder = checkpoint(tmp_path, "BF16")
    ids = rng.integers(0, 40, (2, 30))
    wanted = load_model(folder)(ids)
    path = folder / "model.safetensors"
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    for pad in (1, 2):
        path.write_bytes((size + pad).to_bytes(8, "little") + data[8 : 8 + size] + b" " * pad + data[8 + size :])
        np.testing.assert_allclose(load_model(folder)(ids), wanted, rtol=0, atol=1e-5)


def test_other_families_widen_as_before(tmp_path):
    from zoo.models.bert import BertConfig, BertModel

    config = BertConfig(vocab_size=30, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    folder = save_model(BertModel.from_config(config), tmp_path, dtype="bfloat16")
    assert {array.dtype for _, array in leaves(load_model(folder))} == {np.dtype(np.float32)}


def test_no_products_of_halves_are_promised(tmp_path):
    folder = checkpoint(tmp_path, "BF16")
    with pytest.raises(UnsupportedError, match="bfloat16"):
        load_model(folder, dtype="bfloat16")


def test_map_leaves_keeps_what_is_shared(tmp_path):
    model = load_model(checkpoint(tmp_path, "BF16"))
    copied = map_leaves(np.array, model)
    assert copied.head.weight is copied.base_model.embeddings.word
    (part,) = copied.head.weight.parts
    assert part.arrays[0].dtype == np.uint16
    assert part.arrays[0].flags.owndata
    ids = np.array([[1, 2, 3]])
    np.testing.assert_array_equal(copied(ids), model(ids))


def test_original_weights_are_left_alone(tmp_path):
    """Gated repositories hold the weights a second time, under other names and permuted."""
    folder = checkpoint(tmp_path, "BF16")
    (folder / "original").mkdir()
    (folder / "original" / "consolidated.00.pth").write_bytes(b"not looked at")
    (folder / "original" / "params.json").write_text("{}")
    load_model(folder, strict=True)


def test_rotary_buffers_of_old_files_are_ignored(tmp_path):
    folder = checkpoint(tmp_path, "BF16")
    source = SafetensorsFile(folder / "model.safetensors")
    tensors = {name: source.read(name) for name in source.names()}
    for i in range(2):
        tensors[f"model.layers.{i}.self_attn.rotary_emb.inv_freq"] = RawTensor(np.ones(3, np.float32), "F32")
    tensors = {name: RawTensor(np.array(t.array), t.dtype) for name, t in tensors.items()}
    write_safetensors(folder / "model.safetensors", tensors)
    assert len(load_model(folder, strict=True).report.ignored) == 2


PEAK = """
import json, sys, numpy as np, zoo
def peak():
    with open("/proc/self/status") as f:
        return next(int(l.split()[1]) * 1024 for l in f if l.startswith("VmHWM"))
found = [peak()]
model = zoo.load_model(sys.argv[1])
found.append(peak())
cache = model.new_cache(1, 40)
model.next_logits(np.ones((1, 30), int), None, cache)
model.next_logits(np.ones((1, 1), int), None, cache)
print(json.dumps(found + [peak()]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc, to read the largest memory")
def test_memory_is_the_file(tmp_path):
    """Loading looks at no weight (beyond 1 GiB they are not searched for NaN), and running widens only tiles."""
    D, F, V, layers = 2048, 8192, 60000, 8
    config = {**CONFIG, "vocab_size": V, "hidden_size": D, "intermediate_size": F, "num_hidden_layers": layers}
    (tmp_path / "config.json").write_text(json.dumps(config | {"num_attention_heads": 16, "num_key_value_heads": 4}))
    shapes = {"model.embed_tokens.weight": (V, D), "model.norm.weight": (D,)}
    of_layer = {"mlp.gate_proj": (F, D), "mlp.up_proj": (F, D), "mlp.down_proj": (D, F)}
    of_layer |= {"self_attn.q_proj": (D, D), "self_attn.k_proj": (512, D), "self_attn.v_proj": (512, D)}
    of_layer |= {"self_attn.o_proj": (D, D), "input_layernorm": (D,), "post_attention_layernorm": (D,)}
    for i in range(layers):
        shapes |= {f"model.layers.{i}.{name}.weight": shape for name, shape in of_layer.items()}
    header, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(tmp_path / "model.safetensors", "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        f.truncate(8 + len(text) + end)  # zeros that take no room on the disk
    done = subprocess.run([sys.executable, "-c", PEAK, str(tmp_path)], capture_output=True, text=True, check=True)
    before, loaded, after = json.loads(done.stdout)
    assert loaded - before < 0.05 * end
    assert after - before < 1.1 * end
