"""MPNet checkpoints, and the sentence encoders made of them."""

from __future__ import annotations

from functools import partial

from .common import Spec, labels

CONFIG = {"vocab_size": 30527, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
CONFIG |= {"intermediate_size": 3072, "hidden_act": "gelu", "max_position_embeddings": 514, "layer_norm_eps": 1e-5}
CONFIG |= {"relative_attention_num_buckets": 32, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
TINY = {"vocab_size": 900, "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4}
TINY |= {"intermediate_size": 72, "max_position_embeddings": 66}

_mpnet = partial(Spec, model_type="mpnet", config=CONFIG, tiny=TINY, tokenizer="bpe, named", reserved=2)

SPECS: dict[str, Spec] = {
    "all-mpnet-base-v2": _mpnet(
        like="sentence-transformers/all-mpnet-base-v2",
        architecture="MPNetModel",
        pooler=True,
        pooling="mean",
        full=True,
    ),
    "mpnet-base": _mpnet(like="microsoft/mpnet-base", architecture="MPNetForMaskedLM", format="bin"),
    "mpnet-classifier": _mpnet(
        like="save_pretrained", architecture="MPNetForSequenceClassification", config={**CONFIG, **labels(count=3)}
    ),
    "mpnet-ner": _mpnet(
        like="save_pretrained", architecture="MPNetForTokenClassification", config={**CONFIG, **labels(count=9)}
    ),
    "mpnet-squad2": _mpnet(like="save_pretrained", architecture="MPNetForQuestionAnswering", dtype="F16"),
    "mpnet-swag": _mpnet(like="save_pretrained", architecture="MPNetForMultipleChoice", pooler=True),
}
