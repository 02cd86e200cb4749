"""adapter_config.json: every field that peft writes is honoured, refused by its name, or changes no result."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from zoo.errors import CheckpointError, ConfigError, UnsupportedError, ZooError
from zoo.weights.adapter_config import (
    HONOURED_FIELDS,
    IDLE_FIELDS,
    PLAIN_INITS,
    REFUSED_FIELDS,
    SUBTRACTED_INITS,
    AdapterConfig,
)

Q, V = (f"model.layers.{i}.self_attn.{name}" for i, name in ((0, "q_proj"), (11, "v_proj")))


def config(tmp_path, **fields):
    raw = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"]}
    return AdapterConfig(tmp_path / "adapter_config.json", {**raw, **fields})


def test_no_field_of_peft_is_forgotten():
    """A field that a version of peft adds must be put into one of the three tables."""
    peft = pytest.importorskip("peft", reason="needs peft, whose fields they are")
    fields = {field.name for field in dataclasses.fields(peft.LoraConfig)}
    known = [*HONOURED_FIELDS, *IDLE_FIELDS, *REFUSED_FIELDS]
    assert sorted(known) == sorted(set(known))
    assert fields == set(known)


def test_no_initialisation_of_peft_is_forgotten():
    peft = pytest.importorskip("peft", reason="needs peft, whose values they are")
    hint = typing.get_type_hints(peft.LoraConfig)["init_lora_weights"]
    named = {value for option in typing.get_args(hint) for value in typing.get_args(option)}
    assert named - {*PLAIN_INITS, *SUBTRACTED_INITS} == {"pissa_niter_[number of iters]", "corda", "loftq"}


@pytest.mark.parametrize(
    "field",
    [
        {"peft_type": "ADALORA"},
        {"alora_invocation_tokens": [1, 2]},
        {"arrow_config": {"top_k": 3}},
        {"kasa_config": {"beta": 1e-4}},
        {"layer_replication": [[0, 2], [1, 3]]},
        {"megatron_config": {"tensor_parallel": 2}},
        {"monteclora_config": {"samples": 2}},
        {"target_parameters": ["mlp.experts.gate_up_proj"]},
        {"use_bdlora": {"nblocks": 2}},
        {"use_qalora": True},
        {"a_field_of_2031": 1},
        {"init_lora_weights": "pissa_niter_4"},
        {"init_lora_weights": "corda"},
        {"init_lora_weights": "loftq"},
        {"init_lora_weights": "a method of 2031"},
    ],
)
def test_refused_by_name(field, tmp_path):
    ((name, value),) = field.items()
    with pytest.raises(UnsupportedError, match=rf"{name} = '?{str(value)[:6].replace('[', '.').replace('{', '.')}"):
        config(tmp_path, **field)
    config(tmp_path, **{name: None} if name != "peft_type" else {})


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"r": 0}, "r = 0"),
        ({"r": True}, "r = True"),
        ({"lora_alpha": "8"}, "lora_alpha = '8'"),
        ({"bias": "some"}, "bias = 'some', expected 'none', 'all' or 'lora_only'"),
        ({"modules_to_save": "lm_head"}, "modules_to_save = 'lm_head', expected a list"),
        ({"rank_pattern": {"q_proj": "4"}}, "rank_pattern"),
        ({"alpha_pattern": [1]}, "alpha_pattern"),
        ({"alpha_pattern": {"(q": 1}}, r"'\(q' is not a regular expression"),
        ({"alpha_pattern": {"(a+)+": 1}}, "too complicated"),
        ({"alpha_pattern": {".*.*.*": 1}}, "too complicated"),
        ({"rank_pattern": {r"(.)\1": 1}}, "too complicated"),
        ({"use_dora": True, "lora_bias": True}, "use_dora and lora_bias together"),
    ],
)
def test_values_that_are_none(field, message, tmp_path):
    with pytest.raises(ZooError, match=message):
        config(tmp_path, **field)


def test_scales(tmp_path):
    assert config(tmp_path).scale(Q, 4) == 2
    assert config(tmp_path, use_rslora=True).scale(Q, 4) == 4
    found = config(tmp_path, rank_pattern={"q_proj": 2}, alpha_pattern={r".*\.11\.self_attn\.v_proj": 3, "v_proj": 100})
    assert (found.scale(Q, 2), found.scale(V, 4), found.scale(Q.replace("q_", "v_"), 4)) == (4, 0.75, 25)
    with pytest.raises(CheckpointError, match=rf"the rank of {Q} is 2, and its lora_A has 4 rows"):
        found.scale(Q, 4)


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"target_modules": ["v_proj"]}, "target_modules"),
        ({"exclude_modules": ["model.layers.0.self_attn.q_proj"]}, "exclude_modules"),
        ({"layers_to_transform": [1, 2]}, "layers_to_transform"),
        ({"layers_to_transform": 3, "layers_pattern": "layers"}, "layers_to_transform"),
        ({"layers_to_transform": [0], "layers_pattern": ["h"]}, "layers_to_transform"),
    ],
)
def test_modules_that_peft_would_ignore(fields, names, tmp_path):
    with pytest.raises(CheckpointError, match=rf"{names} = .* leaves out {Q}, whose matrices"):
        config(tmp_path, **fields).check_target(Q)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"target_modules": "all-linear"},
        {"target_modules": r".*\.v_proj"},
        {"target_modules": None},
        {"exclude_modules": r".*"},
        {"layers_to_transform": []},
        {"layers_to_transform": 0},
        {"layers_to_transform": [0, 11], "layers_pattern": ["layers"]},
    ],
)
def test_modules_that_peft_takes(fields, tmp_path):
    config(tmp_path, **fields).check_target(Q)


def test_trained_tokens(tmp_path):
    assert config(tmp_path, trainable_token_indices=[3, 9]).rows("model.embed_tokens") == [3, 9]
    found = config(tmp_path, trainable_token_indices={"lm_head": [1], "embed_tokens": [2]})
    assert (found.rows("model.embed_tokens"), found.rows("lm_head")) == ([2], [1])
    for wrong in (None, [-1], ["3"], {"lm_head": [1]}):
        with pytest.raises(ConfigError, match="trainable_token_indices = "):
            config(tmp_path, trainable_token_indices=wrong).rows("model.embed_tokens")


def test_copies_beside_the_base(tmp_path):
    found = config(tmp_path, modules_to_save=["embed_tokens", "score"])
    assert found.is_saved("model.embed_tokens")
    assert found.is_saved("score.dense.inner")
    assert not found.is_saved("lm_head")
    assert not config(tmp_path).is_saved("lm_head")
