"""A decoder's steps by graphs: at any position, for rows that come and go, with and without an encoder."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch, whose calls are recorded")

import zoo.cache.kv  # noqa: E402
import zoo.inputs.heads  # noqa: E402
from tests.runner.tape import check, texts  # noqa: E402
from zoo import ops  # noqa: E402
from zoo.errors import InputError  # noqa: E402
from zoo.generate import GenerationConfig, generate  # noqa: E402

DECODERS = ("Llama-3.2-1B", "llama-yarn", "bert-decoder", "roberta-decoder", "trocr-decoder-sinusoidal")


def steps(model, ids, count, context):
    """Logits of a prompt, and of the steps after it."""
    cache = model.new_cache(len(ids), ids.shape[1])
    out = [model.next_logits(ids[:, :-count], None, cache, **context)]
    for i in range(ids.shape[1] - count, ids.shape[1]):
        out.append(model.next_logits(ids[:, i : i + 1], None, cache))
    return tuple(out), cache


@pytest.mark.parametrize("name", DECODERS)
def test_steps_at_any_position(name, model, runner):
    own = model(name)
    wrapped = runner.decoder(own)
    for rows, tokens, count in ((1, 9, 5), (3, 20, 8), (4, 12, 4), (3, 17, 3)):
        ids, _ = texts(rows, tokens)
        found, cache = steps(wrapped, ids, count, {})
        wanted, eager = steps(own, ids, count, {})
        check(found, wanted)
        assert cache.counts.tolist() == ops.to_numpy(cache.start).tolist() == eager.counts.tolist()
        assert cache.capacity == eager.capacity
        with pytest.raises(InputError, match=f"the cache has room for {tokens} tokens"):
            wrapped.next_logits(ids[:, :1], None, cache)
        with pytest.raises(InputError, match="must be in"):
            wrapped.next_logits(ids[:, :1] + 10_000, None, cache)
        del cache
    assert len(runner) == 2  # of 1 and of 4 rows


@pytest.mark.parametrize(
    "name", ["gemma-3-270m", "Mistral-7B-v0.1", "qwen2-windows", "Falcon-H1-0.5B-Instruct", "qwen3.5-text"]
)
def test_steps_of_layers_that_drop_tokens(name, model, runner, monkeypatch):
    """The graph's memory stays where it is while older tokens make room for new ones, in rows of unlike lengths."""
    own = model(name)
    wrapped, (ids, _) = runner.decoder(own), texts(2, own.max_positions)
    wanted, _ = steps(own, ids, 30, {})
    monkeypatch.setattr(zoo.cache.kv, "SPARE_TOKENS", 2)
    monkeypatch.setattr(zoo.inputs.texts, "CHUNK", 5)
    monkeypatch.setattr(zoo.inputs.heads, "CHUNK", 5)
    found, cache = steps(wrapped, ids, 30, {})
    assert (cache.dropped_counts > 0).all()
    check(found, wanted)
    for one in (own, wrapped):
        cache = one.new_cache(2, ids.shape[1])
        rest = [ids[:, :20], *(ids[:, i : i + 1] for i in range(20, 34))]
        rows = [
            one.next_logits(rest[0], np.array([20, 9]), cache),
            *(one.next_logits(x, None, cache) for x in rest[1:]),
        ]
        cache.select(np.array([1]))
        rows.append(one.next_logits(ids[:1, 34:35], None, cache))
        if one is own:
            wanted = tuple(rows)
    check(tuple(rows), wanted)
    assert not runner.failed
    assert len(runner) == 1


@pytest.mark.parametrize("name", ["trocr-base-handwritten", "trocr-small-printed", "trocr-beit"])
def test_steps_with_an_encoder(name, model, runner):
    whole = model(name)
    own, (Y, X) = whole.decoder, whole.config.encoder.image
    wrapped = runner.decoder(own)
    for seed, rows in enumerate((2, 1, 2)):
        pixels = np.random.default_rng(seed).standard_normal((rows, Y, X, 3))
        states = whole.encode(pixels)
        check(runner.run(whole.encoder_states, whole.encoder.pixels(pixels)), states)
        ids, _ = texts(rows, 9, seed)
        found, _ = steps(wrapped, ids, 6, {"encoder_hidden_states": states})
        check(found, steps(own, ids, 6, {"encoder_hidden_states": states})[0])
    assert not runner.failed
    assert len(runner) >= 2


def test_steps_with_encoders_of_other_images(model, runner):
    """More states than before lie elsewhere: the graph of those before is not replayed."""
    whole = model("trocr-beit")
    own, (Y, X) = whole.decoder, whole.config.encoder.image
    wrapped, (ids, _) = runner.decoder(own), texts(1, 7)
    for seed, size in enumerate(((Y, X), (Y, 2 * X), (Y, 2 * X), (Y, X))):
        states = whole.encode(np.random.default_rng(seed).standard_normal((1, *size, 3)))
        found = steps(wrapped, ids, 4, {"encoder_hidden_states": states})[0]
        check(found, steps(own, ids, 4, {"encoder_hidden_states": states})[0])
    assert len(runner) == 1


def test_a_decoder_with_and_without_an_encoder(model, runner):
    own = model("trocr-decoder")
    wrapped, (ids, _) = runner.decoder(own), texts(1, 8)
    states = np.random.default_rng(0).standard_normal((1, 5, own.config.cross_size))
    for context in ({"encoder_hidden_states": states}, {}, {"encoder_hidden_states": states}):
        check(steps(wrapped, ids, 4, context)[0], steps(own, ids, 4, context)[0])
    assert len(runner) == 1


def test_rows_that_left_write_nowhere(model, runner):
    """They were full, and the row that stays takes tokens back."""
    own = model("Llama-3.2-1B")
    wrapped = runner.decoder(own)
    ids, _ = texts(4, own.max_positions)
    out = []
    for one in (own, wrapped):
        cache = one.new_cache(4)
        one.next_logits(ids, None, cache)
        cache.advance(-4)
        first = [one.next_logits(ids[:, i : i + 1], None, cache) for i in range(4)]
        cache.select(np.array([2]))
        cache.advance(-3)
        out.append((*first, *(one.next_logits(ids[:1, i : i + 1], None, cache) for i in range(3))))
    check(*out)
    assert len(runner) == 1


def test_a_cache_is_as_new(stories, runner):
    """Nothing of the generation before is left in its memory, not even what multiplied by 0 is not a number."""
    wrapped = runner.decoder(stories.model)
    ids, _ = texts(1, 12)
    wanted, _ = steps(stories.model, ids, 5, {})
    for _ in range(2):
        found, cache = steps(wrapped, ids, 5, {})
        check(found, wanted)
        for x in (*cache.keys, *cache.values):
            x.fill_(float("nan"))
        del cache


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"do_sample": True, "seed": 3, "num_return_sequences": 2},
        {"num_beams": 3},
        {"no_repeat_ngram_size": 2},
        {"max_new_tokens": None, "max_length": 20},  # rows that end one after the other
    ],
    ids=str,
)
@pytest.mark.parametrize("away", [False, True])
def test_generation(stories, runner, options, away, monkeypatch):
    own = stories.model
    wrapped = runner.decoder(own)
    prompts = [
        stories.tokenizer.backend.encode(t).ids for t in ("Once upon a time", "Lily", "The cat and the dog", "A")
    ]
    config = GenerationConfig(**{"max_new_tokens": 24, "eos_token_id": (2,), **options})
    wanted = generate(own, prompts, config)
    if away:
        for module in ("rows", "beam"):
            monkeypatch.setattr(f"zoo.generate.{module}.is_on_gpu", lambda logits: not isinstance(logits, np.ndarray))
    for _ in range(2):
        found = generate(wrapped, prompts, config)
        for row, other in zip(found, wanted, strict=True):
            for a, b in zip(row, other, strict=True):
                assert a.ids.tolist() == b.ids.tolist()
                np.testing.assert_allclose(a.logprobs, b.logprobs, atol=1e-4)
                assert a.reason == b.reason
    assert not runner.failed
    assert len(runner) == 1


@pytest.mark.parametrize("num_beams", [1, 3, 4])
def test_reading_with_rows_that_end(model, runner, num_beams):
    whole = model("trocr-base-handwritten")
    own, (Y, X) = whole.decoder, whole.config.encoder.image
    states = whole.encode(np.random.default_rng(5).standard_normal((4, Y, X, 3)))
    prompts = [[7], [8, 9, 10], [11, 12], [13, 14, 15, 16, 17]]
    config = GenerationConfig(max_length=12, num_beams=num_beams)
    wanted = generate(own, prompts, config, encoder_hidden_states=states)
    for _ in range(2):
        found = generate(runner.decoder(own), prompts, config, encoder_hidden_states=states)
        assert [one.ids.tolist() for (one,) in found] == [one.ids.tolist() for (one,) in wanted]
    assert len(runner) == (num_beams != 3)  # three beams share states, and a graph has a power of two of rows
    assert not runner.failed


def test_generations_at_once_have_memory_of_their_own(stories, runner):
    own = stories.model
    wrapped = runner.decoder(own)
    ids = np.array([stories.tokenizer.backend.encode("Once upon a time there was a").ids])
    (wanted, _), places = steps(own, ids, 5, {}), []
    for _ in range(3):
        one, two = wrapped.new_cache(1, 30), wrapped.new_cache(1, 30)
        for cache in (one, two):
            wrapped.next_logits(ids[:, :-5], None, cache)
        for i in range(5):
            for cache in (one, two):
                check(wrapped.next_logits(ids[:, i - 5 : ids.shape[1] + i - 4], None, cache), wanted[i + 1])
        places += [one.keys[0].data_ptr(), two.keys[0].data_ptr()]
        del one, two, cache
    assert len(set(places)) == 2  # which serve again
    assert len(runner) == 2


def test_where_memory_is_short_that_of_ended_generations_is_given_up(stories, runner, monkeypatch):
    own, calls = stories.model, []
    wrapped = runner.decoder(own)
    kept = wrapped.new_cache(1, 30)
    ended = wrapped.new_cache(2, 30)
    del ended
    assert len(wrapped._slots) == 2
    new_cache = type(own).new_cache

    def short(self, batch, capacity):
        calls.append(batch)
        if len(calls) == 1:
            raise torch.OutOfMemoryError("no room")
        return new_cache(self, batch, capacity)

    monkeypatch.setattr(type(own), "new_cache", short)
    cache = wrapped.new_cache(4, 30)
    assert calls == [4, 4]
    assert [slot.shape[0] for slot in wrapped._slots] == [1, 4]
    assert kept.capacity == cache.capacity == 30


def test_a_conversation_goes_on(stories, runner):
    """A cache that takes tokens back, and is used for longer than a generation."""
    own = stories.model
    wrapped = runner.decoder(own)
    ids, _ = texts(1, 24)
    found, wanted = [], []
    for model, out in ((wrapped, found), (own, wanted)):
        cache = model.new_cache(1, 60)
        model.next_logits(ids, None, cache)
        for _ in range(2):
            for i in range(4):
                out.append(model.next_logits(ids[:, i : i + 1], None, cache))
            cache.advance(-2)
            model.next_logits(ids[:, 5:9], None, cache)
            cache.advance(np.array([-1]))
    check(tuple(found), tuple(wanted))
    assert len(runner) == 1
