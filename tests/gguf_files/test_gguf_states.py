"""GGUF files of the decoders with states, Mamba2 and Falcon-H1, beside the checkpoints that they were made of."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_gguf import OWN, add, add_pieces, finish, gguf, put, tensors_of

import zoo
from zoo.errors import ConfigError, UnsupportedError
from zoo.loading import load_model
from zoo.registry import FAMILIES

SMALL = {"vocab_size": 512, "hidden_size": 64, "num_hidden_layers": 3, "bos_token_id": 1, "eos_token_id": 2}
SMALL |= {"pad_token_id": None}
MAMBA2 = {"num_heads": 8, "head_dim": 16, "state_size": 16, "n_groups": 2, "layer_norm_epsilon": 1e-6}
FALCON = {"intermediate_size": 96, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 16}
FALCON |= {"mamba_d_ssm": 96, "mamba_n_heads": 6, "mamba_n_groups": 2, "mamba_d_state": 16, "mamba_d_conv": 3}
FALCON |= {"mamba_norm_before_gate": False, "max_position_embeddings": 96, "rope_theta": 1e5, "key_multiplier": 0.5}
FALCON |= {"embedding_multiplier": 5.5, "lm_head_multiplier": 0.25, "attention_in_multiplier": 1.5}
FALCON |= {"attention_out_multiplier": 0.75, "ssm_in_multiplier": 1.25, "ssm_out_multiplier": 0.625}
FALCON |= {"mlp_multipliers": [0.875, 0.5], "ssm_multipliers": [0.5, 1.5, 0.75, 1.25, 0.25]}
CASES = {
    "mamba2": ("mamba2", MAMBA2),
    "mamba2, tied": ("mamba2", {**MAMBA2, "n_groups": 1, "tie_word_embeddings": True}),
    "falcon-h1": ("falcon_h1", FALCON),
    "falcon-h1, norm": ("falcon_h1", {**FALCON, "mamba_rms_norm": True}),
}


def written(folder: Path, path: Path, architecture: str, **more: Any) -> Path:
    """A checkpoint's folder as llama.cpp's converter writes it."""
    cfg = json.loads((folder / "config.json").read_text())
    is_mamba, D = architecture == "mamba2", cfg["hidden_size"]
    inner = cfg["num_heads"] * cfg["head_dim"] if is_mamba else cfg["mamba_d_ssm"]
    groups, state = (cfg["n_groups"], cfg["state_size"]) if is_mamba else (cfg["mamba_n_groups"], cfg["mamba_d_state"])
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(1 << 20 if is_mamba else cfg["max_position_embeddings"])
    writer.add_embedding_length(D)
    writer.add_block_count(cfg["num_hidden_layers"])
    writer.add_feed_forward_length(0 if is_mamba else cfg["intermediate_size"])
    writer.add_head_count(0 if is_mamba else cfg["num_attention_heads"])
    writer.add_ssm_conv_kernel(cfg["conv_kernel" if is_mamba else "mamba_d_conv"])
    writer.add_ssm_inner_size(inner)
    writer.add_ssm_state_size(state)
    writer.add_ssm_time_step_rank(cfg["num_heads" if is_mamba else "mamba_n_heads"])
    writer.add_ssm_group_count(groups)
    writer.add_layer_norm_rms_eps(cfg["layer_norm_epsilon" if is_mamba else "rms_norm_eps"])
    if not is_mamba:
        writer.add_vocab_size(cfg["vocab_size"])
        writer.add_head_count_kv(cfg["num_key_value_heads"])
        writer.add_key_length(cfg["head_dim"])
        writer.add_value_length(cfg["head_dim"])
        writer.add_rope_freq_base(cfg["rope_theta"])
    add_pieces(writer, folder)
    add(writer, more)
    names = gguf.get_tensor_name_map(getattr(gguf.MODEL_ARCH, architecture.upper().replace("-", "_")), 3)
    for name, x in tensors_of(folder).items():
        if not is_mamba:
            x = x * multiplier(name, cfg, inner, groups * state)
        name = name.replace(".dt_bias", ".dt_proj.bias")
        found = str(names.get_name(name, try_suffixes=(".weight", ".bias")))
        if name.endswith(("A_log", ".D")):
            x = (-np.exp(x) if name.endswith("A_log") else x)[:, None]
        elif name.endswith("conv1d.weight"):
            x = x[:, 0]
        elif "ssm_norm" in found:
            x = x.reshape(groups, -1)
        put(writer, found, x, "F32")
    return finish(writer, path)


def multiplier(name: str, cfg: dict[str, Any], inner: int, keys: int) -> Any:
    """The factor that the converter puts into a tensor of Falcon-H1."""
    into, heads = cfg["attention_in_multiplier"], cfg["mamba_n_heads"]
    if "in_proj" in name:
        parts = np.repeat(cfg["ssm_multipliers"], [inner, inner, keys, keys, heads])[:, None]
        return (parts * cfg["ssm_in_multiplier"]).astype(np.float32)
    factors = {"down_proj": cfg["mlp_multipliers"][1], "gate_proj": cfg["mlp_multipliers"][0], "q_proj": into}
    factors |= {"k_proj": into * cfg["key_multiplier"], "v_proj": into, "o_proj": cfg["attention_out_multiplier"]}
    factors |= {"out_proj": cfg["ssm_out_multiplier"], "lm_head": cfg["lm_head_multiplier"]}
    factors |= {"embed_tokens": cfg["embedding_multiplier"]}
    return np.float32(next((factor for part, factor in factors.items() if f"{part}." in name), 1))


def files(name: str, root: Path, **more: Any) -> tuple[Path, Path]:
    model_type, fields = CASES[name]
    family, architecture = FAMILIES[model_type], name.partition(",")[0]
    config = family.load("Config").from_dict({"model_type": model_type, **SMALL, **fields})
    zoo.save(family.load("ForCausalLM").from_config(config, seed=3), root / "folder")
    shutil.copy(OWN / "tokenizer.json", root / "folder")
    said = {f"{architecture}__{key}": value for key, value in more.items()}
    return root / "folder", written(root / "folder", root / "model.gguf", architecture, **said)


@pytest.mark.parametrize("name", CASES)
def test_a_decoder_says_the_same(name, tmp_path):
    folder, path = files(name, tmp_path)
    theirs: Any = load_model(folder)
    ours = zoo.load(path)
    ids = np.arange(3, 40)[None]
    np.testing.assert_allclose(ours.model(ids), theirs(ids), rtol=0, atol=5e-5)
    assert (type(ours.model), ours.name, ours.report.unused) == (type(theirs), "generate", ())


@pytest.mark.parametrize(
    ("name", "said", "error", "problem"),
    [
        ("mamba2", {"ssm__dt_b_c_rms": True}, UnsupportedError, r"mamba2\.ssm\.dt_b_c_rms = True is not implemented"),
        ("mamba2", {"ssm__time_step_rank": 7}, ConfigError, r"mamba2\.ssm\.time_step_rank = 7 does not divide"),
        ("mamba2", {"ssm__group_count": 0}, ConfigError, "n_groups"),
        ("falcon-h1", {"ssm__state_size": None}, ConfigError, r"the metadata has no 'falcon-h1\.ssm\.state_size'"),
    ],
)
def test_what_is_refused(name, said, error, problem, tmp_path):
    with pytest.raises(error, match=problem):
        zoo.load(files(name, tmp_path, **said)[1])
