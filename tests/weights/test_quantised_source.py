"""GPTQ and AWQ: checkpoints packed here bit by bit, as AutoGPTQ, GPTQModel and AutoAWQ do, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import zoo
from zoo.errors import CheckpointError, ConfigError, MissingWeightError, UnsupportedError, ZooError
from zoo.loading import load_model
from zoo.models.llama3 import LlamaConfig, LlamaForCausalLM
from zoo.nn import leaves
from zoo.quant import QuantTensor
from zoo.weights import RawTensor
from zoo.weights.safetensors import SafetensorsFile, write_safetensors

CONFIG = {"hidden_size": 256, "intermediate_size": 384, "num_hidden_layers": 1, "num_attention_heads": 4}
CONFIG = {**CONFIG, "model_type": "llama", "vocab_size": 40, "num_key_value_heads": 2, "max_position_embeddings": 64}
IDS = np.arange(3, 30)[None]


def quantised(weight: np.ndarray, group: int, symmetric: bool, order: np.ndarray | None) -> tuple[np.ndarray, ...]:
    """weight (E, D) -> bits (D, E), zeros and scales (G, E) float16, groups (D,): order sorts inputs into groups."""
    E, D = weight.shape
    groups = np.empty(D, np.int32)
    groups[np.arange(D) if order is None else order] = np.arange(D) // group
    count = groups.max() + 1
    bits, zeros, scales = np.zeros((D, E), int), np.zeros((count, E), int), np.zeros((count, E), np.float16)
    for g in range(count):
        part = weight[:, groups == g]
        low, high = part.min(axis=1), part.max(axis=1)
        scale = np.abs(part).max(axis=1) / 7 if symmetric else (high - low) / 15
        scales[g] = scale
        zeros[g] = 8 if symmetric else np.clip(np.round(-low / scales[g].astype(float)), 1, 15)
        bits[groups == g] = np.clip(np.round(part / scales[g].astype(float)[:, None]).T + zeros[g], 0, 15)
    return bits, zeros, scales, groups


def rows_packed(x: np.ndarray) -> np.ndarray:
    """(8 A, B) -> (A, B) int32: eight rows in one, the first in the lowest bits."""
    out = np.zeros((len(x) // 8, x.shape[1]), np.uint32)
    for row in range(len(out)):
        for j in range(8):
            out[row] |= x[8 * row + j].astype(np.uint32) << 4 * j
    return out.view(np.int32)


def awq_packed(x: np.ndarray) -> np.ndarray:
    """(A, 8 B) -> (A, B) int32."""
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    out = np.zeros((len(x), x.shape[1] // 8), np.uint32)
    for column in range(out.shape[1]):
        for i in range(8):
            out[:, column] |= x[:, 8 * column + order[i]].astype(np.uint32) << 4 * i
    return out.view(np.int32)


def checkpoints(
    at: Path, method: str, group: int, *, symmetric=False, v2=False, shuffled=False, **stated: object
) -> tuple[Path, Path]:
    """A quantised checkpoint, and one of the numbers that it stands for."""
    model = LlamaForCausalLM.from_config(LlamaConfig.from_dict(CONFIG))
    zoo.save(model, at / "plain")
    source = SafetensorsFile(at / "plain" / "model.safetensors")
    packed, plain = {}, {}
    rng = np.random.default_rng(0)
    for name in source.names():
        x = source.read(name).array
        if not name.endswith("_proj.weight"):
            packed[name] = plain[name] = RawTensor(x, "F32")
            continue
        own, D = name.removesuffix(".weight"), x.shape[1]
        order = rng.permutation(D) if shuffled else None
        bits, zeros, scales, groups = quantised(x, group if group > 0 else D, symmetric, order)
        wide = (bits - zeros[groups]) * scales[groups].astype(np.float64)
        plain[name] = RawTensor(np.ascontiguousarray(wide.T, np.float32), "F32")
        if method == "gptq":
            fields = {"qweight": rows_packed(bits), "qzeros": rows_packed((zeros - (not v2)).T).T, "g_idx": groups}
        else:
            fields = {"qweight": awq_packed(bits), "qzeros": awq_packed(zeros)}
        packed |= {f"{own}.{f}": RawTensor(np.ascontiguousarray(a), "I32") for f, a in fields.items()}
        packed[f"{own}.scales"] = RawTensor(scales, "F16")
    config = {"quant_method": method, "bits": 4, "group_size": group, "desc_act": shuffled, **stated}
    if v2:
        config["checkpoint_format"] = "gptq_v2"
    for folder, tensors, more in (("quantised", packed, {"quantization_config": config}), ("numbers", plain, {})):
        (at / folder).mkdir()
        write_safetensors(at / folder / "model.safetensors", tensors)
        raw = json.loads((at / "plain" / "config.json").read_text())
        (at / folder / "config.json").write_text(json.dumps({**raw, **more}))
    return at / "quantised", at / "numbers"


def kinds(model) -> set[str]:
    found = {part.kind.name for _, leaf in leaves(model) if isinstance(leaf, QuantTensor) for part in leaf.parts}
    return found - {"F32"}


CASES = {
    "gptq of 128": ("gptq", 128, {}, {"UINT4_32"}),
    "gptq of 64": ("gptq", 64, {}, {"UINT4_32"}),
    "gptq of 32, symmetric": ("gptq", 32, {"symmetric": True}, {"INT4_32"}),
    "gptq of 128, symmetric, version 2": ("gptq", 128, {"symmetric": True, "v2": True}, {"INT4_32"}),
    "gptq of version 2": ("gptq", 128, {"v2": True}, {"UINT4_32"}),
    "gptq of whole rows": ("gptq", -1, {}, {"UINT4_32"}),
    "gptq in the order of activations": ("gptq", 128, {"shuffled": True}, set()),
    "awq of 128": ("awq", 128, {"version": "gemm", "zero_point": True}, {"UINT4_32"}),
    "awq of 64": ("awq", 64, {"version": "GEMM"}, {"UINT4_32"}),
    "awq of 32": ("awq", 32, {}, {"UINT4_32"}),
}


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_those_that_were_packed(name, tmp_path):
    method, group, options, wanted = CASES[name]
    folder, numbers = checkpoints(tmp_path, method, group, **options)
    ours, theirs = load_model(folder, strict=True), load_model(numbers)
    assert kinds(ours) == wanted
    a, b = ours(IDS), theirs(IDS)
    np.testing.assert_allclose(a, b, rtol=0, atol=2e-6 * np.abs(b).max())
    wide = load_model(folder, dtype="float32")
    for (path, one), (_, other) in zip(leaves(wide), leaves(theirs), strict=True):
        one, other = (x.dequantise() if isinstance(x, QuantTensor) else x for x in (one, other))
        np.testing.assert_array_equal(one, other, err_msg=path)


def test_a_save_keeps_the_bits(tmp_path):
    folder, _ = checkpoints(tmp_path, "gptq", 128)
    model = load_model(folder)
    zoo.save(model, tmp_path / "saved")
    again = load_model(tmp_path / "saved")
    assert kinds(again) == {"UINT4_32"}
    np.testing.assert_array_equal(again(IDS), model(IDS))


def test_another_order_of_outputs_or_another_zero_would_be_seen(tmp_path):
    """The tests above would fail without AWQ's order and GPTQ's zeros less one."""
    folder, numbers = checkpoints(tmp_path, "gptq", 128)
    wanted = load_model(numbers)(IDS)
    path = folder / "config.json"
    raw = json.loads(path.read_text())
    raw["quantization_config"]["checkpoint_format"] = "gptq_v2"
    path.write_text(json.dumps(raw))
    assert np.abs(load_model(folder)(IDS) - wanted).max() > 0.01 * np.abs(wanted).max()


REFUSED = {
    "fp8": (
        {"quant_method": "fp8", "activation_scheme": "dynamic"},
        "quant_method 'fp8' is not implemented, only gptq",
    ),
    "bitsandbytes": ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "'bitsandbytes' is not implemented"),
    "bitsandbytes of old": ({"load_in_8bit": True}, "'bitsandbytes' is not implemented"),
    "compressed-tensors": ({"quant_method": "compressed-tensors"}, "'compressed-tensors'"),
    "a slip": ({"quant_method": "gptg", "bits": 4}, "did you mean 'gptq'"),
    "no method": ({}, "quant_method None"),
    "a number": ({"quant_method": 4}, "quant_method 4"),
    "8 bits": ({"quant_method": "gptq", "bits": 8, "group_size": 128}, "bits = 8 is not implemented, only 4"),
    "3 bits": ({"quant_method": "awq", "bits": 3, "group_size": 128}, "bits = 3"),
    "no bits": ({"quant_method": "awq"}, "bits = None"),
    "groups of 0": ({"quant_method": "gptq", "bits": 4, "group_size": 0}, "group_size = 0"),
    "groups that are a text": ({"quant_method": "gptq", "bits": 4, "group_size": "128"}, "group_size = '128'"),
    "marlin": (
        {"quant_method": "gptq", "bits": 4, "group_size": 128, "checkpoint_format": "marlin"},
        "checkpoint_format 'marlin' is not implemented",
    ),
    "gemv": ({"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemv"}, "version 'gemv' of awq"),
    "layers of their own": (
        {"quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": {"+:x": {"bits": 8}}},
        "dynamic",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_refused_by_name(name, tmp_path):
    stated, message = REFUSED[name]
    zoo.save(LlamaForCausalLM.from_config(LlamaConfig.from_dict(CONFIG)), tmp_path)
    raw = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**raw, "quantization_config": stated}))
    with pytest.raises((UnsupportedError, ConfigError), match=message):
        load_model(tmp_path)


@pytest.mark.parametrize("stated", [[], "gptq", 4])
def test_a_config_that_is_no_object(stated, tmp_path):
    zoo.save(LlamaForCausalLM.from_config(LlamaConfig.from_dict(CONFIG)), tmp_path)
    raw = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**raw, "quantization_config": stated}))
    with pytest.raises(ConfigError, match="quantization_config is"):
        load_model(tmp_path)


def _changed(folder: Path, change) -> Path:
    path = folder / "model.safetensors"
    source = SafetensorsFile(path)
    tensors = {name: RawTensor(source.read(name).array.copy(), source.dtype(name)) for name in source.names()}
    del source
    change(tensors)
    write_safetensors(path, tensors)
    return folder


Q = "model.layers.0.self_attn.q_proj"


def _cut(name: str, rows: int):
    def change(tensors):
        tensors[name] = RawTensor(tensors[name].array[:rows], tensors[name].dtype)

    return change


def _put(name: str, value, dtype: str):
    def change(tensors):
        tensors[name] = RawTensor(value, dtype)

    return change


BROKEN = {
    "no zeros": (lambda tensors: tensors.pop(f"{Q}.qzeros"), MissingWeightError, "qzeros.*is missing"),
    "no scales": (lambda tensors: tensors.pop(f"{Q}.scales"), ZooError, "scales"),
    "half of the bits": (_cut(f"{Q}.qweight", 16), CheckpointError, "q_proj"),
    "half of the scales": (_cut(f"{Q}.scales", 1), CheckpointError, r"q_proj.scales unpacks to \(1, 256\)"),
    "half of the zeros": (_cut(f"{Q}.qzeros", 1), CheckpointError, r"q_proj.qzeros unpacks to \(1, 256\)"),
    "a group beyond": (_put(f"{Q}.g_idx", np.full(256, 2, np.int32), "I32"), CheckpointError, "groups below 2"),
    "a group before": (_put(f"{Q}.g_idx", np.full(256, -1, np.int32), "I32"), CheckpointError, "groups below 2"),
    "groups of too few": (_put(f"{Q}.g_idx", np.zeros(7, np.int32), "I32"), CheckpointError, r"shape \(7,\)"),
    "bits that are fractions": (
        _put(f"{Q}.qweight", np.zeros((32, 256), np.float32), "F32"),
        CheckpointError,
        "32-bit",
    ),
    "bits of three dimensions": (
        _put(f"{Q}.qweight", np.zeros((4, 8, 256), np.int32), "I32"),
        CheckpointError,
        "matrix",
    ),
    "scales that are none": (
        _put(f"{Q}.scales", np.full((2, 256), np.nan, np.float16), "F16"),
        CheckpointError,
        "NaN or infinity",
    ),
    "bits and numbers": (_put(f"{Q}.weight", np.zeros((256, 256), np.float32), "F32"), CheckpointError, "stored twice"),
    "zeros of no shape": (_put(f"{Q}.qzeros", np.zeros((), np.int32), "I32"), CheckpointError, "must be a matrix"),
    "zeros that are empty": (_put(f"{Q}.qzeros", np.zeros(0, np.int32), "I32"), CheckpointError, "is empty"),
    "no bits at all": (_put(f"{Q}.qweight", np.zeros((0, 256), np.int32), "I32"), CheckpointError, "q_proj"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_checkpoint_ends_in_one_error(name, tmp_path):
    change, error, message = BROKEN[name]
    folder, _ = checkpoints(tmp_path, "gptq", 128)
    with pytest.raises(error, match=message):
        load_model(_changed(folder, change))
