"""ModernBERT checkpoints, and the sentence encoders made of them."""

from __future__ import annotations

from functools import partial

from .common import Spec, labels

CONFIG = {"vocab_size": 50368, "hidden_size": 768, "intermediate_size": 1152, "num_hidden_layers": 22}
CONFIG |= {"num_attention_heads": 12, "hidden_activation": "gelu", "max_position_embeddings": 8192, "norm_eps": 1e-5}
CONFIG |= {"norm_bias": False, "global_attn_every_n_layers": 3, "global_rope_theta": 160000.0}
CONFIG |= {"local_rope_theta": 10000.0, "local_attention": 128, "classifier_pooling": "mean", "pad_token_id": 0}
CONFIG |= {"cls_token_id": 3, "sep_token_id": 4, "bos_token_id": 3, "eos_token_id": 4, "attention_bias": False}
TINY = {"vocab_size": 900, "hidden_size": 48, "intermediate_size": 72, "num_hidden_layers": 5}
TINY |= {"num_attention_heads": 4, "max_position_embeddings": 160, "local_attention": 16}
BIASES = {"norm_bias": True, "attention_bias": True, "mlp_bias": True, "classifier_bias": True}

_modernbert = partial(Spec, model_type="modernbert", config=CONFIG, tiny=TINY, tokenizer="wordpiece, json")

SPECS: dict[str, Spec] = {
    "ModernBERT-base": _modernbert(like="answerdotai/ModernBERT-base", architecture="ModernBertForMaskedLM", full=True),
    "modernbert-embed-base": _modernbert(
        like="nomic-ai/modernbert-embed-base", architecture="ModernBertModel", pooling="mean"
    ),
    "modernbert-classifier": _modernbert(
        like="save_pretrained",
        architecture="ModernBertForSequenceClassification",
        config={**CONFIG, **labels(count=3)},
    ),
    "gte-reranker-modernbert-base": _modernbert(
        like="Alibaba-NLP/gte-reranker-modernbert-base",
        architecture="ModernBertForSequenceClassification",
        config={**CONFIG, **labels(count=1), "classifier_pooling": "cls"},
        dtype="F16",
    ),
    "modernbert-ner": _modernbert(
        like="save_pretrained",
        architecture="ModernBertForTokenClassification",
        config={**CONFIG, **labels(count=9), **BIASES},
        format="sharded",
    ),
    "modernbert-squad2": _modernbert(like="save_pretrained", architecture="ModernBertForQuestionAnswering"),
    "modernbert-swag": _modernbert(
        like="save_pretrained",
        architecture="ModernBertForMultipleChoice",
        config={**CONFIG, "classifier_pooling": "cls"},
    ),
}
