"""Longformer: windows and global tokens on odd lengths, the defaults of its heads, its memory, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from zoo.errors import ConfigError, InputError
from zoo.loading import load_model
from zoo.models.longformer import LongformerConfig, LongformerModel
from zoo.weights import Random

SMALL = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "layer_norm_eps": 1e-5}
SMALL |= {"intermediate_size": 24, "max_position_embeddings": 300, "attention_window": [6, 12], "type_vocab_size": 1}


def reference(folder, **config):
    """transformers' model of a random checkpoint, whose tensors are not small."""
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    torch.manual_seed(0)
    model = transformers.LongformerModel(transformers.LongformerConfig(**{**SMALL, **config})).eval()
    with torch.no_grad():
        for one in model.parameters():
            one.normal_(std=0.3)
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize("device", ["cpu", "onnx", "torch:cpu"])
@pytest.mark.parametrize("given", ["", "padded", "global", "padded global"])
def test_rows_with_different_numbers_of_global_tokens(tmp_path, given, device, rng):
    theirs, ours = reference(tmp_path), load_model(tmp_path, device=device)
    for T in (1, 6, 13, 24, 71):
        ids = rng.integers(2, 50, (3, T))
        arrays = {"attention_mask": (np.arange(T) < np.array([[T], [max(1, T // 2)], [1]])).astype(np.int64)}
        arrays["global_attention_mask"] = (rng.random((3, T)) < np.array([[0.3], [0.0], [1.0]])).astype(np.int64)
        if "padded" not in given:
            del arrays["attention_mask"]
        if "global" not in given:
            del arrays["global_attention_mask"]
        wanted = run(theirs, ids, arrays)
        found = zoo.ops.to_numpy(ours(ids, **arrays).last_hidden_state)
        seen = arrays.get("attention_mask", np.ones((3, T))) > 0
        assert np.abs(found - wanted)[seen].max() <= 1e-4


def run(model, ids, arrays):
    import torch

    given = {name: torch.from_numpy(x) for name, x in arrays.items()}
    with torch.no_grad():
        return model(torch.from_numpy(ids), **given).last_hidden_state.numpy()


def test_only_windows_and_global_tokens_are_seen(rng):
    """One layer: a change far away changes a token's state only if either of the two is global."""
    cfg = LongformerConfig.from_dict({**SMALL, "num_hidden_layers": 1, "attention_window": 6})
    model, ids = LongformerModel.from_source(Random(0), cfg), rng.integers(2, 50, (1, 60))
    other = ids.copy()
    other[0, 40] = (ids[0, 40] - 2 + 1) % 48 + 2
    marks = np.zeros((1, 60), np.int64)

    def changed(**given):
        apart = model(ids, **given).last_hidden_state - model(other, **given).last_hidden_state
        return np.flatnonzero(np.abs(apart).max((0, 2)) > 1e-7).tolist()

    assert changed() == list(range(37, 44))
    marks[0, 5] = 1
    assert changed(global_attention_mask=marks) == [5, *range(37, 44)]
    marks[0, 40] = 1
    assert changed(global_attention_mask=marks) == list(range(60))
    assert changed(global_attention_mask=marks * 0) == list(range(37, 44))


def test_heads_choose_their_global_tokens(tmp_path):
    """The first token, those of the question, and those of the choice."""
    ids = np.array([[0, 7, 8, 2, 2, 9, 10, 11, 2, 1], [0, 7, 2, 2, 12, 13, 2, 1, 1, 1]])
    mask = (ids != 1).astype(np.int64)
    classify = load_model(build("longformer-classifier", tmp_path / "classifier"))
    first = np.arange(10) < np.ones((2, 1))
    same(classify(ids, mask), classify(ids, mask, global_attention_mask=first))
    answer = load_model(build("longformer-large-4096-finetuned-triviaqa", tmp_path / "answer"))
    question = np.arange(10) < np.array([[3], [2]])
    same(answer(ids, mask).start_logits, answer(ids, mask, global_attention_mask=question).start_logits)
    choose = load_model(build("longformer-swag", tmp_path / "choose"))
    choice = np.arange(10) > np.array([[4], [3]])
    wanted = choose(ids[None], mask[None], global_attention_mask=choice[None])
    same(choose(ids[None], mask[None]), wanted)


def same(found, wanted):
    np.testing.assert_array_equal(found, wanted)
    assert np.ptp(wanted) > 0


def test_answers_of_long_texts(tmp_path):
    """The task cuts a long text: each part has the question before it."""
    answer = zoo.load(build("longformer-large-4096-finetuned-triviaqa", tmp_path))
    found = answer("Who?", "Somebody went to the old town by the water, and " * 20 + "stayed.")
    assert found.text
    with pytest.raises(InputError, match=r"a row of input_ids has 1 tokens 2 \(sep_token_id\), expected 3"):
        answer.model(np.array([[0, 5, 2]]))


def test_memory_of_a_hundred_thousand_tokens():
    """The scores of one head and all pairs would take 40 GB."""
    cfg = LongformerConfig.from_dict({**SMALL, "max_position_embeddings": 100_100, "attention_window": 64})
    model, ids = LongformerModel.from_source(Random(0), cfg), np.full((1, 100_000), 7)
    marks = np.zeros_like(ids)
    marks[0, ::1000] = 1
    tracemalloc.start()
    try:
        model(ids, global_attention_mask=marks)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 500 << 20


def test_memory_of_a_hundred_thousand_tokens_on_torch():
    pytest.importorskip("torch", reason="needs torch, the other backend")
    code = """if True:
        import resource, torch
        from zoo import ops
        x = torch.ones(1, 100_000, 2, 8)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        ops.banded_attention(x, x, x, 64, mask=x[:, :, 0, 0] > 0)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"""
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert int(found.stdout) < 500 << 10  # KB; a mask of all pairs takes 10 GB


def test_what_is_refused(rng):
    for window, match in (
        (7, "attention_window = 7, expected an even number above 0"),
        (0, "attention_window = 0, expected an even number"),
        ([4, -2], "attention_window = -2"),
        ([4], "attention_window has 1 numbers, expected one for each of the 2 layers"),
    ):
        with pytest.raises(ConfigError, match=match):
            LongformerConfig.from_dict({**SMALL, "attention_window": window})
    model = LongformerModel.from_source(Random(0), LongformerConfig.from_dict(SMALL))
    with pytest.raises(InputError, match="global_attention_mask has shape"):
        model(np.full((2, 5), 7), global_attention_mask=np.ones((2, 4)))
    with pytest.raises(InputError, match="global_attention_mask must hold only 0"):
        model(np.full((2, 5), 7), global_attention_mask=np.full((2, 5), 2))
    with pytest.raises(InputError, match="299 tokens, but the checkpoint has positions for 298"):
        model(np.full((1, 299), 7))
