"""BERT, RoBERTa and XLM-R checkpoints."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .common import Spec, labels


@dataclass(frozen=True, kw_only=True)
class TextSpec(Spec):
    """position_ids: whether the file has a buffer of old versions.  gamma_beta: whether norms have gamma and beta."""

    position_ids: bool = False
    gamma_beta: bool = False

    def file_name(self, name: str) -> str:
        if self.gamma_beta:
            return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        return name

    def unread_tensors(self, config: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
        if self.position_ids:
            yield f"{self.prefix}embeddings.position_ids", np.arange(config["max_position_embeddings"])[None]


BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
_COMMON = {**BASE, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
_COMMON |= {"initializer_range": 0.02, "use_cache": True, "transformers_version": "4.30.0"}
_BERT = {**_COMMON, "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2, "pad_token_id": 0}
_BERT |= {"layer_norm_eps": 1e-12, "position_embedding_type": "absolute"}
_ROBERTA = {
    **_COMMON,
    "vocab_size": 50265,
    "max_position_embeddings": 514,
    "type_vocab_size": 1,
    "layer_norm_eps": 1e-5,
}
_ROBERTA |= {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
TINY = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 72}
_BERT_TINY = {**TINY, "vocab_size": 900, "max_position_embeddings": 64}
_ROBERTA_TINY = {**_BERT_TINY, "max_position_embeddings": 66}
_MINI = {"hidden_size": 384, "intermediate_size": 1536}


def _text(like: str, head: str, config: Mapping[str, Any] | None = None, **options: Any) -> TextSpec:
    """config: changes of `base`."""
    base, prefix = options.pop("base"), options.pop("prefix")
    return TextSpec(like=like, architecture=prefix + head, config={**base, **(config or {})}, **options)


_bert = partial(_text, model_type="bert", prefix="Bert", base=_BERT, tiny=_BERT_TINY, tokenizer="wordpiece")
_roberta = partial(_text, model_type="roberta", prefix="Roberta", base=_ROBERTA, tiny=_ROBERTA_TINY, tokenizer="bpe")
_roberta = partial(_roberta, reserved=2)
_xlmr = partial(_roberta, model_type="xlm-roberta", prefix="XLMRoberta", tokenizer="sentencepiece")
_xlmr = partial(_xlmr, base={**_ROBERTA, "vocab_size": 250002})
_prenorm = partial(_roberta, model_type="roberta-prelayernorm", prefix="RobertaPreLayerNorm")
_camembert = partial(_roberta, model_type="camembert", prefix="Camembert", tokenizer="sentencepiece")
_camembert = partial(_camembert, base={**_ROBERTA, "vocab_size": 32005, "bos_token_id": 5, "eos_token_id": 6})

_PRETRAINING_HEADS = {"also": ("ForPreTraining",), "pooler": True, "gamma_beta": True}
_MINILM = {**_MINI, "num_hidden_layers": 6}
_LEGACY = {"pooler": True, "position_ids": True}
_DECODER = {"is_decoder": True, "bos_token_id": 0, "eos_token_id": 2}

SPECS: dict[str, TextSpec] = {
    "bert-base-uncased": _bert("google-bert/bert-base-uncased", "ForMaskedLM", **_PRETRAINING_HEADS, full=True),
    "bert-pretraining": _bert("google-bert/bert-base-uncased", "ForPreTraining", **_PRETRAINING_HEADS),
    "bert-next-sentence": _bert("google-bert/bert-base-uncased", "ForNextSentencePrediction", **_PRETRAINING_HEADS),
    "bert-untied": _bert(
        "save_pretrained", "ForMaskedLM", {"tie_word_embeddings": False}, untied=True, format="sharded"
    ),
    "bert-own-decoder": _bert("save_pretrained", "ForMaskedLM", untied=True, dtype="F16"),
    "all-MiniLM-L6-v2": _bert(
        "sentence-transformers/all-MiniLM-L6-v2",
        "Model",
        _MINILM,
        tokenizer="wordpiece, json",
        pooling="mean",
        **_LEGACY,
    ),
    "bge-small-en": _bert("BAAI/bge-small-en-v1.5", "Model", _MINI, pooling="cls", format="bin", **_LEGACY),
    "multilingual-e5-small": _bert(
        "intfloat/multilingual-e5-small",
        "Model",
        {**_MINI, "vocab_size": 250037},
        tokenizer="sentencepiece",
        pooling="mean",
        **_LEGACY,
    ),
    "ms-marco-MiniLM-L6-v2": _bert(
        "cross-encoder/ms-marco-MiniLM-L6-v2", "ForSequenceClassification", {**_MINILM, **labels(count=1)}, **_LEGACY
    ),
    "bert-emotion": _bert(
        "save_pretrained",
        "ForSequenceClassification",
        {**labels(count=6), "hidden_act": "gelu_new"},
        pooler=True,
        format="stream",
    ),
    "bert-base-NER": _bert(
        "dslim/bert-base-NER",
        "ForTokenClassification",
        {"vocab_size": 28996, **labels(count=9)},
        tokenizer="wordpiece, cased",
        **_LEGACY,
    ),
    "bert-base-squad2": _bert(
        "deepset/bert-base-cased-squad2", "ForQuestionAnswering", tokenizer="wordpiece, cased", dtype="BF16"
    ),
    "bert-swag": _bert("save_pretrained", "ForMultipleChoice", pooler=True),
    "bert-decoder": _bert("save_pretrained", "LMHeadModel", _DECODER),
    "bert-cross-decoder": _bert("save_pretrained", "LMHeadModel", {**_DECODER, "add_cross_attention": True}),
    "roberta-base": _roberta("FacebookAI/roberta-base", "ForMaskedLM", position_ids=True, full=True),
    "roberta-bare": _roberta("save_pretrained", "Model", pooler=True, format="sharded"),
    "twitter-roberta-base-sentiment": _roberta(
        "cardiffnlp/twitter-roberta-base-sentiment",
        "ForSequenceClassification",
        labels(count=3),
        format="bin",
        **_LEGACY,
    ),
    "roberta-ner": _roberta("save_pretrained", "ForTokenClassification", labels(count=9)),
    "roberta-base-squad2": _roberta("deepset/roberta-base-squad2", "ForQuestionAnswering"),
    "roberta-swag": _roberta("save_pretrained", "ForMultipleChoice", pooler=True),
    "roberta-decoder": _roberta("save_pretrained", "ForCausalLM", _DECODER),
    "efficient_mlm_m0.40": _prenorm("andreasmadsen/efficient_mlm_m0.40", "ForMaskedLM", full=True),
    "prelayernorm-bare": _prenorm("save_pretrained", "Model", pooler=True),
    "prelayernorm-classifier": _prenorm("save_pretrained", "ForSequenceClassification", labels(count=3), dtype="F16"),
    "xlm-roberta-base": _xlmr("FacebookAI/xlm-roberta-base", "ForMaskedLM", pooler=True, full=True),
    "bge-m3": _xlmr(
        "BAAI/bge-m3", "Model", {"max_position_embeddings": 8194}, pooler=True, format="bin", pooling="cls"
    ),
    "bge-reranker-base": _xlmr("BAAI/bge-reranker-base", "ForSequenceClassification", labels(count=1)),
    "xlm-roberta-ner": _xlmr("save_pretrained", "ForTokenClassification", labels(count=9), dtype="BF16"),
    "xlm-roberta-squad2": _xlmr("save_pretrained", "ForQuestionAnswering", format="sharded"),
    "xlm-roberta-swag": _xlmr("save_pretrained", "ForMultipleChoice", pooler=True),
    **{
        f"camembert-{name}": _camembert(like, head, **more)
        for name, (like, head, more) in {
            "base": ("almanach/camembert-base", "ForMaskedLM", {"full": True}),
            "bare": ("save_pretrained", "Model", {"pooler": True, "pooling": "mean"}),
            "classifier": ("save_pretrained", "ForSequenceClassification", {"config": labels(count=3)}),
            "ner": ("Jean-Baptiste/camembert-ner", "ForTokenClassification", {"config": labels(count=5)}),
            "squad": ("save_pretrained", "ForQuestionAnswering", {}),
            "swag": ("save_pretrained", "ForMultipleChoice", {"pooler": True}),
            "decoder": ("save_pretrained", "ForCausalLM", {"config": _DECODER}),
        }.items()
    },
    "xlm-roberta-decoder": _xlmr("save_pretrained", "ForCausalLM", _DECODER),
}
