"""ModernBERT: its windows, its kinds of layers by either name, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from zoo.errors import ConfigError, UnsupportedError
from zoo.models.modernbert import ModernBertConfig, ModernBertModel
from zoo.rope import FULL_ATTENTION, SLIDING_ATTENTION

SMALL = {"vocab_size": 90, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 8}


def test_kinds_of_layers_by_either_name():
    assert [ModernBertConfig().is_local(i) for i in range(4)] == [False, True, True, False]
    assert ModernBertConfig(num_hidden_layers=2, layer_types=[SLIDING_ATTENTION, FULL_ATTENTION]).is_local(0)
    both = {FULL_ATTENTION: {"rope_theta": 5.0}, SLIDING_ATTENTION: {"rope_type": "default"}}
    config = ModernBertConfig(rope_parameters=both, local_rope_theta=7.0)
    assert (config.rope(local=False).theta, config.rope(local=True).theta) == (5.0, 7.0)


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"layer_types": [FULL_ATTENTION]}, ConfigError, "layer_types has 1 kinds for 2 layers"),
        ({"layer_types": [FULL_ATTENTION, "sliding"]}, ConfigError, "layer_types: 'sliding'"),
        ({"rope_parameters": {FULL_ATTENTION: {"rope_type": "jarn"}}}, UnsupportedError, "rope_type 'jarn'"),
        ({"rope_parameters": {FULL_ATTENTION: 5}}, ConfigError, "rope_parameters"),
        ({"classifier_pooling": "max"}, ConfigError, "classifier_pooling"),
        ({"local_rope_theta": 0.0}, ConfigError, "rope_theta"),
    ],
)
def test_values_that_are_refused(fields, error, message):
    with pytest.raises(error, match=message):
        ModernBertConfig.from_dict({**SMALL, **fields})


def test_a_window_hides_tokens_that_are_farther_away():
    config = ModernBertConfig(**SMALL, layer_types=[SLIDING_ATTENTION, SLIDING_ATTENTION], local_attention=4)
    model = ModernBertModel.from_config(config)
    ids = np.arange(1, 21)[None]
    changed = np.where(np.arange(20) == 10, 77, ids)
    differs = np.abs(model(ids).last_hidden_state - model(changed).last_hidden_state).max(-1)[0] > 1e-7
    assert np.flatnonzero(differs).tolist() == list(range(6, 15))  # two layers of two tokens to each side
