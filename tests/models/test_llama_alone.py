"""Llama without torch: trained weights against what they are known to write, the config, and inputs at the door."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import zoo
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.loading import load_model
from zoo.models.llama3 import LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification
from zoo.registry import config_class, model_class
from zoo.saving import save_model

STORIES = Path(zoo.__file__).parent / "data" / "stories260k"
SMALL = {
    "vocab_size": 40,
    "hidden_size": 24,
    "intermediate_size": 36,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 32,
}
LINEAR = {"type": "linear", "factor": 2.0}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}


def config(**changes) -> LlamaConfig:
    return LlamaConfig.from_dict({"model_type": "llama", **SMALL, **changes})


@pytest.fixture
def model():
    return LlamaForCausalLM.from_config(config())


def written(model, ids, count):
    cache = model.new_cache(1, len(ids) + count)
    out, new = list(ids), list(ids)
    for _ in range(count):
        new = [int(model.next_logits(np.array([new]), None, cache).argmax())]
        out += new
    return out


@pytest.mark.parametrize("dtype", [None, "bfloat16"])
def test_stories(dtype, tmp_path):
    """A trained model's greedy story; with its weights rounded to bfloat16 it begins the same, and is still a story."""
    wanted = json.loads((Path(__file__).parents[1] / "data/llama/stories260k_greedy.json").read_text())["greedy_ids"]
    model = load_model(STORIES)
    if dtype is not None:
        model = load_model(save_model(model, tmp_path, dtype=dtype))
        wanted = wanted[:20]
    assert written(model, wanted[:1], len(wanted) - 1) == wanted


def test_rows_of_a_batch_do_not_hear_each_other():
    model = load_model(STORIES)
    prompts = [[1, 403, 407], [1, 403, 407, 261, 378, 432, 383], [1]]
    lengths = np.array([len(p) for p in prompts])
    ids = np.zeros((3, lengths.max()), int)
    for row, prompt in zip(ids, prompts, strict=True):
        row[: len(prompt)] = prompt
    cache = model.new_cache(3, 20)
    found = [model.next_logits(ids, lengths, cache).argmax(-1)]
    for _ in range(9):
        found.append(model.next_logits(found[-1][:, None], None, cache).argmax(-1))
    for row, prompt in zip(np.array(found).T.tolist(), prompts, strict=True):
        assert [*prompt, *row] == written(model, prompt, 10)


def test_registry():
    assert config_class("llama") is LlamaConfig
    assert model_class(config(architectures=["LlamaForCausalLM"])) is LlamaForCausalLM
    assert model_class(config(), "ForSequenceClassification") is LlamaForSequenceClassification


def test_defaults_are_transformers():
    c = LlamaConfig.from_dict({"model_type": "llama"})
    assert (c.key_heads, c.head_size, c.max_positions, c.tie_word_embeddings) == (32, 128, 2048, False)
    assert c.rope().frequencies(1)[:1] == (1.0,)


@pytest.mark.parametrize("eos", [2, None, [2, 5]])
def test_ends_survive_a_round_trip(eos):
    c = config(eos_token_id=eos)
    assert LlamaConfig.from_dict(json.loads(json.dumps(c.to_dict()))).eos_token_id == eos


@pytest.mark.parametrize(
    ("changes", "most"),
    [
        ({}, 32),
        ({"rope_scaling": {"type": "linear", "factor": 4.0}}, 128),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, 64),
        ({"rope_scaling": {**LLAMA3, "original_max_position_embeddings": 8}}, 32),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, 128),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8}}, 32),
    ],
    ids=str,
)
def test_most_tokens(changes, most):
    assert config(**changes).max_positions == most


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"rope_scaling": {"rope_type": "longrope", "factor": 4.0}}, ConfigError, "short_factor of rope_type"),
        ({"rope_scaling": {"type": "lama3", "factor": 4.0}}, UnsupportedError, "llama3"),
        ({"rope_parameters": {"rope_type": 3}}, UnsupportedError, "rope_type 3"),
        ({"rope_scaling": {"type": "linear"}}, ConfigError, "needs factor"),
        ({"rope_scaling": {"type": "linear", "factor": "4"}}, ConfigError, "factor = '4'"),
        ({"rope_scaling": {"type": "linear", "factor": -4.0}}, ConfigError, "factor = -4.0"),
        ({"rope_scaling": {**LLAMA3, "low_freq_factor": 4.0}}, ConfigError, "low_freq_factor"),
        (
            {"rope_scaling": {**LINEAR, "partial_rotary_factor": 0.5}},
            UnsupportedError,
            "partial",
        ),
        (
            {"rope_scaling": LINEAR, "rope_parameters": {"rope_type": "yarn"}},
            ConfigError,
            "disagree",
        ),
        ({"rope_theta": -1.0}, ConfigError, "rope_theta"),
        ({"rope_scaling": [1]}, ConfigError, "rope_scaling"),
        ({"num_key_value_heads": 3}, ConfigError, "num_key_value_heads"),
        ({"num_attention_heads": 5}, ConfigError, "num_attention_heads"),
        ({"head_dim": 5}, ConfigError, "even"),
        ({"head_dim": 2, "rope_scaling": {"type": "dynamic", "factor": 2.0}}, ConfigError, "at least 4"),
        ({"rms_norm_eps": 0.0}, ConfigError, "rms_norm_eps"),
        ({"eos_token_id": [2, "3"]}, ConfigError, "eos_token_id"),
        ({"eos_token_id": True}, ConfigError, "eos_token_id"),
        ({"hidden_size": 10**12}, ConfigError, "hidden_size"),
        ({"num_hidden_layers": 10**6}, ConfigError, "num_hidden_layers"),
    ],
    ids=str,
)
def test_bad_configs(changes, error, says):
    with pytest.raises(error, match=says):
        config(**changes)


def test_pretraining_tp_changes_no_result():
    assert config(pretraining_tp=2).head_size == 6  # as transformers has it: it split products over devices


def test_unknown_activation():
    with pytest.raises(UnsupportedError, match="silu"):
        LlamaForCausalLM.from_config(config(hidden_act="silly"))


def test_longer_than_the_context(model):
    ids = np.zeros((1, 33), int)
    with pytest.raises(InputError, match="33 tokens, but the checkpoint has positions for 32"):
        model(ids)
    with pytest.raises(InputError, match="33 tokens"):
        model.next_logits(ids, None, model.new_cache(1, 40))


def test_a_full_cache(model):
    cache = model.new_cache(1, 8)
    model.next_logits(np.zeros((1, 8), int), None, cache)
    with pytest.raises(InputError, match="has room for 8 tokens"):
        model.next_logits(np.zeros((1, 1), int), None, cache)


def test_ids_out_of_range(model):
    with pytest.raises(InputError, match=r"input_ids must be in \[0, 40\)"):
        model(np.array([[40]]))


def test_several_rows_without_a_padding_token():
    model = LlamaForSequenceClassification.from_config(config())
    rows = [[3, 4, 5], [6, 7, 8], [9, 9]]
    alone = np.concatenate([model(np.array([row])) for row in rows])
    np.testing.assert_allclose(model(np.array(rows[:2])), alone[:2], rtol=1e-4, atol=1e-6)
    padded, mask = np.array([*rows[:2], [9, 9, 0]]), np.array([[1, 1, 1], [1, 1, 1], [1, 1, 0]])
    np.testing.assert_allclose(model(padded, mask), alone, rtol=1e-4, atol=1e-6)


def test_a_row_of_padding_alone_is_finite(model):
    mask = np.array([[0, 0, 0], [1, 1, 1]])
    assert np.isfinite(model(np.ones((2, 3), int), mask)).all()
