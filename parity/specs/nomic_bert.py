"""Nomic BERT and GTE checkpoints."""

from __future__ import annotations

from functools import partial

from .common import Spec, labels

NOMIC = {"vocab_size": 30528, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
NOMIC |= {"intermediate_size": 3072, "hidden_act": "silu", "max_position_embeddings": 2048, "type_vocab_size": 2}
NOMIC |= {"rope_parameters": {"rope_type": "default", "rope_theta": 1000.0}, "pad_token_id": 0}
GTE = {**NOMIC, "vocab_size": 250048, "hidden_act": "gelu", "max_position_embeddings": 8192, "type_vocab_size": 1}
GTE |= {"rope_parameters": {"rope_type": "linear", "rope_theta": 160000.0, "factor": 1.0671}, "pad_token_id": 1}
TINY = {"vocab_size": 900, "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4}
TINY |= {"intermediate_size": 72, "max_position_embeddings": 64}

_nomic = partial(
    Spec, model_type="nomic_bert", like="save_pretrained", config=NOMIC, tiny=TINY, tokenizer="wordpiece, json"
)
_gte = partial(Spec, model_type="gte", like="save_pretrained", config=GTE, tiny=TINY)

SPECS: dict[str, Spec] = {
    "nomic-embed-text-v1.5": _nomic(
        like="nomic-ai/nomic-embed-text-v1.5", architecture="NomicBertModel", pooling="mean", full=True
    ),
    "nomic-bert-2048": _nomic(architecture="NomicBertForMaskedLM"),
    "nomic-classifier": _nomic(
        architecture="NomicBertForSequenceClassification", config={**NOMIC, **labels(count=3)}, dtype="F16"
    ),
    "nomic-ner": _nomic(architecture="NomicBertForTokenClassification", config={**NOMIC, **labels(count=9)}),
    "gte-multilingual-base": _gte(
        like="alibaba-nlp-community/gte-multilingual-base", architecture="GteModel", dtype="F16", full=True
    ),
    "gte-en-v1.5": _gte(architecture="GteForMaskedLM", config={**GTE, "type_vocab_size": 0}),
    "gte-multilingual-reranker-base": _gte(
        architecture="GteForSequenceClassification", config={**GTE, **labels(count=1)}
    ),
    "gte-ner": _gte(architecture="GteForTokenClassification", config={**GTE, **labels(count=9)}),
}
