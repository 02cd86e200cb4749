"""Llama against transformers, on checkpoints that transformers itself wrote."""

from __future__ import annotations

import json

import numpy as np
import pytest

from zoo.loading import load_model

torch = pytest.importorskip("torch", reason="needs torch, the reference")
transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")

SMALL = {
    "vocab_size": 120,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5,
    "eos_token_id": [2, 3],
}
ROPES = {
    "default": {"rope_theta": 500000.0, "rope_type": "default"},
    "linear": {"rope_theta": 10000.0, "rope_type": "linear", "factor": 4.0},
    "dynamic": {"rope_theta": 10000.0, "rope_type": "dynamic", "factor": 2.0},
    "llama3": {
        "rope_theta": 500000.0,
        "rope_type": "llama3",
        "factor": 32.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32,
    },
    "yarn": {"rope_theta": 10000.0, "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16},
    "yarn with all": {
        "rope_theta": 10000.0,
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 16,
        "beta_fast": 16,
        "beta_slow": 2,
        "mscale": 0.7,
        "mscale_all_dim": 0.3,
        "truncate": False,
    },
    "yarn with a factor of attention": {
        "rope_theta": 10000.0,
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 64,
        "attention_factor": 0.8,
    },
}
# Kinds that no checkpoint of the parity report has, which compares the others, and every head, on NumPy.
UNREPORTED = ("yarn with all", "yarn with a factor of attention")


def reference(folder, head="ForCausalLM", dtype=None, **config):
    """A random model of transformers, saved in `folder`; biases and norms away from 0 and 1."""
    config = {**SMALL, "rope_parameters": dict(ROPES["llama3"]), **config}
    torch.manual_seed(0)
    cls = getattr(transformers, "Llama" + head)
    model = cls(transformers.LlamaConfig(**config, attn_implementation="eager")).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.1)
    if dtype is not None:
        model = model.to(dtype)
    model.save_pretrained(folder)
    return model.float()


def theirs(model, ids, **more):
    with torch.no_grad():
        return model(torch.from_numpy(ids), **more)[0].numpy()


def close(found, wanted, tolerance=1e-5):
    found = np.asarray(found)
    assert found.shape == wanted.shape
    assert np.linalg.norm(found - wanted) <= tolerance * np.linalg.norm(wanted)


@pytest.mark.parametrize(
    ("kind", "device"), [*((kind, "torch:cpu") for kind in ROPES), *((kind, "cpu") for kind in UNREPORTED)]
)
def test_kinds_of_rotary_positions(kind, device, tmp_path, rng):
    model = reference(tmp_path, rope_parameters=dict(ROPES[kind]))
    ours = load_model(tmp_path, device=device)
    tokens = min(ours.max_positions, 120)
    for T in (9, tokens):  # the second beyond the original context where a kind stretches it
        ids = rng.integers(0, 120, (2, T))
        close(ours(ids), theirs(model, ids))


@pytest.mark.parametrize("kind", ["default", "linear", "llama3", "yarn"])
def test_old_spellings(kind, tmp_path, rng):
    model = reference(tmp_path, rope_parameters=dict(ROPES[kind]))
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    parameters = config.pop("rope_parameters")
    config["rope_theta"] = parameters.pop("rope_theta")
    parameters["type"] = parameters.pop("rope_type")
    config["rope_scaling"] = parameters if kind != "default" else None
    path.write_text(json.dumps(config))
    ids = rng.integers(0, 120, (1, 40))
    close(load_model(tmp_path)(ids), theirs(model, ids))


@pytest.mark.parametrize(
    "config",
    [
        {"head_dim": 2, "num_key_value_heads": 6},
        {"hidden_act": "gelu_pytorch_tanh", "num_key_value_heads": 1},
        {"hidden_size": 42, "intermediate_size": 33, "num_attention_heads": 3, "num_key_value_heads": 3},
    ],
    ids=str,
)
def test_variants(config, tmp_path, rng):
    model = reference(tmp_path, **config)
    ids = rng.integers(0, 120, (2, 21))
    close(load_model(tmp_path, strict=True)(ids), theirs(model, ids))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("tied", [True, False])
def test_halves_compute_in_float32(dtype, tied, tmp_path, rng):
    model = reference(tmp_path, dtype=getattr(torch, dtype), tie_word_embeddings=tied)
    ours = load_model(tmp_path)
    assert ours.base_model.embeddings.word.parts[0].arrays[0].itemsize == 2
    for shape in ((1, 1), (2, 21), (3, 60)):  # row-major, tiled, and beyond
        ids = rng.integers(0, 120, shape)
        close(ours(ids), theirs(model, ids))
        close(load_model(tmp_path, dtype="float32")(ids), theirs(model, ids))


def test_cache_in_steps(tmp_path, rng):
    model = reference(tmp_path)
    ids = rng.integers(0, 120, (2, 30))
    ours, wanted = load_model(tmp_path), theirs(model, ids)
    cache = ours.new_cache(2, 30)
    steps = [ours(ids[:, a:b], cache=cache) for a, b in ((0, 11), (11, 12), (12, 30))]
    close(np.concatenate(steps, 1), wanted)
    close(ours(ids, logits_to_keep=3), wanted[:, -3:])


@pytest.mark.parametrize("chunk", [512, 7])
def test_next_logits_of_ragged_rows(chunk, tmp_path, rng, monkeypatch):
    model = reference(tmp_path)
    monkeypatch.setattr("zoo.inputs.heads.CHUNK", chunk)
    lengths = np.array([23, 4, 14, 7])
    ids, extra = rng.integers(0, 120, (4, 23)), rng.integers(0, 120, (4, 5))
    wanted = [[*ids[b, :n], *extra[b]] for b, n in enumerate(lengths)]
    ours = load_model(tmp_path)
    cache = ours.new_cache(4, 28)
    found = [ours.next_logits(ids, lengths, cache)]
    found += [ours.next_logits(extra[:, t : t + 1], None, cache) for t in range(5)]
    assert cache.counts.tolist() == (lengths + 5).tolist()
    for b, row in enumerate(wanted):
        close(np.array([step[b] for step in found]), theirs(model, np.array([row]))[0, -6:])


def test_dynamic_positions_in_chunks(tmp_path, rng, monkeypatch):
    """The whole prompt's length counts from its first chunk on."""
    model = reference(tmp_path, rope_parameters=dict(ROPES["dynamic"]))
    monkeypatch.setattr("zoo.inputs.heads.CHUNK", 16)
    ids = rng.integers(0, 120, (1, 100))
    ours = load_model(tmp_path)
    close(ours.next_logits(ids, None, ours.new_cache(1, 100)), theirs(model, ids)[:, -1])


def test_inputs_embeds_and_position_ids(tmp_path, rng):
    model = reference(tmp_path, "Model")
    ours = load_model(tmp_path)
    embeds = rng.standard_normal((2, 9, 48), np.float32)
    at = np.cumsum(rng.integers(1, 4, (2, 9)), 1)
    given = {"inputs_embeds": embeds, "position_ids": at}
    for more in ({}, {"attention_mask": np.ones((2, 9), np.int64)}):  # with a mask a gap begins no other text
        given |= more
        tensors = {name: torch.from_numpy(array) for name, array in given.items()}
        with torch.no_grad():
            wanted = model(**tensors, use_cache=False)[0].numpy()
        close(ours(**given).last_hidden_state, wanted)


def test_long_context(tmp_path, rng):
    """Every position up to 8192, in chunks with a cache, with heads of a real size."""
    config = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 64, "num_hidden_layers": 2}
    rope = {**ROPES["llama3"], "original_max_position_embeddings": 8192}
    model = reference(tmp_path, "ForCausalLM", rope_parameters=rope, max_position_embeddings=131072, **config)
    model.set_attn_implementation("sdpa")
    ids = rng.integers(0, 120, (1, 8192))
    ours = load_model(tmp_path)
    found = ours.next_logits(ids, None, ours.new_cache(1, 8192))
    close(found, theirs(model, ids, logits_to_keep=1)[:, 0])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_narrow_arithmetic_on_torch(dtype, tmp_path, rng):
    """Our error is at most three times transformers' own where torch computes in 16 bits."""
    exact = reference(tmp_path, dtype=getattr(torch, dtype))
    ids = rng.integers(0, 120, (4, 40))
    wanted = theirs(exact, ids)
    own = transformers.LlamaForCausalLM.from_pretrained(tmp_path, dtype=getattr(torch, dtype))
    with torch.no_grad():
        error = np.linalg.norm(own(torch.from_numpy(ids)).logits.float().numpy() - wanted)
    ours = load_model(tmp_path, device="torch:cpu")
    found = ours(ids)
    assert str(found.dtype) == f"torch.{dtype}"
    assert np.linalg.norm(found.float().numpy() - wanted) <= 3 * error
    step = ours.next_logits(ids[:, -1:], None, ours.new_cache(4, 4))
    assert torch.isfinite(step).all()


def test_ragged_rows_on_torch(tmp_path, rng):
    model = reference(tmp_path)
    ours = load_model(tmp_path, device="torch:cpu")
    lengths, ids = np.array([9, 3]), rng.integers(0, 120, (2, 9))
    cache = ours.new_cache(2, 10)
    first = ours.next_logits(ids, lengths, cache).numpy()
    second = ours.next_logits(ids[:, :1], None, cache).numpy()
    for b, n in enumerate(lengths):
        wanted = theirs(model, np.array([[*ids[b, :n], ids[b, 0]]]))[0]
        close(first[b], wanted[-2])
        close(second[b], wanted[-1])
