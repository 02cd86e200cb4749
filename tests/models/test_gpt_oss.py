"""gpt-oss: experts in MXFP4 and in bfloat16, one tensor of all in the file, saved again as transformers has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from zoo.errors import CheckpointError, MissingWeightError, ZooError
from zoo.loading import load_model
from zoo.models.gpt_oss import GptOssConfig
from zoo.nn import leaves
from zoo.quant import QuantTensor
from zoo.typing import RawTensor
from zoo.weights.files import open_weights
from zoo.weights.safetensors import write_safetensors

IDS = np.arange(3, 30)[None]
MXFP4 = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]}


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """A folder with the experts in MXFP4, as on the Hub."""
    folder = build("gpt-oss-20b", tmp_path / "packed")
    source, rng, tensors = open_weights(folder / "model.safetensors"), np.random.default_rng(0), {}
    for name in source.names():
        if not name.endswith(("gate_up_proj", "down_proj")):
            stored: Any = source.read(name)
            tensors[name] = RawTensor(np.array(stored.array), stored.dtype)
            continue
        E, I, O = source.shape(name)  # noqa: E741
        I = -(-I // 32) * 32  # noqa: E741
        tensors[f"{name}_blocks"] = RawTensor(rng.integers(0, 256, (E, O, I // 32, 16), np.uint8), "U8")
        tensors[f"{name}_scales"] = RawTensor(rng.integers(120, 124, (E, O, I // 32), np.uint8), "U8")
    change_config(folder, intermediate_size=64, quantization_config=MXFP4)
    for name in [name for name in tensors if name.endswith("gate_up_proj_bias")]:
        tensors[name] = RawTensor(rng.integers(0, 15000, (4, 128), np.uint16), "BF16")
    for name in [name for name in tensors if "gate_up_proj_" in name and "bias" not in name]:
        array = tensors[name].array
        tensors[name] = RawTensor(np.concatenate([array, array[:, :32]], 1), "U8")
    write_safetensors(folder / "model.safetensors", tensors)
    return folder


def change_config(folder: Path, **fields: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **fields}))


def change(folder: Path, of: str, edit: Any) -> None:
    """Write the weights again, with the tensors whose names end with `of` as `edit` returns them; None: without."""
    source, tensors = open_weights(folder / "model.safetensors"), {}
    for name in source.names():
        stored: Any = source.read(name)
        one = RawTensor(np.array(stored.array), stored.dtype)
        if (one := edit(one) if name.endswith(of) else one) is not None:
            tensors[name] = one
    write_safetensors(folder / "model.safetensors", tensors)


def test_experts_in_mxfp4_are_those_of_transformers(packed):
    torch = pytest.importorskip("torch", reason="needs transformers, the reference")
    transformers = pytest.importorskip("transformers", reason="the reference")
    model: Any = load_model(packed)
    experts = model.base_model.layers[1].mlp.experts
    kinds = {part.kind.name for one in experts for m in (one.gate_up, one.down) for part in m.weight.parts}
    assert kinds == {"FP4_32"}
    options = {"dtype": torch.float32, "quantization_config": transformers.Mxfp4Config(dequantize=True)}
    theirs = transformers.GptOssForCausalLM.from_pretrained(
        packed, attn_implementation="eager", experts_implementation="eager", **options
    )
    with torch.no_grad():
        wanted = theirs(torch.from_numpy(IDS)).logits.float().numpy()
    assert np.abs(model(IDS) - wanted).max() <= 1e-4 * np.abs(wanted).max()
    there: Any = load_model(packed, device="torch:cpu", dtype="float32")
    assert np.abs(there(IDS).numpy() - wanted).max() <= 1e-4 * np.abs(wanted).max()


def test_mxfp4_is_saved_packed_and_widened(packed, tmp_path):
    model: Any = load_model(packed)
    wanted = model(IDS)
    zoo.save(model, tmp_path / "again")
    again: Any = load_model(tmp_path / "again")
    assert any(isinstance(leaf, QuantTensor) and not leaf.is_plain for _, leaf in leaves(again))
    np.testing.assert_array_equal(again(IDS), wanted)
    zoo.save(model, tmp_path / "wide", dtype="bfloat16")
    source = open_weights(tmp_path / "wide")
    assert source.shape("model.layers.0.mlp.experts.gate_up_proj") == (4, 64, 128)
    assert source.shape("model.layers.0.mlp.experts.down_proj_bias") == (4, 64)
    wide: Any = load_model(tmp_path / "wide")  # numbers of four bits and their scales are exact in bfloat16
    np.testing.assert_allclose(wide(IDS), wanted, rtol=0, atol=1e-4 * np.abs(wanted).max())


def test_a_model_in_floats_is_saved_with_one_tensor_of_all_experts(tmp_path):
    folder = build("gpt-oss-20b", tmp_path / "floats")
    zoo.save(load_model(folder), tmp_path / "again")
    there, here = (open_weights(path) for path in (folder, tmp_path / "again"))
    assert set(there.names()) == set(here.names())
    for name in there.names():
        np.testing.assert_array_equal(*(source.read(name).array for source in (there, here)))  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("of", "edit", "error", "said"),
    [
        ("0.mlp.experts.down_proj_scales", lambda one: None, MissingWeightError, "down_proj_scales' is missing"),
        ("down_proj_scales", lambda one: one._replace(array=one.array[:2]), CheckpointError, "expected .*scales, 16"),
        ("down_proj_scales", lambda one: one._replace(array=one.array | 255), CheckpointError, "scale is NaN"),
        ("down_proj_blocks", lambda one: one._replace(dtype="I8", array=one.array.view(np.int8)), ZooError, "U8"),
        ("down_proj_bias", lambda one: one._replace(array=one.array[..., None]), CheckpointError, "expected a stack"),
        ("down_proj_bias", lambda one: one._replace(array=one.array[:3]), MissingWeightError, "3.down_proj.bias"),
    ],
)
def test_damaged_experts_are_refused(packed, of, edit, error, said):
    change(packed, of, edit)
    with pytest.raises(error, match=said):
        load_model(packed)


def test_an_expert_that_is_stored_twice_is_refused(tmp_path):
    folder = build("gpt-oss-20b", tmp_path)
    source, tensors = open_weights(folder / "model.safetensors"), {}
    for name in source.names():
        tensors[name] = RawTensor(np.array(source.read(name).array), source.dtype(name))  # type: ignore[union-attr]
    own = "model.layers.0.mlp.experts.0.up_proj.bias"
    tensors[own] = RawTensor(np.zeros(48, np.float32), "F32")
    write_safetensors(folder / "model.safetensors", tensors)
    with pytest.raises(CheckpointError, match="is stored twice"):
        load_model(folder)


def test_a_config_without_positions_has_yarn_and_windows_in_every_other_layer():
    config = GptOssConfig()
    assert config.rope().kind == "yarn"
    assert [config.window(layer) for layer in range(3)] == [127, None, 127]
