"""Nomic's first config files, which have other names for their fields."""

from __future__ import annotations

from zoo.registry import config_class


def test_the_first_names_of_fields():
    raw = {"model_type": "nomic_bert", "n_embd": 64, "n_layer": 3, "n_head": 4, "n_inner": 96, "rotary_emb_base": 5000}
    raw |= {"activation_function": "swiglu", "max_trained_positions": 128, "layer_norm_epsilon": 1e-6}
    config = config_class("nomic_bert").from_dict(raw)
    again = type(config).from_dict(config.to_dict())
    for found in (config, again):
        assert (found.hidden_size, found.num_hidden_layers, found.intermediate_size) == (64, 3, 96)
        assert (found.rope().theta, found.max_position_embeddings, found.layer_norm_eps) == (5000, 128, 1e-6)
