"""Mamba2: its text is transformers' text, padded prompts too; names in old files; what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from zoo.errors import ConfigError, UnsupportedError
from zoo.files.json_file import INFINITY
from zoo.generate import GenerationConfig, generate
from zoo.loading import load_model
from zoo.models.mamba2 import Mamba2Config
from zoo.saving import save_model

SIZES = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 2, "num_heads": 6, "head_dim": 16, "state_size": 10}
SIZES |= {"n_groups": 3, "expand": 3, "conv_kernel": 4, "eos_token_id": 3, "pad_token_id": 1, "chunk_size": 16}
LENGTHS = (70, 23, 6, 1)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """transformers' model, and its folder."""
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    torch.manual_seed(0)
    model = transformers.Mamba2ForCausalLM(transformers.Mamba2Config(**SIZES)).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.2)
    model.generation_config.eos_token_id = 3
    model.save_pretrained(folder := tmp_path_factory.mktemp("mamba2"))
    return model, folder


@pytest.mark.parametrize("device", [None, "torch:cpu", "onnx"])
def test_greedy_text_of_padded_rows(theirs, device):
    """transformers has a batch's padding on the left, zoo on the right; both have the text of each row alone."""
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
        alone = [
            reference.generate(torch.tensor(p[None]), do_sample=False, max_new_tokens=40, pad_token_id=1)[0, len(p) :]
            for p in prompts
        ]
    wanted = [until_end(row[max(LENGTHS) :].tolist()) for row in found]
    assert wanted == [until_end(row.tolist()) for row in alone]
    config = GenerationConfig(max_new_tokens=40, eos_token_id=(3,))
    model = load_model(folder, device=device)
    assert [one[0].ids.tolist() for one in generate(model, prompts, config)] == wanted
    assert any(len(set(row)) > 3 for row in wanted)


def until_end(ids: list[int]) -> list[int]:
    return ids[: ids.index(3) + 1] if 3 in ids else ids


@pytest.mark.parametrize("device", [None, "torch:cpu", "onnx"])
def test_padding_in_the_middle(theirs, device, rng):
    """Padding leaves states as they decay: 150 tokens, of which some on each side and in the middle are none."""
    import torch

    reference, folder = theirs
    ids, mask = rng.integers(4, 60, (2, 150)), np.ones((2, 150), np.int64)
    mask[0, :70], mask[1, 60:66], mask[1, 149:] = 0, 0, 0
    with torch.no_grad():
        wanted = reference(torch.tensor(ids), attention_mask=torch.tensor(mask)).logits.numpy()
    found = np.asarray(load_model(folder, device=device)(ids, mask))
    np.testing.assert_allclose(found[mask > 0], wanted[mask > 0], rtol=1e-4, atol=2e-5 * np.abs(wanted).max())


def test_names_of_the_authors(theirs, tmp_path, rng):
    """The authors' name of the embeddings, and a bound of time steps as older versions of transformers write it."""
    torch = pytest.importorskip("torch")
    reference, folder = theirs
    weights = {k.replace("embeddings.", "embedding."): v for k, v in reference.state_dict().items()}
    torch.save(weights, tmp_path / "pytorch_model.bin")
    config = (folder / "config.json").read_text()
    assert json.loads(config)["time_step_limit"] == [0.0, INFINITY]
    plain = json.dumps({**json.loads(config), "time_step_limit": [0.0, float("inf")]})
    assert "Infinity]" in plain
    (tmp_path / "config.json").write_text(plain)
    ids = rng.integers(4, 60, (1, 9))
    np.testing.assert_array_equal(load_model(tmp_path)(ids), load_model(folder)(ids))
    model = load_model(tmp_path)
    save_model(model, saved := tmp_path / "saved")
    assert json.loads((saved / "config.json").read_text())["time_step_limit"] == [0.0, INFINITY]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"time_step_limit": [0.001, INFINITY]}, UnsupportedError),
        ({"time_step_limit": [0.0, 0.1]}, UnsupportedError),
        ({"time_step_limit": [0.0]}, ConfigError),
        ({"time_step_limit": 1.0}, ConfigError),
        ({"n_groups": 4}, ConfigError),
        ({"head_dim": 15}, ConfigError),
        ({"conv_kernel": 0}, ConfigError),
        ({"state_size": -1}, ConfigError),
        ({"layer_norm_epsilon": 0.0}, ConfigError),
        ({"hidden_act": "swoosh"}, UnsupportedError),
    ],
    ids=str,
)
def test_refused(changes, error, theirs, tmp_path):
    import shutil

    shutil.copytree(theirs[1], tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(error, match=next(iter(changes)) if "act" not in str(changes) else "swoosh"):
        load_model(tmp_path / "model")


def test_defaults():
    transformers = pytest.importorskip("transformers")
    theirs, own = transformers.Mamba2Config(), Mamba2Config()
    for name in ("vocab_size", "hidden_size", "num_hidden_layers", "num_heads", "head_dim", "state_size", "n_groups"):
        assert getattr(own, name) == getattr(theirs, name)
