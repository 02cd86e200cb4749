"""Tokens that are chosen on a device are those that NumPy chooses.  Run on torch's CPU tensors, taken for a GPU's."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import zoo
from zoo.errors import ZooError
from zoo.generate import GenerationConfig, generate, rows
from zoo.generate.sampling import distribution, log_softmax, sample

torch = pytest.importorskip("torch", reason="needs torch, whose tensors lie on devices")
on_device = pytest.importorskip("zoo.generate.on_device")

SETTINGS = [
    {"temperature": t, "top_k": k, "top_p": p, "min_p": m}
    for t, k, p, m in itertools.product((0.6, 1.0, 2.5), (0, 1, 5, 50), (0.3, 0.9, 1.0), (None, 0.2))
]
PROMPTS = ("Once upon a time", "Lily", "The dog ran to the park and", "One day, a")


@pytest.fixture(scope="module")
def llm():
    return zoo.load("stories260k", device="torch:cpu")


@pytest.fixture
def away(monkeypatch):
    """Takes tensors for those of a GPU; the fixture's list gets an entry for each choice that is made there."""
    made = []
    choose = on_device.choose
    monkeypatch.setattr(rows, "is_on_gpu", lambda logits: not isinstance(logits, np.ndarray))
    monkeypatch.setattr(on_device, "choose", lambda *args: made.append(1) or choose(*args))
    return made


@pytest.mark.parametrize("ties", [False, True])
def test_distributions(ties, rng):
    logits = (rng.standard_normal((5, 40)) * 3).astype(np.float32)
    if ties:
        logits = np.round(logits)
    logits[:, [3, 17]] = -np.inf
    for options in SETTINGS:
        config = GenerationConfig(do_sample=True, **options)
        found = on_device.distribution(torch.from_numpy(logits), config).numpy()
        for row, p in zip(logits, found, strict=True):
            wanted = np.zeros(40)
            ids, wanted_p = distribution(row, config)
            wanted[ids] = wanted_p
            np.testing.assert_allclose(p, wanted, atol=1e-14, err_msg=str(options))


def test_tokens_of_the_same_numbers(rng):
    logits = rng.standard_normal((64, 300)).astype(np.float32) * 4
    draws = rng.random(64)
    for options in SETTINGS:
        config = GenerationConfig(do_sample=True, **options)
        found = on_device.choose(torch.from_numpy(logits), config, draws)
        assert found.tokens == [sample(row, config, draw) for row, draw in zip(logits, draws, strict=True)]
        assert found.following.tolist() == [[token] for token in found.tokens]
        logprobs = log_softmax(logits)[np.arange(64), found.tokens]
        np.testing.assert_allclose(found.logprobs, logprobs, rtol=1e-6, atol=1e-6)


def test_draws_at_the_ends():
    p = torch.tensor([[0.0, 0.25, 0.0, 0.75, 0.0]], dtype=torch.float64)
    wanted = {0.0: 1, 0.25: 3, 0.2499: 1, 0.9999: 3, 1.0: 3}
    for draw, token in wanted.items():
        assert on_device.draw_tokens(p, np.array([draw])).tolist() == [[token]]


def test_the_first_of_equals_and_halves():
    logits = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 1.0]], dtype=torch.bfloat16)
    found = on_device.choose(logits, GenerationConfig(), None)
    assert found.tokens == [1, 0]
    np.testing.assert_allclose(found.logprobs, log_softmax(logits.float().numpy())[[0, 1], [1, 0]], rtol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_logits_that_are_not_numbers_are_an_error(bad):
    for draws in (None, np.array([0.5])):
        with pytest.raises(ZooError, match="NaN or infinite"):
            on_device.choose(torch.tensor([[0.0, bad, 1.0]]), GenerationConfig(do_sample=draws is not None), draws)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"do_sample": True, "seed": 5},
        {"do_sample": True, "seed": 6, "temperature": 0.7, "top_p": 0.8, "num_return_sequences": 3},
        {"do_sample": True, "seed": 7, "top_k": 0, "min_p": 0.05, "temperature": 1.4},
        {"stop_strings": ("was",)},
    ],
    ids=str,
)
def test_generation_of_a_real_model(llm, away, options, monkeypatch):
    options = {"max_new_tokens": 40, "details": True, **options}
    found = llm(PROMPTS, **options)
    assert away
    monkeypatch.setattr(rows, "is_on_gpu", lambda logits: False)
    wanted = llm(PROMPTS, **options)
    for a, b in zip(np.ravel(np.array(found, object)), np.ravel(np.array(wanted, object)), strict=True):
        if isinstance(a, float):
            assert a == pytest.approx(b, abs=1e-4)
        elif isinstance(a, tuple):
            assert [t[:2] for t in a] == [t[:2] for t in b]
            assert [t[2] for t in a] == pytest.approx([t[2] for t in b], abs=1e-5)
        else:
            assert a == b


def test_what_looks_back_is_done_on_the_host(llm, away, monkeypatch):
    """Until the last constraint is met: then the choice is the device's."""
    options = {"max_new_tokens": 12, "min_new_tokens": 5}
    found = llm(PROMPTS, **options)
    assert len(away) == 12 - 5
    away.clear()
    for more in ({"repetition_penalty": 1.3}, {"no_repeat_ngram_size": 2}):
        llm(PROMPTS, max_new_tokens=5, **more)
    assert not away
    monkeypatch.setattr(rows, "is_on_gpu", lambda logits: False)
    assert found == llm(PROMPTS, **options)


def test_a_row_that_ends_leaves_the_others_as_they_are(llm, away):
    """The one row has fewer tokens to come than the other."""
    ids = [llm.tokenizer.backend.encode(text).ids for text in PROMPTS]
    config = GenerationConfig(max_length=len(ids[2]) + 6)
    for row, (one,) in zip(ids, generate(llm.model, ids, config), strict=True):
        assert len(row) + len(one.ids) == config.max_length
        (alone,) = generate(llm.model, [row], config)[0]
        assert one.ids.tolist() == alone.ids.tolist()
    assert away
