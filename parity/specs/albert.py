"""ALBERT checkpoints."""

from __future__ import annotations

from functools import partial

from .common import Spec, labels

BASE = {"vocab_size": 30000, "embedding_size": 128, "hidden_size": 768, "num_hidden_layers": 12}
BASE |= {"num_hidden_groups": 1, "inner_group_num": 1, "num_attention_heads": 12, "intermediate_size": 3072}
BASE |= {"hidden_act": "gelu_new", "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0}
BASE |= {"classifier_dropout_prob": 0.1, "max_position_embeddings": 512, "type_vocab_size": 2, "layer_norm_eps": 1e-12}
BASE |= {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
TINY = {"vocab_size": 900, "max_position_embeddings": 64, "num_hidden_layers": 4, "num_attention_heads": 4}
TINY |= {"embedding_size": 32, "hidden_size": 48, "intermediate_size": 72}

_albert = partial(Spec, model_type="albert", config=BASE, tiny=TINY, tokenizer="wordpiece, json")

SPECS: dict[str, Spec] = {
    "albert-base-v2": _albert(
        like="albert/albert-base-v2",
        architecture="AlbertForMaskedLM",
        also=("ForPreTraining",),
        pooler=True,
        full=True,
    ),
    "albert-pretraining": _albert(like="albert/albert-base-v2", architecture="AlbertForPreTraining", pooler=True),
    "paraphrase-albert-small-v2": _albert(
        like="sentence-transformers/paraphrase-albert-small-v2",
        architecture="AlbertModel",
        config={**BASE, "num_hidden_layers": 6},
        pooler=True,
        pooling="mean",
        format="bin",
    ),
    "albert-groups": _albert(
        like="save_pretrained",
        architecture="AlbertForSequenceClassification",
        config={**BASE, "num_hidden_groups": 3, "inner_group_num": 2, **labels(count=3)},
        pooler=True,
        format="sharded",
    ),
    "albert-ner": _albert(
        like="save_pretrained", architecture="AlbertForTokenClassification", config={**BASE, **labels(count=9)}
    ),
    "albert-squad2": _albert(like="save_pretrained", architecture="AlbertForQuestionAnswering", dtype="BF16"),
    "albert-swag": _albert(like="save_pretrained", architecture="AlbertForMultipleChoice", pooler=True),
}
