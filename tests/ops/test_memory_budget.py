"""The memory that a config may request beyond its weights."""

from __future__ import annotations

import numpy as np
import pytest

from zoo import ops
from zoo.cache import KVCache
from zoo.errors import CheckpointError, ConfigError, InputError
from zoo.models.trocr import TrOCRConfig, TrOCRForCausalLM

LIKE = np.zeros(4, np.float32)
SMALL = {"vocab_size": 50, "d_model": 16, "decoder_layers": 1, "decoder_attention_heads": 2, "decoder_ffn_dim": 16}


@pytest.mark.parametrize(
    "make",
    [
        lambda: ops.arange(10**9, LIKE),
        lambda: ops.zeros((10**5, 10**5), LIKE),
        lambda: ops.sinusoids(np.arange(10**5), 10**4, LIKE),
        lambda: ops.embedding(np.zeros(10**6, np.int64), np.zeros((1, 10**4), np.float32)),
        lambda: ops.interpolate(np.zeros((1, 2, 2, 1), np.float32), (10**5, 10**5)),
        lambda: ops.gather_bias(np.zeros((4, 100), np.float32), np.zeros((1000, 1000), np.int64)),
    ],
)
def test_what_no_file_justifies_is_refused_before_it_is_made(make):
    with ops.memory_budget(0), pytest.raises(ConfigError, match="the config asks for"):
        make()


def test_weights_justify_as_much_again_and_all_is_counted_together():
    with ops.memory_budget(1 << 20):
        for _ in range(8):
            ops.arange(1 << 20, LIKE)
        ops.arange(1 << 17, LIKE)
        with pytest.raises(ConfigError, match="0 MB are left"):
            ops.arange(1 << 10, LIKE)
    assert len(ops.arange(1 << 10, LIKE)) == 1 << 10  # calls are not counted


@pytest.mark.parametrize("positions", [20_000_000, 2**31 - 1])
def test_positions_that_code_makes_are_counted(positions):
    raw = {**SMALL, "model_type": "trocr", "max_position_embeddings": positions}
    raw["use_learned_position_embeddings"] = False
    with pytest.raises(ConfigError, match="the config asks for numbers"):
        TrOCRForCausalLM.from_config(TrOCRConfig.from_dict(raw))


def test_sizes_beyond_all_memory_are_one_error():
    raw = {**SMALL, "model_type": "trocr", "vocab_size": 2**31 - 1, "d_model": 2**31 - 2}
    with pytest.raises(CheckpointError, match="not enough memory"):
        TrOCRForCausalLM.from_config(TrOCRConfig.from_dict(raw))


def test_a_cache_beyond_all_memory_is_one_error():
    with pytest.raises(InputError, match="not enough memory"):
        KVCache(1, 1 << 20, 1 << 30, 1 << 10, 64, LIKE)
