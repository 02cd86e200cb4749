"""StarCoder2 checkpoints."""

from __future__ import annotations

from functools import partial

from .common import Spec, labels

CONFIG = {"vocab_size": 49152, "hidden_size": 3072, "intermediate_size": 12288, "num_hidden_layers": 30}
CONFIG |= {"num_attention_heads": 24, "num_key_value_heads": 2, "max_position_embeddings": 16384, "norm_epsilon": 1e-5}
CONFIG |= {"rope_theta": 999999.4420358813, "sliding_window": 4096, "use_bias": True, "hidden_act": "gelu_pytorch_tanh"}
CONFIG |= {"mlp_type": "default", "norm_type": "layer_norm", "bos_token_id": 0, "eos_token_id": 0}
CONFIG |= {"attention_dropout": 0.1, "residual_dropout": 0.1, "embedding_dropout": 0.1, "initializer_range": 0.018042}
TINY = {"vocab_size": 500, "hidden_size": 64, "intermediate_size": 112, "num_hidden_layers": 3, "sliding_window": 5}
TINY |= {"num_attention_heads": 8, "max_position_embeddings": 256}

_starcoder2 = partial(Spec, model_type="starcoder2", config=CONFIG, tiny=TINY)
_CLASSIFIER = {**CONFIG, **labels(count=3), "pad_token_id": 0}

SPECS: dict[str, Spec] = {
    "starcoder2-3b": _starcoder2(like="bigcode/starcoder2-3b", architecture="Starcoder2ForCausalLM", dtype="BF16"),
    "starcoder2-bare": _starcoder2(like="save_pretrained", architecture="Starcoder2Model", format="sharded"),
    "starcoder2-no-bias": _starcoder2(
        like="save_pretrained",
        architecture="Starcoder2ForCausalLM",
        config={**CONFIG, "use_bias": False, "sliding_window": None, "tie_word_embeddings": False},
        tiny={k: v for k, v in TINY.items() if k != "sliding_window"},
    ),
    "starcoder2-classifier": _starcoder2(
        like="save_pretrained", architecture="Starcoder2ForSequenceClassification", config=_CLASSIFIER, dtype="F16"
    ),
    "starcoder2-tagger": _starcoder2(
        like="save_pretrained", architecture="Starcoder2ForTokenClassification", config={**CONFIG, **labels(count=9)}
    ),
}
