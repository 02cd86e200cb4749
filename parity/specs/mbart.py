"""mBART, Pegasus, M2M-100 and NLLB checkpoints: models that translate and write summaries."""

from __future__ import annotations

from functools import partial

from .bart import _BART, _DECODER_ALONE, _TINY_MARIAN, BartSpec
from .common import Spec

_NORMS = {"normalize_before": True, "normalize_embedding": True, "add_final_layer_norm": True}
_MBART = {**_BART, **_NORMS, "vocab_size": 250054, "scale_embedding": True, "activation_function": "relu"}
_MBART |= {"static_position_embeddings": False, "tokenizer_class": "MBart50Tokenizer"}
_PEGASUS = {**_BART, **_NORMS, "vocab_size": 96103, "normalize_embedding": False, "scale_embedding": True}
_PEGASUS |= {"activation_function": "relu", "encoder_layers": 16, "decoder_layers": 16, "num_hidden_layers": 16}
_PEGASUS |= {"max_position_embeddings": 512, "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
_NLLB = {**_MBART, "vocab_size": 256206, "encoder_layerdrop": 0, "decoder_layerdrop": 0}
_NLLB = {name: value for name, value in _NLLB.items() if name not in ("normalize_embedding", "tokenizer_class")}
_TINY = {**_TINY_MARIAN, "tokenizer_class": None}

_mbart = partial(Spec, model_type="mbart", tokenizer="unigram", config=_MBART, tiny=_TINY)
# Whose positions are computed, and random ones would be read: `unread_tensors` has the right ones.
_pegasus = partial(
    BartSpec,
    model_type="pegasus",
    tokenizer="unigram",
    config=_PEGASUS,
    tiny=_TINY,
    absent=("embed_positions.weight",),
)
# A text that begins with padding has other positions in steps than at once, in transformers too.
_m2m = partial(
    Spec, model_type="m2m_100", tokenizer="unigram", config=_NLLB, tiny={**_TINY, "decoder_start_token_id": 1}
)

SPECS: dict[str, Spec] = {
    "mbart-large-50-many-to-many-mmt": _mbart(
        like="facebook/mbart-large-50-many-to-many-mmt",
        architecture="MBartForConditionalGeneration",
        full=True,
    ),
    "mbart-bare": _mbart(like="save_pretrained", architecture="MBartModel", dtype="F16"),
    "mbart-decoder": _mbart(
        like="save_pretrained", architecture="MBartForCausalLM", config={**_MBART, **_DECODER_ALONE, **_NORMS}
    ),
    "pegasus-xsum": _pegasus(
        like="google/pegasus-xsum", architecture="PegasusForConditionalGeneration", format="bin", full=True
    ),
    "pegasus-bare": _pegasus(like="save_pretrained", architecture="PegasusModel"),
    "pegasus-decoder": _pegasus(
        like="save_pretrained",
        architecture="PegasusForCausalLM",
        config={**_PEGASUS, "is_decoder": True, "is_encoder_decoder": False},
    ),
    "nllb-200-distilled-600M": _m2m(
        like="facebook/nllb-200-distilled-600M", architecture="M2M100ForConditionalGeneration", full=True
    ),
    "m2m100_418M": _m2m(
        like="facebook/m2m100_418M",
        architecture="M2M100ForConditionalGeneration",
        config={**_NLLB, "vocab_size": 128112},
        format="bin",
    ),
    "m2m100-bare": _m2m(like="save_pretrained", architecture="M2M100Model"),
}
