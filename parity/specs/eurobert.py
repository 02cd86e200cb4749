"""EuroBERT checkpoints."""

from __future__ import annotations

from functools import partial

from .common import Spec, labels
from .like_llama import TINY

_CONFIG = {"vocab_size": 128256, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12}
_CONFIG |= {"num_attention_heads": 12, "num_key_value_heads": 12, "max_position_embeddings": 8192}
_CONFIG |= {"rms_norm_eps": 1e-5, "rope_theta": 250000, "hidden_act": "silu", "attention_bias": False}
_CONFIG |= {"mlp_bias": False, "bos_token_id": 128000, "eos_token_id": 128001, "pad_token_id": 128001}
_CONFIG |= {"mask_token_id": 128002, "tie_word_embeddings": False, "clf_pooling": "late"}
_TINY = {**TINY, "num_hidden_layers": 3, "num_key_value_heads": 4, "pad_token_id": 0, "mask_token_id": 4}
_TINY |= {"vocab_size": 900, "max_position_embeddings": 64}

_eurobert = partial(Spec, model_type="eurobert", config=_CONFIG, tiny=_TINY, tokenizer="wordpiece, json")

SPECS: dict[str, Spec] = {
    "EuroBERT-210m": _eurobert(
        like="EuroBERT/EuroBERT-210m", architecture="EuroBertForMaskedLM", dtype="BF16", full=True
    ),
    "eurobert-bare": _eurobert(like="save_pretrained", architecture="EuroBertModel"),
    "eurobert-classifier": _eurobert(
        like="save_pretrained",
        architecture="EuroBertForSequenceClassification",
        config={**_CONFIG, **labels(count=3)},
    ),
    "eurobert-tagger": _eurobert(
        like="save_pretrained",
        architecture="EuroBertForTokenClassification",
        config={**_CONFIG, **labels(count=9), "classifier_pooling": "mean", "clf_pooling": "mean"},
    ),
}
