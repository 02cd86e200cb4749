"""Experts: the layers that have none, and what does not fit."""

from __future__ import annotations

import numpy as np
import pytest

from zoo import ops
from zoo.errors import ConfigError
from zoo.models.qwen3_moe import Qwen3MoeConfig


def test_layers_with_experts():
    config = Qwen3MoeConfig(decoder_sparse_step=2, mlp_only_layers=[3], num_hidden_layers=6)
    assert [config.has_experts(i) for i in range(6)] == [False, True, False, False, False, True]
    assert Qwen3MoeConfig.from_dict({"model_type": "qwen3_moe", "num_local_experts": 16}).num_experts == 16
    with pytest.raises(ConfigError, match="num_experts_per_tok = 8 of num_experts = 4"):
        Qwen3MoeConfig(num_experts=4)


def test_an_expert_reads_the_rows_that_chose_it_alone():
    x, read = np.arange(12, dtype=np.float32).reshape(4, 3), []
    shares = np.array([[0.5, 0.5, 0], [0, 1, 0], [0, 1, 0], [1, 0, 0]], np.float32)

    def expert(rows):
        read.append(rows)
        return rows

    np.testing.assert_array_equal(ops.combine_experts(x, shares, [expert] * 3), x)
    assert [rows[:, 0].tolist() for rows in read] == [[0, 9], [0, 3, 6]]
