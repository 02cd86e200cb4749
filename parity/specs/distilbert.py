"""DistilBERT checkpoints."""

from __future__ import annotations

from functools import partial

from .common import Spec, labels

CONFIG = {"vocab_size": 30522, "dim": 768, "n_layers": 6, "n_heads": 12, "hidden_dim": 3072, "activation": "gelu"}
CONFIG |= {"max_position_embeddings": 512, "pad_token_id": 0, "sinusoidal_pos_embds": False, "dropout": 0.1}
CONFIG |= {"attention_dropout": 0.1, "qa_dropout": 0.1, "seq_classif_dropout": 0.2, "tie_weights_": True}
TINY = {"vocab_size": 900, "dim": 48, "n_layers": 3, "n_heads": 4, "hidden_dim": 72, "max_position_embeddings": 64}

_distilbert = partial(Spec, model_type="distilbert", config=CONFIG, tiny=TINY, tokenizer="wordpiece")

SPECS: dict[str, Spec] = {
    "distilbert-base-uncased": _distilbert(
        like="distilbert/distilbert-base-uncased", architecture="DistilBertForMaskedLM", full=True
    ),
    "distilbert-bare": _distilbert(like="save_pretrained", architecture="DistilBertModel", format="sharded"),
    "distilbert-base-uncased-finetuned-sst-2-english": _distilbert(
        like="distilbert/distilbert-base-uncased-finetuned-sst-2-english",
        architecture="DistilBertForSequenceClassification",
        config={**CONFIG, **labels("NEGATIVE", "POSITIVE")},
        format="bin",
    ),
    "distilbert-ner": _distilbert(
        like="save_pretrained", architecture="DistilBertForTokenClassification", config={**CONFIG, **labels(count=9)}
    ),
    "distilbert-base-cased-distilled-squad": _distilbert(
        like="distilbert/distilbert-base-cased-distilled-squad",
        architecture="DistilBertForQuestionAnswering",
        dtype="F16",
    ),
    "distilbert-swag": _distilbert(like="save_pretrained", architecture="DistilBertForMultipleChoice"),
}
