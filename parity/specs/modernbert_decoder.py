"""Checkpoints of ModernBERT's decoder."""

from __future__ import annotations

from functools import partial

from .common import Spec, labels
from .modernbert import BIASES, CONFIG, TINY

_decoder = partial(
    Spec, model_type="modernbert-decoder", config=CONFIG, tiny={**TINY, "eos_token_id": 4, "bos_token_id": 3}
)

SPECS: dict[str, Spec] = {
    "ettin-decoder-150m": _decoder(
        like="jhu-clsp/ettin-decoder-150m", architecture="ModernBertDecoderForCausalLM", full=True
    ),
    "modernbert-decoder-biases": _decoder(
        like="save_pretrained",
        architecture="ModernBertDecoderForCausalLM",
        config={**CONFIG, **BIASES, "tie_word_embeddings": False, "decoder_bias": False},
    ),
    "modernbert-decoder-bare": _decoder(like="save_pretrained", architecture="ModernBertDecoderModel"),
    "modernbert-decoder-classifier": _decoder(
        like="save_pretrained",
        architecture="ModernBertDecoderForSequenceClassification",
        config={**CONFIG, **labels(count=3)},
    ),
}
