"""Text: BERT, RoBERTa and XLM-R checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .common import Size, Spec, labels


@dataclass(frozen=True)
class TextSpec(Spec):
    """pooling: for a sentence encoder, how 1_Pooling/config.json wants tokens summed up."""

    position_ids: bool = False
    gamma_beta: bool = False
    tokenizer: str = "wordpiece"
    pooling: str | None = None


FAMILIES: dict[str, dict[str, Any]] = {
    "bert": {
        "vocab_size": 30522,
        "max_position_embeddings": 512,
        "type_vocab_size": 2,
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
        "position_embedding_type": "absolute",
    },
    "roberta": {
        "vocab_size": 50265,
        "max_position_embeddings": 514,
        "type_vocab_size": 1,
        "layer_norm_eps": 1e-5,
        "pad_token_id": 1,
        "bos_token_id": 0,
        "eos_token_id": 2,
    },
}
FAMILIES["xlm-roberta"] = {**FAMILIES["roberta"], "vocab_size": 250002}
COMMON = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "initializer_range": 0.02,
    "use_cache": True,
    "transformers_version": "4.30.0",
}
TINY = {
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 72,
    "vocab_size": 900,
}
TINY_TOKENS = 64
MINI = {"hidden_size": 384, "intermediate_size": 1536}


def _bert(like: str, cls: str, **more: Any) -> TextSpec:
    return TextSpec(like, "bert", cls, **more)


def _roberta(like: str, cls: str, **more: Any) -> TextSpec:
    return TextSpec(like, "roberta", cls, **{"tokenizer": "bpe", **more})


def _xlmr(like: str, cls: str, **more: Any) -> TextSpec:
    return TextSpec(like, "xlm-roberta", cls, **{"tokenizer": "sentencepiece", **more})


_PRETRAINED = {"also": ("ForPreTraining",), "pooler": True, "gamma_beta": True}
_MINILM = {"pooler": True, "position_ids": True, "config": {**MINI, "num_hidden_layers": 6}}
_DECODER = {"is_decoder": True, "bos_token_id": 0, "eos_token_id": 2}

SPECS: dict[str, TextSpec] = {
    "bert-base-uncased": _bert("google-bert/bert-base-uncased", "BertForMaskedLM", **_PRETRAINED),
    "bert-pretraining": _bert("google-bert/bert-base-uncased", "BertForPreTraining", **_PRETRAINED),
    "bert-next-sentence": _bert("google-bert/bert-base-uncased", "BertForNextSentencePrediction", **_PRETRAINED),
    "bert-untied": _bert(
        "save_pretrained", "BertForMaskedLM", untied=True, config={"tie_word_embeddings": False}, format="sharded"
    ),
    "bert-own-decoder": _bert("save_pretrained", "BertForMaskedLM", untied=True, dtype="F16"),
    "all-MiniLM-L6-v2": _bert(
        "sentence-transformers/all-MiniLM-L6-v2",
        "BertModel",
        tokenizer="wordpiece, json",
        pooling="mean",
        **_MINILM,
    ),
    "bge-small-en": _bert(
        "BAAI/bge-small-en-v1.5",
        "BertModel",
        pooler=True,
        position_ids=True,
        config=MINI,
        pooling="cls",
        format="bin",
    ),
    "multilingual-e5-small": _bert(
        "intfloat/multilingual-e5-small",
        "BertModel",
        pooler=True,
        position_ids=True,
        config={**MINI, "vocab_size": 250037},
        tokenizer="sentencepiece",
        pooling="mean",
    ),
    "ms-marco-MiniLM-L6-v2": _bert(
        "cross-encoder/ms-marco-MiniLM-L6-v2",
        "BertForSequenceClassification",
        **{**_MINILM, "config": {**_MINILM["config"], **labels(1)}},
    ),
    "bert-emotion": _bert(
        "save_pretrained",
        "BertForSequenceClassification",
        pooler=True,
        config={**labels(6), "hidden_act": "gelu_new"},
        format="stream",
    ),
    "bert-base-NER": _bert(
        "dslim/bert-base-NER",
        "BertForTokenClassification",
        pooler=True,
        position_ids=True,
        config={"vocab_size": 28996, **labels(9)},
        tokenizer="wordpiece, cased",
    ),
    "bert-base-squad2": _bert(
        "deepset/bert-base-cased-squad2", "BertForQuestionAnswering", tokenizer="wordpiece, cased", dtype="BF16"
    ),
    "bert-swag": _bert("save_pretrained", "BertForMultipleChoice", pooler=True),
    "bert-decoder": _bert("save_pretrained", "BertLMHeadModel", config=_DECODER),
    "bert-cross-decoder": _bert("save_pretrained", "BertLMHeadModel", config={**_DECODER, "add_cross_attention": True}),
    "roberta-base": _roberta("FacebookAI/roberta-base", "RobertaForMaskedLM", position_ids=True),
    "roberta-bare": _roberta("save_pretrained", "RobertaModel", pooler=True, format="sharded"),
    "twitter-roberta-base-sentiment": _roberta(
        "cardiffnlp/twitter-roberta-base-sentiment",
        "RobertaForSequenceClassification",
        pooler=True,
        position_ids=True,
        config=labels(3),
        format="bin",
    ),
    "roberta-ner": _roberta("save_pretrained", "RobertaForTokenClassification", config=labels(9)),
    "roberta-base-squad2": _roberta("deepset/roberta-base-squad2", "RobertaForQuestionAnswering"),
    "roberta-swag": _roberta("save_pretrained", "RobertaForMultipleChoice", pooler=True),
    "roberta-decoder": _roberta("save_pretrained", "RobertaForCausalLM", config=_DECODER),
    "xlm-roberta-base": _xlmr("FacebookAI/xlm-roberta-base", "XLMRobertaForMaskedLM", pooler=True),
    "bge-m3": _xlmr(
        "BAAI/bge-m3",
        "XLMRobertaModel",
        pooler=True,
        config={"max_position_embeddings": 8194},
        format="bin",
        pooling="cls",
    ),
    "bge-reranker-base": _xlmr("BAAI/bge-reranker-base", "XLMRobertaForSequenceClassification", config=labels(1)),
    "xlm-roberta-ner": _xlmr("save_pretrained", "XLMRobertaForTokenClassification", config=labels(9), dtype="BF16"),
    "xlm-roberta-squad2": _xlmr("save_pretrained", "XLMRobertaForQuestionAnswering", format="sharded"),
    "xlm-roberta-swag": _xlmr("save_pretrained", "XLMRobertaForMultipleChoice", pooler=True),
    "xlm-roberta-decoder": _xlmr("save_pretrained", "XLMRobertaForCausalLM", config=_DECODER),
}
FULL = ("bert-base-uncased", "roberta-base", "xlm-roberta-base")


def config_of(spec: TextSpec, size: Size) -> dict[str, Any]:
    head = {"architectures": [spec.architecture], "model_type": spec.model_type}
    config = {**head, **COMMON, **FAMILIES[spec.model_type], **spec.config}
    if size == "tiny":
        extra = config["max_position_embeddings"] % 512  # RoBERTa has two positions more than tokens
        config |= {**TINY, "max_position_embeddings": TINY_TOKENS + extra}
    return config
