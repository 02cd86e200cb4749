"""Layers that attend within a window keep its tokens alone: texts that are longer are those of transformers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zoo.cache.kv
import zoo.generate.continuous
import zoo.inputs.heads
import zoo.inputs.texts
from zoo import ops
from zoo.errors import CheckpointError, InputError
from zoo.generate import GenerationConfig, PromptCache, generate
from zoo.generate.continuous import ContinuousBatch, Request
from zoo.generate.prefixes import BLOCK
from zoo.loading import load_model
from zoo.models.gemma3 import Gemma3ForCausalLM, Gemma3TextConfig

WINDOW, VOCAB = 9, 40
SIZES = {"vocab_size": VOCAB, "hidden_size": 64, "intermediate_size": 48, "num_attention_heads": 4}
SIZES |= {"num_key_value_heads": 2, "num_hidden_layers": 3, "max_position_embeddings": 512, "sliding_window": WINDOW}
SIZES |= {"pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3}
MIXED = ["sliding_attention", "full_attention", "sliding_attention"]
FAMILIES: dict[str, dict[str, Any]] = {
    "Gemma3": {"head_dim": 16, "query_pre_attn_scalar": 16, "layer_types": MIXED},
    "Mistral": {},
    "Phi3": {},
    "Cohere2": {"head_dim": 16, "layer_types": MIXED, "logit_scale": 1.0},
    "GptOss": {"head_dim": 16, "layer_types": MIXED, "num_local_experts": 4, "num_experts_per_tok": 2},
    # Whose convolutions see a token and the WINDOW before it.
    "Lfm2": {"layer_types": ["conv", "full_attention", "conv"], "conv_L_cache": WINDOW + 1, "block_multiple_of": 8},
    "Qwen2": {"layer_types": MIXED, "use_sliding_window": True, "max_window_layers": 0},
}
FAMILIES["ModernBertDecoder"] = {"layer_types": MIXED, "local_attention": 2 * WINDOW}
# Whose convolutions see few tokens, and whose states come from all.
QWEN3_5 = {"layer_types": ["linear_attention", "full_attention", "linear_attention"], "head_dim": 16}
QWEN3_5 |= {"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16}
FAMILIES["Qwen3_5"] = {**QWEN3_5, "linear_value_head_dim": 8, "linear_conv_kernel_dim": WINDOW + 1}
FAMILIES["FalconH1"] = {"mamba_d_ssm": 96, "mamba_n_heads": 6, "mamba_d_state": 12, "mamba_d_conv": WINDOW + 1}
FAMILIES["Mamba2"] = {"num_heads": 8, "head_dim": 16, "state_size": 12, "n_groups": 2, "conv_kernel": WINDOW + 1}
ENGINES = ["numpy", "torch:cpu", "onnx", "onnx, not in place"]
# A cache is kept and shared by the same code for all families: two engines by day, all at night.
KEPT = [
    pytest.param(family, engine, marks=() if family == "Gemma3" or engine in ("numpy", "onnx") else pytest.mark.nightly)
    for family in ("Gemma3", "Lfm2", "Qwen3_5", "Mamba2", "FalconH1")
    for engine in ENGINES
]
LENGTHS = (47, 23, 6)


@pytest.fixture(autouse=True)
def little_memory(monkeypatch):
    """Windows are full after few tokens, prompts pass in chunks that are not the window's length."""
    monkeypatch.setattr(zoo.cache.kv, "SPARE_TOKENS", 3)
    monkeypatch.setattr(zoo.inputs.texts, "CHUNK", 8)
    monkeypatch.setattr(zoo.inputs.heads, "CHUNK", 8)
    monkeypatch.setattr(zoo.generate.continuous, "CHUNK", 8)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """`pair(family, engine)`: transformers' model and zoo's."""
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    folders: dict[str, Any] = {}
    models: dict[tuple[str, str], Any] = {}

    def get(family: str, engine: str = "numpy") -> tuple[Any, Any]:
        if engine.startswith("onnx"):
            pytest.importorskip("onnxruntime", reason="needs onnxruntime, which runs the graphs")
        if family not in folders:
            name = f"{family}Text" if family in ("Gemma3", "Qwen3_5") else family
            torch.manual_seed(len(family))
            config = getattr(transformers, f"{name}Config")(**SIZES, **FAMILIES[family])
            config._attn_implementation = "eager"
            model = getattr(transformers, f"{family}ForCausalLM")(config).eval()
            with torch.no_grad():
                for p in model.parameters():
                    p.add_(torch.randn_like(p) * 0.15)
            model.generation_config.eos_token_id = 3
            model.save_pretrained(folder := tmp_path_factory.mktemp(family))
            folders[family] = model, folder
        if (family, engine) not in models:
            model = load_model(folders[family][1], device=None if engine == "numpy" else engine.partition(",")[0])
            if "not in place" in engine:
                model.runner.in_place = lambda model: False
            models[family, engine] = model
        return folders[family][0], models[family, engine]

    return get


@pytest.fixture(autouse=True)
def little_chunks(monkeypatch):
    """The same of ONNX Runtime."""
    pytest.importorskip("onnxruntime", reason="needs onnxruntime, which runs the graphs")
    from zoo.engines.onnx import decoder

    capacity = {"INITIAL_CAPACITY": 4, "CAPACITY_IN_PLACE": 6}
    for name, value in {"CHUNK": 8, "MIN_CHUNK": 2, "SCORES": 1 << 10, **capacity}.items():
        monkeypatch.setattr(decoder, name, value)


def prompts(seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(4, VOCAB, n) for n in LENGTHS]


_THEIRS: dict[tuple[str, bytes, str], list[int]] = {}  # what transformers wrote, once for all engines


def theirs(model: Any, prompt: np.ndarray, **options: Any) -> list[int]:
    import torch

    key = type(model).__name__, prompt.tobytes(), repr(options)
    if key not in _THEIRS:
        with torch.no_grad():
            found = model.generate(torch.tensor(prompt[None]), do_sample=False, pad_token_id=1, **options)
        _THEIRS[key] = found[0, len(prompt) :].tolist()
    return _THEIRS[key]


def until_end(ids: list[int]) -> list[int]:
    return ids[: ids.index(3) + 1] if 3 in ids else ids


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("family", FAMILIES)
def test_rows_of_a_batch(family, engine, pair):
    """Rows of unlike lengths, which drop tokens at different steps and leave when they end."""
    reference, model = pair(family, engine)
    config = GenerationConfig(max_new_tokens=60, eos_token_id=(3,))
    found = [one[0].ids.tolist() for one in generate(model, prompts(), config)]
    assert found == [until_end(theirs(reference, p, max_new_tokens=60)) for p in prompts()]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("family", ["Gemma3", "Mistral", "Lfm2", "Qwen3_5", "Mamba2", "FalconH1"])
def test_beams(family, engine, pair):
    reference, model = pair(family, engine)
    options = {"max_new_tokens": 30, "num_beams": 3, "eos_token_id": 3}
    config = GenerationConfig(max_new_tokens=30, num_beams=3, eos_token_id=(3,))
    found = [one[0].ids.tolist() for one in generate(model, prompts(), config)]
    assert found == [until_end(theirs(reference, p, **options)) for p in prompts()]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("options", [{"prompt_lookup_num_tokens": 6}, {"assistant_model": "itself"}], ids=str)
@pytest.mark.parametrize("family", ["Gemma3", "Mamba2"])
def test_guessed_tokens(family, options, engine, pair):
    """Guesses that are wrong are taken back, after tokens were dropped."""
    reference, model = pair(family, engine)
    if options.get("assistant_model"):
        options = {"assistant_model": pair("Mistral", engine)[1], "num_assistant_tokens": 7}
    config = GenerationConfig(max_new_tokens=60, eos_token_id=(3,), **options)
    repeated = [np.tile(p, 3) for p in prompts()]
    found = [one[0].ids.tolist() for one in generate(model, repeated, config)]
    assert found == [until_end(theirs(reference, p, max_new_tokens=60)) for p in repeated]


@pytest.mark.parametrize(("family", "engine"), KEPT)
def test_rows_that_come_and_go(family, engine, pair, monkeypatch):
    """Continuous batching, with blocks of earlier prompts that windows have dropped since."""
    monkeypatch.setattr(zoo.cache.kv, "SPARE_TOKENS", BLOCK)
    _, model = pair(family, engine)
    batch, config = ContinuousBatch(model, max_rows=2), GenerationConfig(max_new_tokens=40, eos_token_id=(3,))
    long = np.random.default_rng(5).integers(4, VOCAB, 5 * BLOCK + 3)
    every = [*prompts(), np.append(long, 7), prompts()[1], np.append(long, [8, 9]), long[: 3 * BLOCK]]
    requests = [Request(p, config) for p in every]
    for request in requests:
        batch.add(request)
    while batch.rows or batch.waiting:
        assert not any(step.error for step in batch.step())
    for prompt, request in zip(every, requests, strict=True):
        alone = generate(model, [prompt], config)[0][0].ids.tolist()
        assert request.generated_ids == alone
    assert batch.reused == 16 + 5 * BLOCK + 2 * BLOCK
    answer = [*every[3], *requests[3].generated_ids]  # what was generated was kept before it was dropped
    batch.add(again := Request([*answer, 5], config))
    reused = batch.reused
    while batch.rows or batch.waiting:
        batch.step()
    assert batch.reused - reused == (len(answer) - 1) // BLOCK * BLOCK
    assert again.generated_ids == generate(model, [[*answer, 5]], config)[0][0].ids.tolist()


@pytest.mark.parametrize(("family", "engine"), KEPT)
def test_a_kept_prompt(family, engine, pair, tmp_path):
    """A conversation goes on; a text that differs early is computed anew; and a file has the last tokens alone."""
    _, model = pair(family, engine)
    decoder = model.runner.decoder(model)
    kept = PromptCache(model, decoder)

    def answered(ids: list[int], cache: PromptCache) -> tuple[list[int], int]:
        """The greedy answer, and the tokens of the prompt that were known."""
        memory, new = cache.begin(ids, len(ids) + 30), list[int]()
        known, rest = memory.length, ids[memory.length :]
        for _ in range(30):
            logits = decoder.next_logits(np.array([rest]), None, memory)
            new.append(int(np.asarray(logits)[0].argmax()))
            rest = new[-1:]
        cache.ids.extend(new[:-1])
        return new, known

    text = prompts()[0].tolist()
    plain = GenerationConfig(max_new_tokens=30, eos_token_id=())

    def alone(ids: list[int]) -> list[int]:
        return generate(model, [ids], plain)[0][0].ids.tolist()

    first, known = answered(text, kept)
    assert (first, known) == (alone(text), 0)
    turn = [*text, *first, 5, 6, 7]
    answer, known = answered(turn, kept)
    assert (answer, known) == (alone(turn), len(text) + 29)
    kept.save_cache(tmp_path / "turn.safetensors")
    size = (tmp_path / "turn.safetensors").stat().st_size
    per_token = sum(heads * (sizes[0] + sizes[-1]) for heads, *sizes in model.cache_shapes)
    assert size < 0.8 * kept.length * per_token * 4
    other = PromptCache(model, decoder)
    other.load_cache(tmp_path / "turn.safetensors")
    more = [*turn, *answer, 8]
    for cache in (kept, other):
        found, known = answered(more, cache)
        assert (found, known) == (alone(more), len(more) - 2)
    found, known = answered(text[:20], kept)  # of which the window is gone
    assert (found, known) == (alone(text[:20]), 0)


@pytest.mark.parametrize("family", ["Gemma3", "Lfm2", "GptOss", "Qwen3_5", "Mamba2", "FalconH1"])
def test_a_mask_and_rows_of_unlike_lengths(family, pair):
    """A caller's own steps, with a mask over all tokens so far."""
    _, model = pair(family)
    rng = np.random.default_rng(0)
    ids, mask = rng.integers(4, VOCAB, (2, 60)), np.ones((2, 60), bool)
    mask[1, :11] = False
    mask[0, 17:19] = False
    whole, cache, found = model(ids, mask), model.new_cache(2, 60), []
    for a, b in ((0, 13), (13, 14), (14, 40), (40, 41), (41, 60)):
        found.append(model(ids[:, a:b], mask[:, :b], cache=cache))
    assert cache.dropped_counts.min() > 15
    np.testing.assert_allclose(np.concatenate(found, 1)[mask], whole[mask], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("family", ["Mistral", "Lfm2", "Qwen3_5", "Mamba2", "FalconH1"])
def test_what_is_taken_back(family, engine, pair):
    _, model = pair(family, engine)
    decoder, ids = model.runner.decoder(model), np.random.default_rng(0).integers(4, VOCAB, (2, 50))
    cache = decoder.new_cache(2, 100)
    wanted = [np.asarray(decoder.next_logits(ids[:, :n], None, decoder.new_cache(2, 60))) for n in (48, 50)]
    decoder.next_logits(ids, None, cache)
    assert (cache.dropped_counts > 0).all()
    cache.advance(-2)
    assert cache.counts.tolist() == [48, 48]
    np.testing.assert_allclose(
        np.asarray(decoder.next_logits(ids[:, 48:], None, cache)), wanted[1], rtol=1e-3, atol=1e-4
    )
    with pytest.raises(InputError, match=r"rows of \[10, 50\] tokens, of which the cache no longer has the window"):
        cache.advance(np.array([-40, 0]))
    cache.rewind(np.array([10, 47]))
    assert cache.counts.tolist() == [0, 47]
    lengths = np.array([48, 1])
    rest = np.zeros((2, 48), np.int64)
    rest[0], rest[1, :1] = ids[0, :48], ids[1, 47:48]
    np.testing.assert_allclose(np.asarray(decoder.next_logits(rest, lengths, cache)), wanted[0], rtol=1e-3, atol=1e-4)


# Options, and the part that may differ: ONNX Runtime's int8 rounds what a call computes with one scale.
FEWER_BITS: list[tuple[dict[str, Any], float]] = [
    ({"weights": "int8"}, 1e-3),
    ({"weights": "int8", "device": "onnx"}, 0.02),
    ({"dtype": "bfloat16", "device": "torch:cpu"}, 0.02),
]


@pytest.mark.parametrize(("options", "part"), FEWER_BITS, ids=str)
def test_stored_in_fewer_bits(options, part, pair, tmp_path, monkeypatch):
    """Steps whose windows have dropped tokens give the logits of a cache that has all of them."""
    pair("Gemma3")[0].save_pretrained(tmp_path)
    model = load_model(tmp_path, **options)
    decoder, ids = model.runner.decoder(model), np.random.default_rng(0).integers(4, VOCAB, (2, 60))

    def steps() -> tuple[Any, np.ndarray]:
        cache = decoder.new_cache(2, 60)
        found = [
            decoder.next_logits(ids[:, a:b], None, cache) for a, b in ((0, 30), *((i, i + 1) for i in range(30, 60)))
        ]
        return cache, np.stack([ops.to_numpy(one).astype(np.float32) for one in found])

    cache, found = steps()
    assert cache.dropped_counts.min() > 20
    monkeypatch.setattr(zoo.cache.kv, "SPARE_TOKENS", 60)
    every, wanted = steps()
    assert every.dropped_counts.max() == 0
    assert np.linalg.norm(found - wanted) < part * np.linalg.norm(wanted)


def test_a_file_that_lacks_a_window(pair, tmp_path):
    from safetensors.numpy import load_file, save_file

    _, model = pair("Mistral")
    cache = PromptCache(model)
    memory = cache.begin(ids := np.random.default_rng(0).integers(4, VOCAB, 50).tolist(), 60)
    model.next_logits(np.array([ids]), None, memory)
    cache.save_cache(path := tmp_path / "text.safetensors")
    from zoo.weights.safetensors import SafetensorsFile

    metadata, tensors = SafetensorsFile(path).metadata, load_file(path)
    cut = {name: x if name == "tokens" else np.ascontiguousarray(x[-5:]) for name, x in tensors.items()}
    save_file(cut, path, dict(metadata))
    with pytest.raises(CheckpointError, match=r"keys.0 is F32 \[5, 2, 16\], and this model's is F32 \[8, 2, 16\]"):
        PromptCache(model).load_cache(path)


def test_the_memory_of_a_small_gemma(monkeypatch):
    """The layout of Gemma 3 270M: of 18 layers 3 have all of 8,192 tokens, 15 a window of 512 and what is needed."""
    monkeypatch.undo()
    config = Gemma3TextConfig(
        num_hidden_layers=18,
        hidden_size=640,
        num_attention_heads=4,
        num_key_value_heads=1,
        head_dim=256,
        sliding_window=512,
        vocab_size=9,
        intermediate_size=8,
        max_position_embeddings=32768,
    )
    model = Gemma3ForCausalLM.from_config(config)
    cache = model.new_cache(1, 8192)
    of = [x.nbytes for pair in zip(cache.keys, cache.values, strict=True) for x in pair]
    every = 18 * 2 * 8192 * 256 * 4
    assert sum(of) == (3 * 8192 + 15 * (511 + 64 + 512)) * 2 * 256 * 4
    assert sum(of) < 0.28 * every
    assert model.new_cache(1, 600).keys[0].shape[1] == 600  # a short text needs no more than its tokens
