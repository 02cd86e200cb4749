"""T5, Flan-T5, mT5 and Switch Transformers checkpoints: encoder and decoder, and the encoder alone."""

from __future__ import annotations

from functools import partial

from .common import Spec, labels

_T5 = {"vocab_size": 32128, "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8}
_T5 |= {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1, "dropout_rate": 0.1, "n_positions": 512}
_T5 |= {"is_encoder_decoder": True, "layer_norm_epsilon": 1e-6, "relative_attention_num_buckets": 32}
_T5 |= {"output_past": True, "initializer_factor": 1.0}
_PREFIXES = {
    "summarization": {"max_length": 200, "min_length": 30, "num_beams": 4, "prefix": "summarize: "},
    "translation_en_to_de": {"max_length": 300, "num_beams": 4, "prefix": "translate English to German: "},
}
_FLAN = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "num_decoder_layers": 8, "d_ff": 1024}
_TINY = {"vocab_size": 500, "d_model": 48, "d_kv": 16, "d_ff": 72, "num_layers": 2, "num_heads": 4, "n_positions": 40}
_SHORT_BIAS = {"relative_attention_max_distance": 12, "relative_attention_num_buckets": 8}

# Scores are not scaled: queries are.
_t5 = partial(
    Spec, model_type="t5", tokenizer="unigram", architecture="T5ForConditionalGeneration", gains={"Attention.q": 0.25}
)
_mt5 = partial(_t5, model_type="mt5", config={**_T5, **_FLAN, "vocab_size": 250112, "num_heads": 6, "num_layers": 8})
_umt5 = partial(_mt5, model_type="umt5", config={**_T5, **_FLAN, "vocab_size": 256384, "num_heads": 6, "num_layers": 8})
_TINY_MT5 = {**_TINY, "num_decoder_layers": 2, "feed_forward_proj": "gated-silu"}
_SWITCH = {**_T5, "d_model": 768, "num_layers": 12, "num_decoder_layers": 12, "num_heads": 12, "num_experts": 8}
_SWITCH |= {"num_sparse_encoder_layers": 6, "num_sparse_decoder_layers": 6, "expert_capacity": 64}
_SWITCH |= {"encoder_sparse_step": 2, "decoder_sparse_step": 2}
_SWITCH |= {"feed_forward_proj": "relu", "router_jitter_noise": 0, "router_dtype": "float32", "router_bias": False}
_TINY_SWITCH = {**_TINY, **_SHORT_BIAS, "num_layers": 4, "num_sparse_encoder_layers": 2, "num_decoder_layers": 3}
# Texts have more tokens than an expert takes.
_TINY_SWITCH |= {"num_sparse_decoder_layers": 1, "decoder_sparse_step": 3, "num_experts": 4, "expert_capacity": 3}
_switch = partial(_t5, model_type="switch_transformers", config=_SWITCH)

SPECS: dict[str, Spec] = {
    "t5-small": _t5(
        like="google-t5/t5-small", config={**_T5, "task_specific_params": _PREFIXES}, tiny=_TINY, full=True
    ),
    "flan-t5-small": _t5(
        like="google/flan-t5-small", config={**_T5, **_FLAN}, tiny={**_TINY, **_SHORT_BIAS, "num_decoder_layers": 2}
    ),
    "byt5-small": _t5(
        like="google/byt5-small",
        tokenizer="bytes",
        config={**_T5, **_FLAN, "vocab_size": 384, "d_model": 1472, "d_ff": 3584, "num_layers": 12, "num_heads": 6}
        | {"num_decoder_layers": 4, "tokenizer_class": "ByT5Tokenizer"},
        tiny={**_TINY, "vocab_size": 384, "n_positions": 200, "num_decoder_layers": 1},
    ),
    "sentence-t5-base": _t5(
        like="sentence-transformers/sentence-t5-base",
        architecture="T5EncoderModel",
        config={**_T5, "d_model": 768, "num_layers": 12, "num_heads": 12, "d_ff": 3072},
        tiny={**_TINY, **_SHORT_BIAS},
        dtype="F16",
    ),
    "t5-classifier": _t5(
        like="save_pretrained",
        architecture="T5ForSequenceClassification",
        config={**_T5, **labels(count=3)},
        tiny=_TINY,
    ),
    "t5-tagger": _t5(
        like="save_pretrained",
        architecture="T5ForTokenClassification",
        config={**_T5, **_FLAN, **labels(count=9)},
        tiny=_TINY,
    ),
    "t5-squad2": _t5(
        like="save_pretrained", architecture="T5ForQuestionAnswering", config=_T5, tiny=_TINY, dtype="F16"
    ),
    "t5-bare": _t5(like="save_pretrained", architecture="T5Model", config=_T5, tiny=_TINY),
    "mt5-small": _mt5(
        like="google/mt5-small",
        architecture="MT5ForConditionalGeneration",
        tiny=_TINY_MT5,
        format="sharded",
        full=True,
    ),
    "mt5-bare": _mt5(like="save_pretrained", architecture="MT5Model", tiny=_TINY_MT5),
    "mt5-encoder": _mt5(like="save_pretrained", architecture="MT5EncoderModel", tiny=_TINY_MT5),
    "mt5-classifier": _mt5(like="save_pretrained", architecture="MT5ForSequenceClassification", tiny=_TINY_MT5),
    "mt5-tagger": _mt5(like="save_pretrained", architecture="MT5ForTokenClassification", tiny=_TINY_MT5),
    "mt5-squad2": _mt5(like="save_pretrained", architecture="MT5ForQuestionAnswering", tiny=_TINY_MT5),
    "umt5-small": _umt5(
        like="google/umt5-small",
        architecture="UMT5ForConditionalGeneration",
        tiny={**_TINY_MT5, **_SHORT_BIAS},
        full=True,
    ),
    "umt5-encoder": _umt5(like="save_pretrained", architecture="UMT5EncoderModel", tiny=_TINY_MT5),
    "switch-base-8": _switch(
        like="google/switch-base-8",
        architecture="SwitchTransformersForConditionalGeneration",
        tiny={**_TINY_SWITCH, "expert_capacity": 64},  # a step with a cache counts its own tokens, and drops none
        full=True,
    ),
    "switch-encoder": _switch(
        like="save_pretrained",
        architecture="SwitchTransformersEncoderModel",
        tiny={**_TINY_SWITCH, "router_bias": True, "encoder_sparse_step": 1},
    ),
    "switch-bare": _switch(like="save_pretrained", architecture="SwitchTransformersModel", tiny=_TINY_SWITCH),
    "umt5-bare": _umt5(like="save_pretrained", architecture="UMT5Model", tiny=_TINY_MT5),
}
