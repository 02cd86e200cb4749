"""GGUF files of the decoders that descend from Llama, beside the checkpoints that they were made of."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_gguf import OWN, gguf, tensors_of, write_decoder

import zoo
from zoo.errors import ConfigError, UnsupportedError
from zoo.loading import load_model
from zoo.registry import FAMILIES
from zoo.weights.files import open_weights
from zoo.weights.gguf.config import SETTINGS
from zoo.weights.gguf.header import TensorEntry
from zoo.weights.gguf.metadata import Metadata

SMALL = {"vocab_size": 512, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 8}
SMALL |= {"num_attention_heads": 8, "num_key_value_heads": 4, "max_position_embeddings": 96, "pad_token_id": None}
SMALL |= {"bos_token_id": 1, "eos_token_id": 2}
WINDOW = {"attention__sliding_window": 8}

EXPERTS = {"num_experts": 4, "moe_intermediate_size": 32}

# Architecture -> model_type, fields of the config, and metadata of the architecture.
DECODERS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "qwen2": ("qwen2", {"rope_theta": 1e6, "tie_word_embeddings": True}, {}),
    "qwen2vl": ("qwen2", {"rope_theta": 1e6, "tie_word_embeddings": True}, {"rope__dimension_sections": [2, 1, 1, 0]}),
    "qwen3": ("qwen3", {"head_dim": 16}, {}),
    "qwen3moe": (
        "qwen3_moe",
        {
            "head_dim": 16,
            "num_experts": 4,
            "moe_intermediate_size": 32,
            "norm_topk_prob": True,
            "num_experts_per_tok": 2,
        },
        {"expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 32},
    ),
    "olmo2": ("olmo2", {}, {}),
    "smollm3": ("smollm3", {"rope_theta": 5e6}, {}),
    "gemma3": (
        "gemma3_text",
        {"head_dim": 16, "query_pre_attn_scalar": 16.0, "sliding_window": 8, "rope_parameters": None},
        WINDOW,
    ),
    "llama, experts": (
        "mixtral",
        {"num_local_experts": 4, "num_experts_per_tok": 2},
        {"expert_count": 4, "expert_used_count": 2},
    ),
    "gemma": ("gemma", {"head_dim": 16}, {}),
    "gemma2": (
        "gemma2",
        {"head_dim": 16, "query_pre_attn_scalar": 16.0, "sliding_window": 8, "attn_logit_softcapping": 2.0},
        {**WINDOW, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 30.0},
    ),
    "exaone4": (
        "exaone4",
        {"sliding_window": None, "sliding_window_pattern": None, "layer_types": ["full_attention"] * 8},
        {},
    ),
    "glm4": ("glm4", {"head_dim": 16, "partial_rotary_factor": 0.5}, {"rope__dimension_count": 8}),
    "seed_oss": ("seed_oss", {"head_dim": 16}, {}),
    "arcee": ("arcee", {"head_dim": 16}, {}),
    "nemotron": ("nemotron", {"partial_rotary_factor": 0.5}, {"rope__dimension_count": 4}),
    "hunyuan-dense": ("hunyuan_v1_dense", {"head_dim": 16}, {}),
    "olmoe": ("olmoe", {"num_experts": 4, "num_experts_per_tok": 2}, {"expert_count": 4, "expert_used_count": 2}),
    "gpt-oss": (
        "gpt_oss",
        {"head_dim": 16, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 8}
        | {
            "rope_scaling": {
                "rope_type": "yarn",
                "factor": 8.0,
                "original_max_position_embeddings": 12,
                "truncate": False,
            }
        }
        | {"rope_parameters": None},
        {**WINDOW, "expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 96}
        | {"rope__scaling__type": "yarn", "rope__scaling__factor": 8.0}
        | {"rope__scaling__original_context_length": 12},
    ),
    "ernie4_5": ("ernie4_5", {"head_dim": 16}, {}),
    "command-r": ("cohere", {"logit_scale": 0.25, "use_qk_norm": True}, {"logit_scale": 0.25}),
    "stablelm": (
        "stablelm",
        {"use_qkv_bias": True, "partial_rotary_factor": 0.5, "tie_word_embeddings": False},
        {"rope__dimension_count": 4, "use_parallel_residual": False},
    ),
    "phi2": ("phi", {"partial_rotary_factor": 0.5, "tie_word_embeddings": False}, {"rope__dimension_count": 4}),
    "phi3": ("phi3", {"sliding_window": 8}, {**WINDOW, "rope__dimension_count": 8}),
    "phi3, a part turned": (
        "phi3",
        {"rope_scaling": {"rope_type": "default", "partial_rotary_factor": 0.75}, "head_dim": 16},
        {"rope__dimension_count": 12, "rope__scaling__type": "none"},
    ),
}


def files(name: str, root: Path, **more: Any) -> tuple[Path, Path]:
    """The folder of a checkpoint, and the GGUF file of the same weights."""
    model_type, fields, said = DECODERS[name]
    family, architecture = FAMILIES[model_type], name.partition(",")[0]
    config = family.load("Config").from_dict({"model_type": model_type, **SMALL, **fields})
    zoo.save(family.load("ForCausalLM").from_config(config, seed=3), root / "folder")
    shutil.copy(OWN / "tokenizer.json", root / "folder")
    said = {f"{architecture}__{key}": value for key, value in {**said, **more}.items()}
    return root / "folder", write_decoder(root / "folder", root / "model.gguf", architecture, **said)


@pytest.mark.parametrize("name", DECODERS)
def test_a_decoder_says_the_same(name, tmp_path):
    folder, path = files(name, tmp_path)
    theirs: Any = load_model(folder)
    ours = zoo.load(path)
    ids = np.arange(3, 40)[None]
    np.testing.assert_allclose(ours.model(ids), theirs(ids), rtol=0, atol=2e-5)
    assert (type(ours.model), ours.name, ours.report.unused) == (type(theirs), "generate", ())
    assert ours.report.tied == theirs.report.tied


@pytest.mark.parametrize(
    ("name", "said", "problem"),
    [
        ("qwen3", WINDOW, r"qwen3\.attention\.sliding_window = 8 is not implemented"),
        ("olmo2", {"rope__dimension_count": 4}, r"olmo2\.rope\.dimension_count = 4 is not implemented, only 8"),
        ("exaone4", WINDOW, r"exaone4\.attention\.sliding_window = 8 is not implemented"),
        ("ernie4_5", {"expert_count": 64}, r"ernie4_5\.expert_count = 64 is not implemented, only 0 is"),
        ("gemma3", {"attn_logit_softcapping": 50.0}, r"gemma3\.attn_logit_softcapping = 50\.0 is not implemented"),
    ],
)
def test_what_an_architecture_has_not_is_refused(name, said, problem, tmp_path):
    with pytest.raises(UnsupportedError, match=problem):
        zoo.load(files(name, tmp_path, **said)[1])


def test_a_stablelm_with_norms_of_queries_is_refused():
    with pytest.raises(UnsupportedError, match=r"blk\.0\.attn_q_norm\.weight, of a stablelm"):
        SETTINGS["stablelm"](Metadata({}), {"blk.0.attn_q_norm.weight": TensorEntry("F32", (8, 8), 0, 256)})


def test_heads_of_no_features_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"phi3\.attention\.key_length is 0"):
        zoo.load(files("phi3", tmp_path, attention__key_length=0)[1])


def test_experts_in_blocks(tmp_path):
    """Each expert's matrices are rows of blocks in the one tensor of all, which nothing widens."""
    folder, path = files("qwen3moe", tmp_path)
    path.unlink()
    said = {f"qwen3moe__{key}": value for key, value in DECODERS["qwen3moe"][2].items()}
    write_decoder(folder, path, "qwen3moe", kind="Q8_0", **said)
    ours: Any = load_model(path)
    assert {type(one.down.weight).__name__ for one in ours.base_model.layers[1].mlp.experts} == {"QuantTensor"}
    packed: Any = open_weights(path)
    for name, x in tensors_of(folder).items():
        if ".experts." in name:
            np.testing.assert_allclose(packed.read(name).dequantise(), x, atol=0.005 * np.abs(x).max())


def test_longrope_is_refused(tmp_path, monkeypatch):
    finish = gguf.GGUFWriter.write_header_to_file

    def with_factors(writer, *rest):
        writer.add_tensor("rope_factors_long.weight", np.ones(4, np.float32))
        finish(writer, *rest)

    monkeypatch.setattr(gguf.GGUFWriter, "write_header_to_file", with_factors)
    with pytest.raises(UnsupportedError, match=r"rope_factors_long\.weight"):
        zoo.load(files("phi3", tmp_path)[1])
