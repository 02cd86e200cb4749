"""BigBird: blocks on odd lengths, its switch to full attention, the question's tokens, its memory, what it refuses."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from zoo.errors import ConfigError, UnsupportedError
from zoo.loading import load_model
from zoo.models.big_bird import BigBirdConfig, BigBirdForQuestionAnswering, BigBirdModel
from zoo.weights import Random

SMALL = {"vocab_size": 80, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "block_size": 3}
SMALL |= {"intermediate_size": 24, "max_position_embeddings": 120, "num_random_blocks": 1}


def reference(folder, **config):
    """transformers' model of a random checkpoint, whose tensors are not small."""
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    torch.manual_seed(0)
    model = transformers.BigBirdModel(transformers.BigBirdConfig(**{**SMALL, **config})).eval()
    with torch.no_grad():
        for one in model.parameters():
            one.normal_(std=0.3)
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize("device", ["cpu", "onnx", "torch:cpu"])
@pytest.mark.parametrize("random", [1, 2])
def test_blocks_of_odd_lengths(tmp_path, device, random, rng):
    """Up to (5 + 2 x random) blocks all tokens see each other, and transformers' model then stays so."""
    theirs, ours = reference(tmp_path, num_random_blocks=random), load_model(tmp_path, device=device)
    import torch

    full = (5 + 2 * random) * 3
    for T in (full, full + 1, full + 3, 71, 7):
        ids = rng.integers(3, 80, (3, T))
        mask = (np.arange(T) < np.array([[T], [max(1, T // 2)], [1]])).astype(np.int64)
        mask[0, 2] = 0
        theirs.set_attention_type("block_sparse")
        with torch.no_grad():
            wanted = theirs(torch.from_numpy(ids), attention_mask=torch.from_numpy(mask)).last_hidden_state.numpy()
        found = zoo.ops.to_numpy(ours(ids, mask).last_hidden_state)
        assert np.abs(found - wanted).max() <= 1e-4


def test_segments_and_logits_of_a_question(tmp_path):
    """Without segments those of a question are 0; its tokens but the first are no answer."""
    model = load_model(build("bigbird-base-trivia-itc", tmp_path))
    assert isinstance(model, BigBirdForQuestionAnswering)
    ids = np.array([[3, 7, 8, 4, 9, 10, 4], [3, 7, 8, 9, 9, 10, 11]])
    segments = np.array([[0, 0, 0, 0, 1, 1, 1], [0, 1, 1, 1, 1, 1, 1]])
    found, wanted = model(ids), model(ids, token_type_ids=segments)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b)
        assert ((a < -9e5) == [[False, True, True, True, False, False, False], [False] * 7]).all()


def test_memory_of_fifty_thousand_tokens():
    """The scores of one head and all pairs would take 10 GB."""
    cfg = BigBirdConfig.from_dict({**SMALL, "max_position_embeddings": 50_000, "block_size": 64})
    model, ids = BigBirdModel.from_source(Random(0), cfg), np.full((1, 50_000), 7)
    tracemalloc.start()
    try:
        model(ids)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 300 << 20


def test_what_is_refused():
    for wrong, match in (
        ({"block_size": 0}, "block_size"),
        ({"num_random_blocks": -1}, "num_random_blocks = -1"),
        ({"attention_type": "block_spars"}, "attention_type = 'block_spars'.*block_sparse"),
    ):
        with pytest.raises(ConfigError, match=match):
            BigBirdConfig.from_dict({**SMALL, **wrong})
    for wrong, match in (
        ({"is_decoder": True}, "a decoder's attention_type = 'block_sparse'"),
        ({"is_decoder": True, "attention_type": "original_full", "add_cross_attention": True}, "add_cross_attention"),
    ):
        with pytest.raises(UnsupportedError, match=match):
            BigBirdConfig.from_dict({**SMALL, **wrong})
