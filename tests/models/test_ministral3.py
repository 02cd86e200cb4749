"""Ministral 3: queries that grow with their positions, in caches too, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from parity.specs import SPECS, config_of
from zoo.errors import ConfigError
from zoo.models.ministral3 import Ministral3Config, Ministral3ForCausalLM

RAW = config_of(SPECS["Ministral-3-3B-Base-2512"], "tiny")
ROPE = RAW["rope_parameters"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build("Ministral-3-3B-Base-2512", tmp_path_factory.mktemp("ministral3"))


def test_queries_grow_where_texts_are_longer_than_the_first(rng):
    ids = rng.integers(3, 500, (1, 9))
    grows, plain = (
        Ministral3ForCausalLM.from_config(
            Ministral3Config.from_dict({**RAW, "rope_parameters": {**ROPE, "llama_4_scaling_beta": beta}})
        )
        for beta in (0.7, 0.0)
    )
    a, b = grows(ids), plain(ids)
    np.testing.assert_array_equal(a[:, :8], b[:, :8])  # the first 8 positions
    assert np.abs(a[:, 8] - b[:, 8]).max() > 1e-4


def test_texts_are_those_of_transformers(folder, rng):
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    theirs, ours = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="float32"), zoo.load_model(folder)
    for count in (3, 8, 21):
        ids = rng.integers(3, 500, (1, count))
        wanted = theirs.generate(torch.tensor(ids), max_new_tokens=20, do_sample=False, eos_token_id=None)[0, count:]
        with torch.no_grad():
            logits = theirs(torch.cat([torch.tensor(ids), wanted[None]], 1)).logits[0, count - 1 : -1].numpy()
        cache = ours.new_cache(1, 64)
        found = [ours(ids, cache=cache)[0, -1]]
        for token in wanted[:-1].tolist():
            found.append(ours(np.array([[token]]), cache=cache)[0, -1])
        np.testing.assert_allclose(np.stack(found), logits, rtol=1e-3, atol=1e-4 * np.abs(logits).max())


@pytest.mark.parametrize(
    ("rope", "problem"),
    [
        ({"llama_4_scaling_beta": None}, "llama_4_scaling_beta = None of rotary positions, expected a number"),
        ({"llama_4_scaling_beta": "1"}, "llama_4_scaling_beta = '1'"),
        ({"original_max_position_embeddings": None}, "original_max_position_embeddings = None"),
    ],
)
def test_what_scales_queries_is_needed(rope, problem):
    with pytest.raises(ConfigError, match=problem):
        Ministral3Config.from_dict({**RAW, "rope_parameters": {**ROPE, **rope}})


def test_left_out_positions_are_those_of_transformers():
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    ours = Ministral3Config.from_dict({"model_type": "ministral3"})
    theirs = transformers.Ministral3Config()
    assert ours.query_beta == theirs.rope_parameters["llama_4_scaling_beta"]
    assert ours.rope().context == theirs.rope_parameters["original_max_position_embeddings"]
    assert dict(ours.rope().numbers)["factor"] == theirs.rope_parameters["factor"]
