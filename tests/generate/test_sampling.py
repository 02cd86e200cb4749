"""Sampled tokens and their frequencies; a seed determines them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from zoo.errors import ZooError
from zoo.generate import GenerationConfig, generate
from zoo.generate.sampling import constrain_scores, distribution, log_softmax, sample

SETTINGS = [
    {"temperature": t, "top_k": k, "top_p": p, "min_p": m}
    for t, k, p, m in itertools.product((0.6, 1.0, 2.5), (0, 1, 5, 50), (0.3, 0.9, 1.0), (None, 0.2))
]


@pytest.mark.parametrize("ties", [False, True])
def test_distribution_equals_transformers(ties, rng):
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    process = pytest.importorskip("transformers.generation.logits_process", reason="needs transformers")
    logits = (rng.standard_normal((4, 40)) * 3).astype(np.float32)
    if ties:
        logits = np.round(logits)
    for options in SETTINGS:
        steps = [process.TemperatureLogitsWarper(options["temperature"])]
        steps += [process.TopKLogitsWarper(options["top_k"])] if options["top_k"] else []
        # Which of equals at the edge of top_p come in is a matter of torch's sorting.
        top_p = 1.0 if ties else options["top_p"]
        steps += [process.TopPLogitsWarper(top_p)] if top_p < 1 else []
        steps += [process.MinPLogitsWarper(options["min_p"])] if options["min_p"] else []
        scores = torch.from_numpy(logits)
        for step in steps:
            scores = step(None, scores)
        wanted = torch.softmax(scores.double(), -1).numpy()
        config = GenerationConfig(do_sample=True, **{**options, "top_p": top_p})
        for row, p in zip(logits, wanted, strict=True):
            found = np.zeros(40)
            ids, found_p = distribution(row, config)
            found[ids] = found_p
            np.testing.assert_allclose(found, p, atol=2e-7, err_msg=str(options))


@pytest.mark.parametrize("options", [{}, {"temperature": 0.5}, {"top_k": 3}, {"top_p": 0.8}, {"min_p": 0.3}], ids=str)
def test_tokens_come_as_often_as_they_should(options):
    """Chi-square over 20,000 draws; the seed is fixed, so this passes or fails for good."""
    logits = np.log(np.array([0.4, 0.25, 0.15, 0.1, 0.06, 0.04], np.float32))
    config = GenerationConfig(do_sample=True, **options)
    rng, n = np.random.default_rng(1), 20_000
    counts = np.bincount([sample(logits, config, rng.random()) for _ in range(n)], minlength=6)
    ids, p = distribution(logits, config)
    assert counts.sum() == counts[ids].sum()
    chi2 = ((counts[ids] - n * p) ** 2 / (n * p)).sum()
    assert chi2 < len(ids) - 1 + 4 * np.sqrt(2 * max(len(ids) - 1, 1))


def test_probabilities_of_a_temperature_by_hand():
    ids, p = distribution(np.log(np.array([0.5, 0.3, 0.2])), GenerationConfig(do_sample=True, temperature=0.5))
    assert ids.tolist() == [0, 1, 2]
    np.testing.assert_allclose(p, np.array([0.25, 0.09, 0.04]) / 0.38, rtol=1e-12)


@pytest.mark.parametrize("temperature", [1e-300, 1e300])
def test_extreme_temperatures_are_finite(temperature, rng):
    config = GenerationConfig(do_sample=True, temperature=temperature, top_k=0)
    _, p = distribution(rng.standard_normal(50).astype(np.float32), config)
    assert np.isfinite(p).all()
    assert p.max() == pytest.approx(1 if temperature < 1 else 1 / 50)


def test_logits_that_are_not_numbers_are_an_error():
    for bad in (np.nan, np.inf):
        with pytest.raises(ZooError, match="NaN or infinite"):
            log_softmax(np.array([[0.0, bad, 1.0]], np.float32))


def test_constraints_that_leave_nothing_are_an_error():
    config = GenerationConfig(no_repeat_ngram_size=1)
    with pytest.raises(ZooError, match="exclude every next token"):
        constrain_scores(np.zeros((1, 3), np.float32), [np.array([0, 1, 2])], [3], [0], config)


def test_a_seed_gives_a_row_its_tokens_whatever_the_other_rows(small):
    prompts = [[5, 6, 7], [8, 9], [5, 6, 7], [30]]
    config = GenerationConfig(do_sample=True, temperature=1.5, max_new_tokens=12, num_return_sequences=3, seed=7)
    found = [[one.ids.tolist() for one in row] for row in generate(small, prompts, config)]
    assert found == [[one.ids.tolist() for one in row] for row in generate(small, prompts, config)]
    for i, prompt in enumerate(prompts):
        alone = generate(small, [prompt], config, first=i)[0]
        assert [one.ids.tolist() for one in alone] == found[i]
    assert len({str(ids) for row in found for ids in row}) == 12
    other = generate(small, prompts, config.replace(seed=8))
    assert [[one.ids.tolist() for one in row] for row in other] != found
