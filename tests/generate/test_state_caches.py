"""A cache of layers with a state has room for a few tokens, however many there were; the others are in the state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ops import naive
from zoo import ops
from zoo.cache import SPARE_TOKENS, KVCache
from zoo.errors import InputError
from zoo.generate import GenerationConfig, generate
from zoo.generate.continuous import ContinuousBatch, Request
from zoo.generate.prefixes import BLOCK, Prefixes
from zoo.loading import load_model
from zoo.ops import StatePast

VOCAB, TOKENS = 40, 1300
SIZES: dict[str, Any] = {"vocab_size": VOCAB, "hidden_size": 32, "num_hidden_layers": 2, "num_heads": 4, "head_dim": 16}
SIZES |= {"state_size": 8, "n_groups": 2, "conv_kernel": 4, "eos_token_id": 3, "pad_token_id": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    torch = pytest.importorskip("torch", reason="needs torch, which writes the checkpoint")
    transformers = pytest.importorskip("transformers", reason="needs transformers, which writes the checkpoint")
    torch.manual_seed(0)
    model = transformers.Mamba2ForCausalLM(transformers.Mamba2Config(**SIZES)).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.2)
    model.save_pretrained(path := tmp_path_factory.mktemp("mamba2"))
    return path


@pytest.fixture(params=[None, "torch:cpu", "onnx"])
def decoder(request, folder):
    pytest.importorskip({"onnx": "onnxruntime"}.get(request.param, "numpy"))
    model = load_model(folder, device=request.param)
    return model.runner.decoder(model)


def memory(cache: KVCache) -> int:
    return sum(x.nbytes for x in (*cache.keys, *cache.values))


def numbers(x: Any) -> np.ndarray:
    return np.asarray(x)


def test_memory_does_not_grow(decoder):
    """After a prompt of many chunks and steps beyond it there are the logits of the text at once."""
    ids = np.random.default_rng(0).integers(4, VOCAB, (2, TOKENS))
    cache = decoder.new_cache(2, 1 << 17)
    decoder.next_logits(ids[:, :100], None, cache)
    before = memory(cache)
    decoder.next_logits(ids[:, 100:-80], None, cache)
    for at in range(TOKENS - 80, TOKENS - 1):
        decoder.next_logits(ids[:, at : at + 1], None, cache)
    found = numbers(decoder.next_logits(ids[:, -1:], None, cache))
    assert memory(cache) == before
    assert cache.dropped_counts.min() > TOKENS - 700
    assert memory(cache) < 2 * 2 * 2 * 700 * 4 * (20 + 64)
    whole = numbers(load_model_of(decoder)(ids))[:, -1]
    np.testing.assert_allclose(found, whole, rtol=1e-4, atol=2e-5 * np.abs(whole).max())


def load_model_of(decoder: Any) -> Any:
    return getattr(decoder, "_model", decoder)


def test_what_can_be_taken_back(decoder):
    ids = np.random.default_rng(1).integers(4, VOCAB, (1, TOKENS))
    cache = decoder.new_cache(1, TOKENS)
    wanted = numbers(decoder.next_logits(ids, None, cache))
    cache.advance(-SPARE_TOKENS)
    found = numbers(decoder.next_logits(ids[:, -SPARE_TOKENS:], None, cache))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=2e-5 * np.abs(wanted).max())
    with pytest.raises(InputError, match="no longer has the window"):
        cache.advance(-1000)
    cache.rewind(5)
    assert cache.length == 0
    again = numbers(decoder.next_logits(ids, None, cache))
    np.testing.assert_allclose(again, wanted, rtol=1e-4, atol=2e-5 * np.abs(wanted).max())


def test_prompts_that_begin_alike(folder):
    """A row goes on from a state that an earlier one had; without room for states, from tokens alone."""
    model = load_model(folder)
    rng = np.random.default_rng(2)
    long = rng.integers(4, VOCAB, TOKENS)
    config = GenerationConfig(max_new_tokens=5, eos_token_id=(3,))
    prompts = [np.append(long[:count], 5) for count in (TOKENS, TOKENS, 1100, 700, 40)]
    for most, least in ((256 << 20, 3 * 512), (150_000, 0)):
        batch = ContinuousBatch(model, max_rows=2)
        batch.prefixes = Prefixes(most)
        for prompt in prompts:
            batch.add(request := Request(prompt, config))
            while batch.rows or batch.waiting:
                assert not any(step.error for step in batch.step())
            assert request.generated_ids == generate(model, [prompt], config)[0][0].ids.tolist()
        assert batch.reused >= least
        assert batch.prefixes.bytes <= 2 * most


def test_a_state_of_a_forgotten_block_is_forgotten(folder):
    """Blocks take the memory of others: no row may get the state of a text that began otherwise."""
    model = load_model(folder)
    rng = np.random.default_rng(3)
    prefixes = Prefixes(50 * BLOCK * 2 * 1000)
    for _ in range(12):
        ids = rng.integers(4, VOCAB, 700)
        cache = model.new_cache(1, 800)
        known = prefixes.match(ids[:-1], cache)
        assert known == 0
        model.next_logits(ids[None, :-1], None, cache)
        prefixes.insert(ids[:-1], cache)
        assert all(block in prefixes._known for block in prefixes._states)


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_state_after_tokens(library, rng):
    torch = pytest.importorskip("torch") if library == "torch" else None
    B, S, G, H, N, P = 2, 9, 2, 4, 5, 3
    there = np.arange(S) < np.array([[9], [4]])
    arrays = [rng.standard_normal(shape, np.float32) for shape in ((B, S, G, N), (B, S, H, P))]
    past = StatePast(*arrays, -rng.random((B, S, H), np.float32), there)
    given = past if torch is None else StatePast(*map(torch.from_numpy, past))
    # What a query of unit vectors reads after one more token, which neither decays the state nor adds to it.
    k, v = np.zeros((B, 1, G, N)), np.zeros((B, 1, H, P))
    found = numbers(ops.ssd_state(given))
    for n in range(N):
        q = np.zeros((B, 1, G, N))
        q[..., n] = 1
        wanted = naive.ssd_scan(q, k, v, np.zeros((B, 1, H)), past)[:, 0]
        np.testing.assert_allclose(found[:, n], wanted, rtol=1e-5, atol=1e-6)
