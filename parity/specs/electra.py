"""ELECTRA checkpoints: generators, discriminators, and what was trained on the latter."""

from __future__ import annotations

from functools import partial

from .common import Spec, labels

SMALL = {"vocab_size": 30522, "embedding_size": 128, "hidden_size": 256, "num_hidden_layers": 12}
SMALL |= {"num_attention_heads": 4, "intermediate_size": 1024, "hidden_act": "gelu", "max_position_embeddings": 512}
SMALL |= {"type_vocab_size": 2, "layer_norm_eps": 1e-12, "pad_token_id": 0, "position_embedding_type": "absolute"}
BASE = {**SMALL, "embedding_size": 768, "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}
TINY = {"vocab_size": 900, "max_position_embeddings": 64, "num_hidden_layers": 3, "num_attention_heads": 4}
TINY |= {"embedding_size": 32, "hidden_size": 48, "intermediate_size": 72}
TINY_BASE = {**TINY, "embedding_size": 48}

_small = partial(Spec, model_type="electra", config=SMALL, tiny=TINY, tokenizer="wordpiece")

SPECS: dict[str, Spec] = {
    "electra-small-discriminator": _small(
        like="google/electra-small-discriminator", architecture="ElectraForPreTraining", full=True, format="bin"
    ),
    "electra-small-generator": _small(like="google/electra-small-generator", architecture="ElectraForMaskedLM"),
    "electra-bare": _small(like="save_pretrained", architecture="ElectraModel", config=BASE, tiny=TINY_BASE),
    "electra-classifier": _small(
        like="save_pretrained",
        architecture="ElectraForSequenceClassification",
        config={**SMALL, **labels("contradiction", "entailment", "neutral")},
    ),
    "electra-ner": _small(
        like="save_pretrained", architecture="ElectraForTokenClassification", config={**SMALL, **labels(count=9)}
    ),
    "electra-base-squad2": _small(
        like="deepset/electra-base-squad2", architecture="ElectraForQuestionAnswering", config=BASE, tiny=TINY_BASE
    ),
    "electra-swag": _small(like="save_pretrained", architecture="ElectraForMultipleChoice"),
    "electra-decoder": _small(
        like="save_pretrained",
        architecture="ElectraForCausalLM",
        config={**SMALL, "is_decoder": True, "bos_token_id": 0, "eos_token_id": 2},
    ),
}
