"""Greedy choice and beam search, token for token what transformers' generate gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from zoo.generate import GenerationConfig, generate

torch = pytest.importorskip("torch", reason="needs torch, the reference")
pytest.importorskip("transformers", reason="needs transformers, the reference")

PAD = 1


def theirs(model: Any, prompts: list[np.ndarray], options: dict[str, Any], **context: Any) -> list[list[int]]:
    """The tokens that transformers appends to each prompt, padded on the left, without padding at the end."""
    longest = max(map(len, prompts))
    ids = torch.tensor([[PAD] * (longest - len(p)) + p.tolist() for p in prompts])
    mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts])
    with torch.no_grad():
        out = model.generate(
            ids,
            attention_mask=mask,
            pad_token_id=PAD,
            return_dict_in_generate=True,
            output_scores=True,
            **{"do_sample": False, **options},
            **context,
        )
    rows = out.sequences[:, longest:].tolist()
    scores = None if out.get("sequences_scores") is None else out.sequences_scores.numpy()
    return rows, scores


def assert_same(found: list[Any], wanted: list[list[int]], scores: np.ndarray | None) -> None:
    flat = [one for each in found for one in each]
    assert len(flat) == len(wanted)
    for i, (one, row) in enumerate(zip(flat, wanted, strict=True)):
        n = len(one.ids)
        assert one.ids.tolist() == row[:n], i
        assert all(token == PAD for token in row[n:]), i
        if scores is not None:
            np.testing.assert_allclose(one.score, scores[i], rtol=2e-5)


def prompts_of(rng: np.random.Generator, lengths: tuple[int, ...]) -> list[np.ndarray]:
    return [rng.integers(3, 40, n) for n in lengths]


BEAMS = [
    {"num_beams": 4},
    {"num_beams": 10},
    {"num_beams": 4, "num_return_sequences": 4},
    {"num_beams": 4, "early_stopping": True, "num_return_sequences": 3},
    {"num_beams": 4, "early_stopping": "never", "length_penalty": 2.0, "num_return_sequences": 2},
    {"num_beams": 5, "length_penalty": -1.0},
    {"num_beams": 3, "length_penalty": 0.0, "early_stopping": "never"},
    {"num_beams": 4, "no_repeat_ngram_size": 3, "length_penalty": 2.0, "early_stopping": True},
    {"num_beams": 4, "repetition_penalty": 1.3, "min_new_tokens": 5},
    {"num_beams": 2, "no_repeat_ngram_size": 1, "num_return_sequences": 2},
]
GREEDY = [
    {},
    {"repetition_penalty": 1.5},
    {"no_repeat_ngram_size": 2},
    {"min_new_tokens": 6, "repetition_penalty": 0.8},
    {"no_repeat_ngram_size": 1, "repetition_penalty": 1.1},
]


@pytest.mark.parametrize("options", [*GREEDY, *BEAMS], ids=str)
@pytest.mark.parametrize("eos", [7, [5, 11, 23]], ids=["one end", "three ends"])
def test_batches(options, eos, decoder, rng):
    their, ours = decoder("BertLMHeadModel")
    # Where n-grams count, transformers counts those of its padding too: prompts of one length have none.
    prompts = prompts_of(rng, (5,) * 5 if "no_repeat_ngram_size" in options else (4, 9, 1, 6, 6))
    options = {"max_new_tokens": 20, "eos_token_id": eos, **options}
    wanted, scores = theirs(their, prompts, options)
    assert_same(generate(ours, prompts, GenerationConfig(**options)), wanted, scores)


@pytest.mark.parametrize("beams", [1, 3])
def test_logit_bias_is_the_sequence_bias_of_single_tokens(beams, decoder, rng):
    their, ours = decoder("BertLMHeadModel")
    prompts, bias = prompts_of(rng, (4, 9, 1, 6)), {5: 2.5, 11: -3.0, 20: 1.0, 7: -100.0}
    given = {"max_new_tokens": 20, "eos_token_id": 8, "num_beams": beams}
    wanted, scores = theirs(their, prompts, {**given, "sequence_bias": {(token,): b for token, b in bias.items()}})
    assert_same(generate(ours, prompts, GenerationConfig(**given, logit_bias=bias)), wanted, scores)


@pytest.mark.parametrize(
    "options",
    [{"frequency_penalty": 0.7}, {"presence_penalty": -1.2}, {"frequency_penalty": -0.3, "presence_penalty": 1.5}],
    ids=str,
)
def test_penalties_are_openais(options, decoder, rng):
    """mu[j] - c[j] * frequency - (c[j] > 0) * presence, of the counts c of what was written after the prompt."""
    torch = pytest.importorskip("torch", reason="needs torch, for the reference")
    their, ours = decoder("BertLMHeadModel")
    for prompt in prompts_of(rng, (6, 1, 9)):
        ids = list(prompt)
        for _ in range(15):
            with torch.no_grad():
                row = their(torch.tensor([ids])).logits[0, -1].double().numpy()
            counts = np.bincount(ids[len(prompt) :], minlength=len(row))
            row = row - counts * options.get("frequency_penalty", 0) - (counts > 0) * options.get("presence_penalty", 0)
            ids.append(int(row.argmax()))
        found = generate(ours, [prompt], GenerationConfig(max_new_tokens=15, eos_token_id=10**6, **options))
        assert list(found[0][0].ids) == [int(i) for i in ids[len(prompt) :]]


CONSTRAINTS = [
    {"forced_bos_token_id": 12},
    {"forced_bos_token_id": 12, "begin_suppress_tokens": [*range(3, 30)]},
    {"begin_suppress_tokens": [*range(3, 30)]},
    {"forced_eos_token_id": [9, 30], "suppress_tokens": [30, 31, 32]},
    {"forced_bos_token_id": 12, "forced_eos_token_id": 9, "max_new_tokens": 1},
    {"bad_words_ids": [[token] for token in range(0, 40, 2)]},
    {"bad_words_ids": [[5], [7], [11]], "suppress_tokens": [11], "min_new_tokens": 3},
    {"bad_words_ids": [[7], [8]], "repetition_penalty": 1.2, "no_repeat_ngram_size": 1},
]


@pytest.mark.parametrize("options", CONSTRAINTS, ids=str)
@pytest.mark.parametrize("beams", [1, 3])
def test_constraints_after_prompts_of_one_token_and_of_more(beams, options, decoder, rng):
    """Each prompt alone: transformers counts the padding of a batch."""
    their, ours = decoder("BertLMHeadModel")
    ended = 0
    for prompt in prompts_of(rng, (1, 1, 2, 7, 12)):
        given = {"max_new_tokens": 20, "eos_token_id": [5, 7, 11], "num_beams": beams, **options}
        wanted, scores = theirs(their, [prompt], given)
        found = generate(ours, [prompt], GenerationConfig(**given))
        assert_same(found, wanted, scores)
        ended += found[0][0].reason == "stop"
    if "bad_words_ids" in options:
        assert ended  # a text ends with an end token, though it is a bad word


@pytest.mark.parametrize("options", [{}, {"num_beams": 4, "num_return_sequences": 4, "early_stopping": True}], ids=str)
@pytest.mark.parametrize("device", [None, "torch:cpu"])
def test_decoders_that_look_at_an_encoder(device, options, decoder, rng):
    """The rows of a prompt share its encoder's states, and take them along when other prompts have ended."""
    their, ours = decoder("BertLMHeadModel", device, add_cross_attention=True)
    prompts, states = prompts_of(rng, (3,) * 5), rng.standard_normal((5, 7, 32)).astype(np.float32)
    options = {"max_new_tokens": 16, "eos_token_id": [5, 7, 11], **options}
    context = {"encoder_hidden_states": torch.from_numpy(states), "use_cache": False}
    wanted, scores = theirs(their, prompts, options, **context)
    given = states if device is None else torch.from_numpy(states)
    found = generate(ours, prompts, GenerationConfig(**options), encoder_hidden_states=given)
    assert_same(found, wanted, scores)
    assert len({len(row[0].ids) for row in found}) > 1  # prompts that end at different times


def test_roberta_counts_its_positions_as_it_was_trained(decoder, rng):
    """Against forward passes over the whole text: transformers' generate gives RoBERTa positions from 0."""
    their, ours = decoder("RobertaForCausalLM")
    prompts = prompts_of(rng, (4, 9, 1))
    found = generate(ours, prompts, GenerationConfig(max_new_tokens=10))
    for prompt, (one,) in zip(prompts, found, strict=True):
        ids = prompt.tolist()
        with torch.no_grad():
            for _ in range(10):
                ids.append(int(their(torch.tensor([ids])).logits[0, -1].argmax()))
        assert one.ids.tolist() == ids[len(prompt) :]


@pytest.mark.parametrize("options", [{}, {"num_beams": 4, "num_return_sequences": 2, "length_penalty": 1.5}], ids=str)
@pytest.mark.parametrize("device", [None, "torch:cpu"])
def test_llama(device, options, decoder, rng):
    sizes = {"num_key_value_heads": 2, "tie_word_embeddings": False, "is_decoder": None}
    their, ours = decoder("LlamaForCausalLM", device, **sizes)
    prompts = prompts_of(rng, (4, 17, 1, 6, 6))
    options = {"max_new_tokens": 30, "eos_token_id": [5, 7, 11], **options}
    wanted, scores = theirs(their, prompts, options)
    assert_same(generate(ours, prompts, GenerationConfig(**options)), wanted, scores)


def test_log_probabilities_are_those_of_the_text(decoder, rng):
    """A token's log-probability given all before it, of beams too, whatever the constraints."""
    their, ours = decoder("BertLMHeadModel")
    prompt = rng.integers(3, 40, 6)
    for options in (
        {"repetition_penalty": 1.4},
        {"num_beams": 4, "num_return_sequences": 4, "no_repeat_ngram_size": 2},
    ):
        for one in generate(ours, [prompt], GenerationConfig(max_new_tokens=12, eos_token_id=7, **options))[0]:
            with torch.no_grad():
                logits = their(torch.from_numpy(np.concatenate([prompt, one.ids]))[None]).logits[0]
            wanted = torch.log_softmax(logits[len(prompt) - 1 : -1], -1)[range(len(one.ids)), one.ids].numpy()
            np.testing.assert_allclose(one.logprobs, wanted, rtol=1e-3, atol=1e-5)


def test_a_text_to_stop_at_ends_a_row(decoder, rng):
    _, ours = decoder("BertLMHeadModel")
    prompts = prompts_of(rng, (4, 9, 6))
    free = [row[0].ids.tolist() for row in generate(ours, prompts, GenerationConfig(max_new_tokens=15))]
    stopped = generate(ours, prompts, GenerationConfig(max_new_tokens=15), stop=lambda ids: ids[-1] in (free[0][4], 3))
    for ids, (one,) in zip(free, stopped, strict=True):
        ends = [i + 1 for i, token in enumerate(ids) if token in (free[0][4], 3)]
        assert one.ids.tolist() == ids[: ends[0] if ends else None]
        assert one.reason == ("stop" if ends else "length")


def test_prompts_that_fill_the_context_to_different_degrees(decoder, rng):
    """Each row goes on to the end of the context, beside rows that are there already."""
    _, ours = decoder("BertLMHeadModel")
    prompts = prompts_of(rng, (60, 3, 63))
    for options in ({}, {"num_beams": 3}):
        found = generate(ours, prompts, GenerationConfig(**options))
        assert [len(row[0].ids) for row in found] == [4, 61, 1]
        for prompt, (one,) in zip(prompts, found, strict=True):
            assert one.ids.tolist() == generate(ours, [prompt], GenerationConfig(**options))[0][0].ids.tolist()
