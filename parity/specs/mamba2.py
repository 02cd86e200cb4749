"""Mamba2 checkpoints: those of the authors, as they are converted, and Codestral's."""

from __future__ import annotations

import math
from functools import partial

from .common import Spec

LIMIT = [0.0, math.inf]
CONFIG = {"vocab_size": 50288, "hidden_size": 768, "num_hidden_layers": 24, "num_heads": 24, "head_dim": 64}
CONFIG |= {"state_size": 128, "n_groups": 1, "expand": 2, "conv_kernel": 4, "use_bias": False, "use_conv_bias": True}
CONFIG |= {"hidden_act": "silu", "layer_norm_epsilon": 1e-5, "chunk_size": 256, "residual_in_fp32": True}
CONFIG |= {"time_step_limit": LIMIT, "time_step_rank": 48, "tie_word_embeddings": True, "rms_norm": True}
CONFIG |= {"pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0, "norm_before_gate": False}
CODESTRAL = {**CONFIG, "vocab_size": 32768, "hidden_size": 4096, "num_hidden_layers": 64, "num_heads": 128}
CODESTRAL |= {"n_groups": 8, "tie_word_embeddings": False, "time_step_rank": 256, "norm_before_gate": True}
TINY = {"vocab_size": 500, "hidden_size": 48, "num_hidden_layers": 3, "num_heads": 6, "head_dim": 16, "state_size": 20}
TINY |= {"chunk_size": 8, "time_step_rank": 3, "eos_token_id": 3}

# D as large as in trained models: what a single token adds to its state seldom cancels with it then.
_mamba2 = partial(Spec, model_type="mamba2", config=CONFIG, tiny=TINY, gains={"conv1d": 4.0, "mixer.D": 30.0})

SPECS: dict[str, Spec] = {
    "mamba2-130m": _mamba2(like="AntonV/mamba2-130m-hf", architecture="Mamba2ForCausalLM", full=True),
    "Mamba-Codestral-7B-v0.1": _mamba2(
        like="mistralai/Mamba-Codestral-7B-v0.1",
        architecture="Mamba2ForCausalLM",
        config=CODESTRAL,
        tiny={**TINY, "n_groups": 2},
        dtype="BF16",
    ),
    "mamba2-biases": _mamba2(
        like="save_pretrained",
        architecture="Mamba2ForCausalLM",
        tiny={**TINY, "use_bias": True, "use_conv_bias": False, "n_groups": 3, "conv_kernel": 3, "hidden_act": "gelu"},
    ),
    "mamba2-bare": _mamba2(like="save_pretrained", architecture="Mamba2Model", format="sharded"),
}
