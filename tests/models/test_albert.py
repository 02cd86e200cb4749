"""ALBERT: groups of layers that take turns, one copy of their weights, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from zoo.errors import ConfigError, UnsupportedError
from zoo.models.albert import AlbertConfig
from zoo.nn import leaves

SMALL = {"hidden_size": 48, "num_attention_heads": 4, "intermediate_size": 72, "vocab_size": 90, "embedding_size": 16}


@pytest.mark.parametrize(("steps", "groups"), [(4, 1), (5, 2), (7, 3), (2, 3)])
def test_turns_of_groups_are_those_of_transformers(steps, groups, tmp_path):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    torch.manual_seed(0)
    config = transformers.AlbertConfig(**SMALL, num_hidden_layers=steps, num_hidden_groups=groups, inner_group_num=2)
    theirs = transformers.AlbertModel(config).eval()
    theirs.save_pretrained(tmp_path)
    ids = np.arange(1, 21).reshape(2, 10)
    with torch.no_grad():
        wanted = theirs(torch.tensor(ids))
    ours: Any = zoo.load_model(tmp_path, strict=True)
    found = ours(ids)
    np.testing.assert_allclose(found.last_hidden_state, wanted.last_hidden_state, atol=2e-5)
    np.testing.assert_allclose(found.pooler_output, wanted.pooler_output, atol=2e-5)


def test_layers_that_share_weights_are_saved_once(tmp_path):
    embed: Any = zoo.load(build("paraphrase-albert-small-v2", tmp_path / "a"))
    assert len(embed.model.layers) == 1
    zoo.save(embed, tmp_path / "b")
    again: Any = zoo.load(tmp_path / "b")
    assert [name for name, _ in leaves(again.model)] == [name for name, _ in leaves(embed.model)]
    np.testing.assert_array_equal(again("the old town"), embed("the old town"))


def test_what_is_refused():
    with pytest.raises(UnsupportedError, match="albert: is_decoder = True is not implemented"):
        AlbertConfig(is_decoder=True)
    with pytest.raises(ConfigError, match="num_hidden_groups"):
        AlbertConfig(num_hidden_groups=0)
