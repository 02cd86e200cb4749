"""A decoder's step as a graph, with a cache outside it: against `next_logits` on NumPy, ragged rows and chunks too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import zoo
from zoo.engines.onnx import decoder
from zoo.engines.onnx.session import Session
from zoo.engines.onnx.step import CROSS_KEYS, PAST_KEYS, PRESENT_KEYS, trace_cross, trace_step
from zoo.errors import UnsupportedError
from zoo.models.bert import BertConfig, BertLMHeadModel
from zoo.models.llama3 import LlamaConfig, LlamaForCausalLM
from zoo.models.mistral import MistralConfig
from zoo.models.roberta import RobertaConfig, RobertaForCausalLM
from zoo.models.trocr import TrOCRConfig, TrOCRForCausalLM

SMALL = {"vocab_size": 90, "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
BERT = {**SMALL, "intermediate_size": 64, "is_decoder": True}
TROCR = {"vocab_size": 90, "d_model": 48, "decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 64}
TROCR |= {"cross_attention_hidden_size": 40, "max_position_embeddings": 64}
LLAMA = {**SMALL, "intermediate_size": 64, "num_key_value_heads": 2, "max_position_embeddings": 64}
B, ROOM = 4, 20
MODELS = {
    "bert": (BertLMHeadModel, BertConfig(**BERT), False),
    "bert with an encoder": (BertLMHeadModel, BertConfig(**BERT, add_cross_attention=True), True),
    "roberta": (RobertaForCausalLM, RobertaConfig(**BERT), False),
    "mistral, in a window": (LlamaForCausalLM, MistralConfig(**LLAMA, sliding_window=3), False),
    "llama": (LlamaForCausalLM, LlamaConfig(**LLAMA, tie_word_embeddings=True), False),
    "trocr": (TrOCRForCausalLM, TrOCRConfig(**TROCR), True),
    "trocr, sinusoidal": (TrOCRForCausalLM, TrOCRConfig(**TROCR, use_learned_position_embeddings=False), True),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_step_is_the_models(name, running):
    cls, config, cross = MODELS[name]
    model, rng = cls.from_config(config), np.random.default_rng(0)
    traced, seen, first = trace_step(model, cross), {}, {}
    assert traced.signature.guards == ()
    step = running(traced)
    if cross:  # two encoders' states, which two rows share each
        states = rng.normal(size=(2, 9, getattr(config, model.inputs["encoder_hidden_states"]))).astype(np.float32)
        first, once = {"encoder_hidden_states": states}, trace_cross(model)
        names = [one.name for one in once.signature.outputs]
        seen = dict(zip(names, running(once).run(None, first), strict=True))
        assert all(one.startswith(CROSS_KEYS) for one in names)
        seen["encoder_attention_mask"] = np.ones((2, 9), np.int64)
    layers, heads, size = model.cache_shape
    names = [f"{PAST_KEYS}.{i}.{part}" for i in range(layers) for part in ("key", "value")]
    past = {name: np.full((B, heads, ROOM, size), 7, np.float32) for name in names}
    cache, start = model.new_cache(B, ROOM), np.zeros(B, np.int64)
    for T, lengths in ((5, np.array([5, 3, 1, 4])), (1, None), (3, np.array([1, 2, 3, 3])), (1, None)):
        ids = rng.integers(2, 90, (B, T))
        wanted = model.next_logits(ids, lengths, cache, **first)
        count, first = np.full(B, T) if lengths is None else lengths, {}
        found, *new = step.run(None, {"input_ids": ids, "past_lengths": start, "last": count - 1, **past, **seen})
        assert np.linalg.norm(found - wanted) <= 1e-5 * np.linalg.norm(wanted)
        for one, x in zip(traced.signature.outputs[1:], new, strict=True):
            kept = past[one.name.replace(PRESENT_KEYS, PAST_KEYS)]
            for b in range(B):
                kept[b, :, start[b] : start[b] + count[b]] = x[b, :, : count[b]]
        start += count


@pytest.mark.parametrize("name", MODELS)
def test_steps_that_write_to_the_cache(name, tmp_path, monkeypatch):
    """By GroupQueryAttention, on CPUs: ragged prompts, their chunks, rows dropped and repeated, a cache that grows."""
    pytest.importorskip("onnxruntime", reason="needs onnxruntime, which runs the graphs")
    monkeypatch.setenv("HF_ASSETS_CACHE", str(tmp_path))
    cls, config, cross = MODELS[name]
    width = {"d_model": 32} if "d_model" in vars(config) else {"hidden_size": 32}
    config, rng = replace(config, **width), np.random.default_rng(0)
    model, run = cls.from_config(config), cls.from_config(config, device="onnx")
    assert run.runner.in_place(run)
    monkeypatch.setattr(decoder, "SCORES", 1)
    monkeypatch.setattr(decoder, "MIN_CHUNK", 2)
    monkeypatch.setattr(decoder, "CAPACITY_IN_PLACE", 6)
    first: dict = {}
    if cross:  # each serves two rows
        states = rng.normal(size=(2, 9, getattr(config, model.inputs["encoder_hidden_states"]))).astype(np.float32)
        mask = np.ones((2, 9), np.int64)
        mask[1, 6:] = 0
        first = {"encoder_hidden_states": states, "encoder_attention_mask": mask}
    caches = [one.new_cache(B, ROOM) for one in (model, run)]
    for T, lengths, rows in (
        (5, np.array([5, 3, 1, 4]), None),
        (1, None, [0, 1, 3, 3]),
        (3, np.array([1, 2, 3, 3]), [2, 3] if cross else [3, 0, 1]),
        (1, None, None),
    ):
        count = len(caches[0].counts)
        ids, lengths = rng.integers(2, 90, (count, T)), None if lengths is None else lengths[:count]
        wanted, found = (
            one.next_logits(ids, lengths, cache, **first) for one, cache in zip((model, run), caches, strict=True)
        )
        assert np.linalg.norm(found - wanted) <= 1e-5 * np.linalg.norm(wanted)
        first = {}
        for cache in caches:
            if rows is not None:
                cache.select(np.array(rows))
    keys = caches[1].keys[0]
    ids = rng.integers(2, 90, (len(keys), 1))
    run.next_logits(ids, None, caches[1])
    assert caches[1].keys[0] is keys  # as long as there is room, nothing is copied


@pytest.mark.parametrize("window", [None, 50])
def test_steps_after_a_long_text(window, tmp_path, monkeypatch):
    """Rows of two lengths; three queries of 24 numbers share a key, so that the scale is no power of two."""
    pytest.importorskip("onnxruntime", reason="needs onnxruntime, which runs the graphs")
    monkeypatch.setenv("HF_ASSETS_CACHE", str(tmp_path))
    sizes = {**LLAMA, "hidden_size": 144, "num_attention_heads": 6, "max_position_embeddings": 1200}
    config, rng = MistralConfig(**sizes, sliding_window=window), np.random.default_rng(0)
    model, run = LlamaForCausalLM.from_config(config), LlamaForCausalLM.from_config(config, device="onnx")
    assert run.runner.in_place(run)
    caches = [one.new_cache(2, 1200) for one in (model, run)]
    for T, lengths in ((1031, np.array([1031, 517])), (1, None), (7, np.array([7, 2])), (1, None)):
        ids = rng.integers(2, 90, (2, T))
        wanted, found = (one.next_logits(ids, lengths, c) for one, c in zip((model, run), caches, strict=True))
        assert np.linalg.norm(found - wanted) <= 1e-5 * np.linalg.norm(wanted)


def test_nothing_is_reshaped_from_the_projections_to_attention():
    """The products of float32 matrices have reshapes of their own: Gemm takes rows (B T, D)."""
    config = LlamaConfig(**{**LLAMA, "hidden_size": 32})
    nodes = trace_step(LlamaForCausalLM.from_config(config), in_place=True).nodes
    made_by = {name: node for node in nodes for name in node.outputs}
    queries = [made_by[node.inputs[0]] for node in nodes if node.op == "GroupQueryAttention"]
    assert [made_by[scaled.inputs[0]].op for scaled in queries] == ["RotaryEmbedding"] * 2


def test_positions_that_a_texts_length_changes_have_no_graph():
    scaling = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}
    model = LlamaForCausalLM.from_config(LlamaConfig(**LLAMA, rope_parameters=scaling))
    with pytest.raises(UnsupportedError, match="'dynamic'"):
        trace_step(model)


def test_a_cache_is_bound_once(monkeypatch):
    """A cache's arrays are bound for the first token, and again only where they are others, as in a larger cache."""
    bind, calls = Session.bind, []
    monkeypatch.setattr(Session, "bind", lambda *given: calls.append(1) or bind(*given))
    monkeypatch.setattr(decoder, "CAPACITY_IN_PLACE", 8)
    model, wanted = zoo.load_model("stories260k", device="onnx"), zoo.load_model("stories260k")
    cache, its = model.new_cache(1, 64), wanted.new_cache(1, 64)
    for step in range(24):
        ids = np.array([[1, 5, 9]] if step == 0 else [[step]])
        found = model.next_logits(ids, None, cache)
        np.testing.assert_allclose(found, wanted.next_logits(ids, None, its), atol=2e-5 * np.abs(found).max())
    assert 2 <= len(calls) <= 4
