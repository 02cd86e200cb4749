"""Phi-3's longrope against transformers: positions that change when a text grows past a length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from zoo.errors import ConfigError
from zoo.generate import GenerationConfig, generate
from zoo.loading import load_model
from zoo.models.phi3 import Phi3Config

torch = pytest.importorskip("torch", reason="needs torch, the reference")
transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")

ROPE = {"rope_type": "longrope", "rope_theta": 10000.0, "partial_rotary_factor": 0.75}
ROPE |= {"short_factor": [1.0, 1.1, 1.4], "long_factor": [1.0, 2.5, 9.0], "original_max_position_embeddings": 16}
SMALL = {"vocab_size": 120, "hidden_size": 64, "intermediate_size": 80, "num_hidden_layers": 2}
SMALL |= {"num_attention_heads": 8, "num_key_value_heads": 4, "max_position_embeddings": 64, "pad_token_id": 0}
SMALL |= {"original_max_position_embeddings": 16, "eos_token_id": None, "bos_token_id": None}


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("prompt", [9, 15, 16, 17, 30])
def test_all_tokens_are_computed_anew_where_the_frequencies_change(prompt, beams, tmp_path, rng):
    torch.manual_seed(0)
    config = transformers.Phi3Config(**SMALL, rope_parameters=dict(ROPE), attn_implementation="eager")
    model = transformers.Phi3ForCausalLM(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.1)
    model.save_pretrained(tmp_path)
    ids = rng.integers(1, 120, prompt)
    options = {"max_new_tokens": 12, "num_beams": beams}
    theirs = model.generate(torch.from_numpy(ids)[None], do_sample=False, use_cache=True, **options)[0, prompt:]
    model: Any = load_model(tmp_path)
    ours = generate(model, [ids], GenerationConfig(**options))[0][0].ids
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"short_factor": [1.0]}, "short_factor of rope_type 'longrope' is 1 numbers, expected a list of 3"),
        ({"long_factor": None}, "long_factor of rope_type 'longrope' is None"),
        ({"long_factor": [1.0, 0.0, 2.0]}, "expected numbers above 0"),
        ({"partial_rotary_factor": 2}, "partial_rotary_factor = 2 is out of range"),
    ],
)
def test_factors_that_do_not_fit_are_refused(change, problem):
    Phi3Config.from_dict({**SMALL, "rope_scaling": ROPE})
    with pytest.raises(ConfigError, match=problem):
        Phi3Config.from_dict({**SMALL, "rope_scaling": {**ROPE, **change}})


def test_first_names_of_longrope():
    for kind in ("su", "yarn"):
        config = Phi3Config.from_dict({**SMALL, "rope_scaling": {**ROPE, "rope_type": kind}})
        assert config.rope().kind == "longrope"
        assert np.isclose(config.rope().scale, (1 + np.log(4) / np.log(16)) ** 0.5)
