"""Falcon-H1: its text is transformers' text, padded prompts too; its factors; what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from zoo.errors import ConfigError, UnsupportedError
from zoo.generate import GenerationConfig, generate
from zoo.loading import load_model

SIZES = {"vocab_size": 60, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "head_dim": 12}
SIZES |= {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256, "mamba_d_ssm": 80}
SIZES |= {"mamba_n_heads": 5, "mamba_d_state": 10, "mamba_chunk_size": 16, "eos_token_id": 3, "pad_token_id": 1}
SIZES |= {"embedding_multiplier": 5.6, "lm_head_multiplier": 0.3, "key_multiplier": 0.39, "ssm_in_multiplier": 1.25}
SIZES |= {"attention_in_multiplier": 0.7, "attention_out_multiplier": 0.9, "ssm_out_multiplier": 0.4}
SIZES |= {"mlp_multipliers": [0.88, 0.58], "ssm_multipliers": [0.35, 0.25, 0.36, 0.5, 0.7]}
LENGTHS = (70, 23, 6, 1)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """transformers' model, and its folder."""
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    torch.manual_seed(0)
    config = transformers.FalconH1Config(**SIZES)
    config._attn_implementation = "eager"
    model = transformers.FalconH1ForCausalLM(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.2)
    model.generation_config.eos_token_id = 3
    model.save_pretrained(folder := tmp_path_factory.mktemp("falcon_h1"))
    return model, folder


@pytest.mark.parametrize("device", [None, "torch:cpu", "onnx"])
def test_greedy_text_of_padded_rows(theirs, device):
    """transformers has a batch's padding on the left, zoo on the right; the texts are the same."""
    import torch

    reference, folder = theirs
    rng = np.random.default_rng(0)
    prompts = [rng.integers(4, 60, n) for n in LENGTHS]
    ids, mask = np.full((len(prompts), max(LENGTHS)), 1), np.zeros((len(prompts), max(LENGTHS)), np.int64)
    for i, prompt in enumerate(prompts):
        ids[i, -len(prompt) :], mask[i, -len(prompt) :] = prompt, 1
    with torch.no_grad():
        given = {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}
        found = reference.generate(**given, do_sample=False, max_new_tokens=40, pad_token_id=1)
    wanted = [row[max(LENGTHS) :].tolist() for row in found]
    wanted = [row[: row.index(3) + 1] if 3 in row else row for row in wanted]
    config = GenerationConfig(max_new_tokens=40, eos_token_id=(3,))
    model = load_model(folder, device=device)
    assert [one[0].ids.tolist() for one in generate(model, prompts, config)] == wanted
    assert any(len(set(row)) > 3 for row in wanted)


def test_vectors_are_not_scaled(theirs, rng):
    """embedding_multiplier is a factor of the words' embeddings alone."""
    import torch

    reference, folder = theirs
    vectors = rng.standard_normal((2, 9, 32), np.float32)
    with torch.no_grad():
        wanted = reference(inputs_embeds=torch.tensor(vectors)).logits.numpy()
    found = np.asarray(load_model(folder)(inputs_embeds=vectors))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=2e-5 * np.abs(wanted).max())


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"time_step_limit": [0.0, 0.1]}, UnsupportedError),
        ({"time_step_limit": None}, ConfigError),
        ({"mamba_n_heads": 7}, ConfigError),
        ({"mamba_d_head": 15}, ConfigError),
        ({"mamba_n_groups": 2}, ConfigError),
        ({"mamba_d_conv": 0}, ConfigError),
        ({"mamba_d_state": -1}, ConfigError),
        ({"mlp_multipliers": [1.0]}, ConfigError),
        ({"ssm_multipliers": [1.0, 1.0, 1.0, 1.0]}, ConfigError),
    ],
    ids=str,
)
def test_refused(changes, error, theirs, tmp_path):
    for path in theirs[1].iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(error, match=next(iter(changes))):
        load_model(tmp_path)
