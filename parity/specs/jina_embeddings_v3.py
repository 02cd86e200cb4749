"""Checkpoints of Jina embeddings v3."""

from __future__ import annotations

from functools import partial

from .common import Spec, labels

CONFIG = {"vocab_size": 250002, "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16}
CONFIG |= {"intermediate_size": 4096, "hidden_act": "gelu", "max_position_embeddings": 8194, "type_vocab_size": 1}
CONFIG |= {"layer_norm_eps": 1e-05, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
CONFIG |= {"rope_parameters": {"rope_type": "default", "rope_theta": 20000.0}}
TINY = {"vocab_size": 900, "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4}
TINY |= {"intermediate_size": 72, "max_position_embeddings": 64}

_jina = partial(
    Spec,
    model_type="jina_embeddings_v3",
    like="save_pretrained",
    config=CONFIG,
    tiny=TINY,
    tokenizer="unigram",
)

SPECS: dict[str, Spec] = {
    "jina-embeddings-v3-hf": _jina(
        like="jinaai/jina-embeddings-v3-hf",
        architecture="JinaEmbeddingsV3Model",
        pooling="mean",
        dtype="BF16",
        full=True,
    ),
    "jina-embeddings-v3-masked": _jina(architecture="JinaEmbeddingsV3ForMaskedLM"),
    "jina-embeddings-v3-classifier": _jina(
        architecture="JinaEmbeddingsV3ForSequenceClassification", config={**CONFIG, **labels(count=3)}
    ),
    "jina-embeddings-v3-ner": _jina(
        architecture="JinaEmbeddingsV3ForTokenClassification",
        config={**CONFIG, **labels(count=9)},
        tiny={**TINY, "type_vocab_size": 2},
        format="sharded",
    ),
    "jina-embeddings-v3-qa": _jina(architecture="JinaEmbeddingsV3ForQuestionAnswering", dtype="F16"),
}
