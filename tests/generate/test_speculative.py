"""Guessed tokens change nothing but the speed: the tokens are those of plain decoding, and as probable."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from chat_checkpoint import write_chat_checkpoint

import zoo
from zoo.cache import KVCache
from zoo.errors import InputError, UnsupportedError
from zoo.generate import GenerationConfig, generate, stream
from zoo.generate.drafts import following
from zoo.generate.sampling import speculative_accept
from zoo.models.gemma3 import Gemma3ForCausalLM, Gemma3TextConfig
from zoo.models.gpt2 import GPT2Config, GPT2LMHeadModel
from zoo.models.llama3 import LlamaConfig, LlamaForCausalLM

SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
V = 24


def llama(seed: int = 0, device: str | None = None, **fields: Any) -> LlamaForCausalLM:
    config = {**SIZES, "vocab_size": V, "num_key_value_heads": 2, "max_position_embeddings": 128, **fields}
    return LlamaForCausalLM.from_config(
        LlamaConfig.from_dict({**config, "initializer_range": 0.6}), seed, device=device
    )


@pytest.fixture(scope="module")
def target() -> LlamaForCausalLM:
    return llama()


class Counted:
    """A decoder that counts its calls, and the tokens that they took."""

    def __init__(self, model: Any):
        self.model, self.config, self.calls, self.widest = model, model.config, 0, 0
        self.depends_on_length = getattr(model, "depends_on_length", False)
        self.changes_at, self.recomputes = getattr(model, "changes_at", None), getattr(model, "recomputes", False)

    @property
    def max_positions(self) -> int:
        return self.model.max_positions

    def new_cache(self, batch: int, capacity: int) -> KVCache:
        return self.model.new_cache(batch, capacity)

    def next_logits(self, input_ids: Any, lengths: Any, cache: KVCache, **context: Any) -> Any:
        self.calls += 1
        return self.model.next_logits(input_ids, lengths, cache, **context)

    def every_logits(self, input_ids: Any, cache: KVCache) -> Any:
        self.calls, self.widest = self.calls + 1, max(self.widest, input_ids.shape[1])
        return self.model.every_logits(input_ids, cache)


def repeating(rng: np.random.Generator, count: int = 5) -> list[np.ndarray]:
    return [np.tile(rng.integers(0, V, 7), 5)[: int(rng.integers(8, 30))] for _ in range(count)]


def tokens(found: Any) -> list[list[int]]:
    return [one.ids.tolist() for each in found for one in each]


GUESSES = [
    {"prompt_lookup_num_tokens": 8},
    {"prompt_lookup_num_tokens": 3, "max_matching_ngram_size": 1},
    {"assistant_model": "other"},
    {"assistant_model": "itself", "num_assistant_tokens": 5, "assistant_confidence_threshold": 0.0},
]
CHOICES = [
    {},
    {"repetition_penalty": 1.3, "min_new_tokens": 8},
    {"no_repeat_ngram_size": 3, "eos_token_id": [3, 4]},
    {"forced_eos_token_id": 2, "suppress_tokens": [5, 6], "begin_suppress_tokens": [7], "eos_token_id": 9},
]


def given(options: dict[str, Any], target: Any, vocabulary: int = V) -> dict[str, Any]:
    models = {"itself": target, "other": llama(seed=1, vocab_size=vocabulary)}
    return {
        **options,
        **({"assistant_model": models[options["assistant_model"]]} if "assistant_model" in options else {}),
    }


@pytest.mark.parametrize("choice", CHOICES, ids=str)
@pytest.mark.parametrize("guess", GUESSES, ids=str)
def test_greedy_tokens_are_those_without_guesses(guess, choice, target, rng):
    for seed in range(2):
        model = target if seed == 0 else llama(seed + 5)
        prompts, plain = repeating(rng), GenerationConfig(max_new_tokens=40, **choice)
        counted = Counted(model)
        wanted = generate(model, prompts, plain)
        found = generate(counted, prompts, plain.replace(**given(guess, model)))
        assert tokens(found) == tokens(wanted)
        for (one,), (other,) in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one.logprobs, other.logprobs, rtol=1e-4, atol=1e-5)
            assert one.reason == other.reason


def test_a_text_that_repeats_itself_takes_fewer_calls():
    llm = zoo.load("stories260k")
    prompt = np.array(llm.prompt_ids("Lily: I like red. Tom: I like blue. " * 6 + "Lily:"))
    model, plain = Counted(llm.model), llm.generation.replace(max_new_tokens=120)
    wanted = tokens(generate(model, [prompt], plain))
    assert model.calls == 120
    for options, calls in (({"prompt_lookup_num_tokens": 9}, 50), ({"assistant_model": llm.model}, 13)):
        model.calls, config = 0, plain.replace(num_assistant_tokens=9, assistant_confidence_threshold=0, **options)
        assert tokens(generate(model, [prompt], config)) == wanted
        assert model.calls <= calls
        assert model.widest == 10


@pytest.mark.parametrize("guess", GUESSES[:3], ids=str)
@pytest.mark.parametrize("family", ["gpt2", "gemma3"])
def test_learned_positions_and_windows(family, guess, rng):
    """Up to the last position; a window of 5 tokens, of which rejected ones are no longer part."""
    if family == "gpt2":
        config = GPT2Config.from_dict({"vocab_size": V, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64})
        model: Any = GPT2LMHeadModel.from_config(config)
    else:
        sizes = {**SIZES, "head_dim": 8, "num_key_value_heads": 2, "sliding_window": 5, "layer_types": None}
        sizes |= {"vocab_size": V, "max_position_embeddings": 64, "sliding_window_pattern": 2}
        model = Gemma3ForCausalLM.from_config(Gemma3TextConfig.from_dict(sizes))
    prompts, plain = repeating(rng), GenerationConfig()  # as many as there is room for
    wanted = tokens(generate(model, prompts, plain))
    assert tokens(generate(model, prompts, plain.replace(**given(guess, model)))) == wanted
    assert {len(p) + len(ids) for p, ids in zip(prompts, wanted, strict=True)} == {64}


def test_positions_that_change_at_a_length(rng):
    """longrope has other frequencies beyond 32 tokens: no guess reaches over that; dynamic positions are refused."""
    factors = {"short_factor": [1.0] * 4, "long_factor": [3.0] * 4}
    scaling = {"rope_type": "longrope", **factors, "factor": 4.0, "original_max_position_embeddings": 32}
    model, prompt = llama(rope_parameters={**scaling, "rope_theta": 1e4}), rng.integers(0, V, 6)
    plain = GenerationConfig(max_new_tokens=80)
    for guess in GUESSES[:3]:
        counted = Counted(model)
        found = generate(counted, [prompt], plain.replace(**given(guess, model)))
        assert tokens(found) == tokens(generate(model, [prompt], plain))
    model = llama(rope_parameters={"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4})
    with pytest.raises(UnsupportedError, match="dynamic"):
        generate(model, [prompt], plain.replace(prompt_lookup_num_tokens=4))


@pytest.mark.parametrize("guess", GUESSES, ids=str)
def test_onnx_and_torch(guess, target, rng):
    prompts, plain = repeating(rng, 3), GenerationConfig(max_new_tokens=40)
    wanted = tokens(generate(target, prompts, plain))
    for device, package in (("onnx", "onnxruntime"), ("torch:cpu", "torch")):
        pytest.importorskip(package, reason=f"needs {package}")
        model: Any = llama(device=device)
        counted = Counted(model.runner.decoder(model))
        assert tokens(generate(counted, prompts, plain.replace(**given(guess, model)))) == wanted
        assert counted.widest > 1


def test_onnx_graphs_that_do_not_write_to_the_cache(rng):
    """Heads of 4 features are none of GroupQueryAttention's."""
    pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    plain, prompts = GenerationConfig(max_new_tokens=30), repeating(rng, 3)
    wanted = tokens(generate(llama(head_dim=4), prompts, plain))
    model = llama(head_dim=4, device="onnx")
    found = generate(model.runner.decoder(model), prompts, plain.replace(prompt_lookup_num_tokens=6))
    assert tokens(found) == wanted


def test_a_seed_gives_the_same_tokens_with_a_lookup(target, rng):
    prompts = repeating(rng)
    plain = GenerationConfig(max_new_tokens=40, do_sample=True, temperature=0.4, seed=3, num_return_sequences=3)
    wanted = tokens(generate(target, prompts, plain))
    counted = Counted(target)
    assert tokens(generate(counted, prompts, plain.replace(prompt_lookup_num_tokens=6))) == wanted
    assert counted.widest > 1
    assert len({str(one) for one in wanted}) == len(wanted)


def test_rejection_sampling_has_the_wanted_distribution():
    """All outcomes by numbers: P(x) = sum over drafts of q(draft) P(x | draft)."""
    rng = np.random.default_rng(0)
    for _ in range(2):
        p_ids, q_ids = np.arange(0, 6), np.arange(2, 9)
        p, q = rng.dirichlet(np.ones(6) * 0.5), rng.dirichlet(np.ones(7) * 0.5)
        grid = (np.arange(120) + 0.5) / 120
        found = np.zeros(9)
        for token, share in zip(q_ids, q, strict=True):
            for draw, again in itertools.product(grid, grid[::4]):
                found[speculative_accept((p_ids, p), int(token), (q_ids, q), draw, again)] += share
        found /= found.sum()
        np.testing.assert_allclose(found[:6], p, atol=0.02)
        assert not found[6:].any()


LOOKED_UP, BY_ANOTHER = {"prompt_lookup_num_tokens": 3}, {"assistant_model": "other", "num_assistant_tokens": 3}
FILTERED = {"temperature": 0.7, "top_k": 4, "top_p": 0.9}


@pytest.mark.parametrize(
    ("guess", "options"),
    [
        (LOOKED_UP, FILTERED),
        (BY_ANOTHER, {}),
        pytest.param(LOOKED_UP, {}, marks=pytest.mark.nightly),
        pytest.param(BY_ANOTHER, FILTERED, marks=pytest.mark.nightly),
    ],
    ids=str,
)
def test_sampled_texts_come_as_often_as_they_should(guess, options):
    """Chi-square over texts of three tokens out of five, against their probabilities by the model, for a fixed seed."""
    model = llama(vocab_size=5)
    prompt, n = np.array([1, 2, 3, 1, 2, 3, 1]), 3_000
    config = GenerationConfig(max_new_tokens=3, do_sample=True, **options)
    wanted = {text: _probability(model, prompt, text, config) for text in itertools.product(range(5), repeat=3)}
    assert sum(wanted.values()) == pytest.approx(1)
    guessed = config.replace(
        seed=2, num_return_sequences=1000, assistant_confidence_threshold=0.0, **given(guess, model, 5)
    )
    counts = dict.fromkeys(wanted, 0)
    counted = Counted(model)
    for at in range(n // 1000):
        for (*rows,) in generate(counted, [prompt], guessed, first=at):
            for one in rows:
                counts[tuple(one.ids.tolist())] += 1
    assert counted.widest > 1
    assert sum(counts.values()) == n
    # Rare texts are counted together.
    often = [text for text, p in wanted.items() if n * p >= 5]
    rare = [sum(x[t] for t in wanted if t not in often) for x in (counts, wanted)]
    pairs = [(counts[t], n * wanted[t]) for t in often] + ([(rare[0], n * rare[1])] if n * rare[1] >= 5 else [])
    chi2 = sum((found - expected) ** 2 / expected for found, expected in pairs)
    assert chi2 < len(pairs) - 1 + 3.5 * np.sqrt(2 * (len(pairs) - 1))


def _probability(model: Any, prompt: np.ndarray, text: tuple[int, ...], config: GenerationConfig) -> float:
    from zoo.generate.sampling import distribution

    logits = np.asarray(model(np.append(prompt, text)[None]))[0, len(prompt) - 1 :]
    p = 1.0
    for token, row in zip(text, logits, strict=False):
        ids, of = distribution(row, config)
        p *= float(of[ids == token].sum())
    return p


def test_a_stream_leaves_its_cache_at_the_last_token(target, rng):
    """Wherever it is broken off, in the middle of guessed tokens too."""
    prompt, plain = repeating(rng, 1)[0], GenerationConfig(max_new_tokens=40)
    wanted = [token.id for token in stream(target, prompt, plain)]
    config = plain.replace(prompt_lookup_num_tokens=8)
    for count in (1, 7, 20, 23, 39, 40):
        cache = target.new_cache(1, 128)
        tokens_of = stream(target, prompt, config, cache=cache)
        got = [token.id for _, token in zip(range(count), tokens_of, strict=False)]
        assert got == wanted[:count]
        assert cache.length == len(prompt) + count - 1
        rest = stream(target, np.append(prompt, got), GenerationConfig(max_new_tokens=5), cache=cache)
        again = stream(target, np.append(prompt, got), GenerationConfig(max_new_tokens=5))
        assert [token.id for token in rest] == [token.id for token in again]


def test_what_followed_before():
    ids = np.array([5, 1, 2, 3, 9, 1, 2, 4, 8, 1, 2])
    assert following(ids, 3, 2) == [4, 8, 1]
    assert following(ids, 8, 2) == [4, 8, 1, 2, 4, 8, 1, 2]  # a circle
    assert following(np.array([5, 1, 2, 3, 2, 1, 2, 4, 2]), 2, 2) == [4, 2]
    assert following(np.array([3, 1, 2, 7, 4, 2, 9, 1, 2]), 1, 2) == [7]  # two tokens count more than one that is later
    assert following(np.array([3, 1, 2, 7, 4, 2, 9, 1, 2]), 1, 1) == [9]
    assert following(np.array([1, 2, 3]), 4, 2) == []
    assert following(np.array([6]), 4, 2) == []
    assert following(np.array([6, 6]), 4, 3) == [6, 6, 6, 6]


def test_an_assistant_that_knows_fewer_tokens_or_positions(target, rng):
    prompts, plain = repeating(rng), GenerationConfig(max_new_tokens=40)
    wanted = tokens(generate(target, prompts, plain))
    cases: tuple[dict[str, Any], ...] = ({"vocab_size": 9}, {"vocab_size": 30}, {"max_position_embeddings": 33})
    for fields in cases:
        draft = llama(seed=1, **fields)
        assert tokens(generate(target, prompts, plain.replace(assistant_model=draft))) == wanted


def test_refused_options(target):
    for options, words in (
        ({"prompt_lookup_num_tokens": 0}, "at least 1"),
        ({"prompt_lookup_num_tokens": 3, "num_beams": 2}, "beams"),
        ({"prompt_lookup_num_tokens": 3, "assistant_model": target}, "one of them"),
        ({"assistant_model": "small"}, "a str, expected a decoder"),
        ({"assistant_model": target, "num_assistant_tokens": 0}, "at least 1"),
        ({"assistant_confidence_threshold": 2}, "0 ... 1"),
        ({"assistant_early_exit": 3}, "not implemented"),
    ):
        with pytest.raises((InputError, UnsupportedError), match=words):
            generate(target, [[1, 2]], GenerationConfig().replace(**options))


def test_tasks(tmp_path):
    """A task takes a task with the same tokenizer, and refuses another's."""
    llm, text = zoo.load("stories260k"), "Lily: I like red. Tom: I like blue. Lily:"
    plain = llm(text, max_new_tokens=30)
    small = zoo.load("stories260k", weights="int8")
    for assistant in (small, small.model):
        assert llm(text, max_new_tokens=30, assistant_model=assistant) == plain
        assert "".join(llm.stream(text, max_new_tokens=30, assistant_model=assistant)) == plain
    pytest.importorskip("jinja2", reason="needs jinja2")
    other = zoo.load(write_chat_checkpoint(tmp_path / "other"), task="generate")
    wrong = ((other, "other tokens, as "), (other.model, "expected a model with the same tok"), (7, "zoo.load"))
    for assistant, words in wrong:
        with pytest.raises(InputError, match=words):
            llm(text, assistant_model=assistant)
    talk = other.conversation(max_new_tokens=12, seed=1, prompt_lookup_num_tokens=5)
    same = other.conversation(max_new_tokens=12, seed=1)
    for said in ("Hello Hello Hello", "Hello Hello"):
        assert list("".join(talk.say(said))) == list("".join(same.say(said)))
