"""DeBERTa checkpoints: the first one, v2 and v3."""

from __future__ import annotations

from functools import partial

from .common import Spec, labels

CONFIG = {"vocab_size": 128100, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
CONFIG |= {"intermediate_size": 3072, "hidden_act": "gelu", "max_position_embeddings": 512, "layer_norm_eps": 1e-7}
CONFIG |= {"relative_attention": True, "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True}
CONFIG |= {"pos_att_type": "p2c|c2p", "position_biased_input": False, "max_relative_positions": -1}
CONFIG |= {"type_vocab_size": 0, "pad_token_id": 0, "pooler_dropout": 0, "pooler_hidden_act": "gelu"}
V2 = {**CONFIG, "hidden_size": 1536, "num_hidden_layers": 24, "num_attention_heads": 24, "intermediate_size": 6144}
V2 |= {"conv_kernel_size": 3, "conv_act": "gelu", "attention_head_size": 64}
TINY = {"vocab_size": 500, "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4}
TINY |= {"intermediate_size": 72, "max_position_embeddings": 64, "position_buckets": 16}
VARIANT = {"position_biased_input": True, "position_buckets": -1, "max_relative_positions": 9, "norm_rel_ebd": "none"}
FIRST = {"vocab_size": 50265, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
FIRST |= {"intermediate_size": 3072, "hidden_act": "gelu", "max_position_embeddings": 512, "layer_norm_eps": 1e-7}
FIRST |= {"relative_attention": True, "pos_att_type": "c2p|p2c", "position_biased_input": False, "type_vocab_size": 0}
FIRST |= {"max_relative_positions": -1, "pad_token_id": 0, "pooler_dropout": 0, "pooler_hidden_act": "gelu"}
FIRST_TINY = {name: value for name, value in TINY.items() if name != "position_buckets"}

_first = partial(Spec, model_type="deberta", like="save_pretrained", config=FIRST, tiny=FIRST_TINY)
_deberta = partial(Spec, model_type="deberta-v2", like="save_pretrained", config=CONFIG, tiny=TINY)

SPECS: dict[str, Spec] = {
    "deberta-base": _first(
        like="microsoft/deberta-base",
        architecture="DebertaForMaskedLM",
        config={**FIRST, "legacy": False},
        full=True,
    ),
    "deberta-first-bare": _first(architecture="DebertaModel"),
    "deberta-first-tagger": _first(
        architecture="DebertaForTokenClassification", config={**FIRST, "relative_attention": False, **labels(count=9)}
    ),
    "deberta-first-squad2": _first(architecture="DebertaForQuestionAnswering"),
    "deberta-first-classifier": _first(
        architecture="DebertaForSequenceClassification",
        config={**FIRST, "position_biased_input": True, **labels(count=3)},
        tiny={**FIRST_TINY, "max_relative_positions": 9},
    ),
    "deberta-v3-base": _deberta(
        like="microsoft/deberta-v3-base",
        architecture="DebertaV2ForMaskedLM",
        config={**CONFIG, "legacy": False},
        full=True,
    ),
    "deberta-v2-xlarge": _deberta(
        like="microsoft/deberta-v2-xlarge",
        architecture="DebertaV2ForMaskedLM",
        config=V2,
        tiny={**TINY, "attention_head_size": 12},
    ),
    "deberta-v2-bare": _deberta(architecture="DebertaV2Model", config={**CONFIG, **VARIANT}, tiny={**TINY, **VARIANT}),
    "DeBERTa-v3-base-mnli-fever-anli": _deberta(
        like="MoritzLaurer/DeBERTa-v3-base-mnli-fever-anli",
        architecture="DebertaV2ForSequenceClassification",
        config={**CONFIG, **labels("entailment", "neutral", "contradiction")},
        dtype="F16",
    ),
    "deberta-v3-ner": _deberta(
        architecture="DebertaV2ForTokenClassification", config={**CONFIG, **labels(count=9)}, format="sharded"
    ),
    "deberta-v3-squad2": _deberta(architecture="DebertaV2ForQuestionAnswering"),
    "deberta-v3-swag": _deberta(architecture="DebertaV2ForMultipleChoice"),
}
