"""BART and Marian checkpoints: models that write texts about texts, and a classifier."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .common import Spec, labels

_LAYERS = {f"{side}_layers": 12 for side in ("encoder", "decoder")}
_LAYERS |= {f"{side}_attention_heads": 16 for side in ("encoder", "decoder")}
_LAYERS |= {f"{side}_ffn_dim": 4096 for side in ("encoder", "decoder")}
_BART = {
    **_LAYERS,
    "vocab_size": 50265,
    "d_model": 1024,
    "max_position_embeddings": 1024,
    "activation_function": "gelu",
}
_BART |= {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2, "dropout": 0.1}
_BART |= {"is_encoder_decoder": True, "scale_embedding": False, "normalize_before": False, "normalize_embedding": True}
_BART |= {"add_final_layer_norm": False, "init_std": 0.02, "forced_eos_token_id": None, "num_hidden_layers": 12}
_MARIAN = {**_BART, "vocab_size": 58101, "d_model": 512, "max_position_embeddings": 512, "activation_function": "swish"}
_MARIAN |= {"num_hidden_layers": 6, "encoder_layers": 6, "decoder_layers": 6}
_MARIAN |= {"encoder_attention_heads": 8, "decoder_attention_heads": 8}
_MARIAN |= {"encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048, "scale_embedding": True, "normalize_embedding": False}
_MARIAN |= {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 58100, "decoder_start_token_id": 58100}
_TINY = {"vocab_size": 500, "d_model": 48, "max_position_embeddings": 40, "num_hidden_layers": 2}
_TINY |= {f"{side}_layers": 2 for side in ("encoder", "decoder")}
_TINY |= {"encoder_attention_heads": 2, "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 72}
_TINY_MARIAN = {**_TINY, "eos_token_id": 1, "pad_token_id": 0, "decoder_start_token_id": 0}
_DECODER_ALONE = {**_BART, "is_decoder": True, "is_encoder_decoder": False}


@dataclass(frozen=True, kw_only=True)
class BartSpec(Spec):
    def unread_tensors(self, config: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
        """The old version number of each side, and the positions that transformers writes, and old Marians lack."""
        yield from super().unread_tensors(config, names)
        if self.model_type == "pegasus" or (self.model_type == "marian" and not self.full):
            size, D = config["max_position_embeddings"], config["d_model"]
            turns = np.arange(size)[:, None] / 10000 ** (np.arange(0, D, 2) / D)
            for layer in (name for name in names if name.endswith("layers.0.fc1.weight")):
                table = np.concatenate([np.sin(turns), np.cos(turns)], 1).astype(np.float32)
                yield layer.replace("layers.0.fc1", "embed_positions"), table
        if self.format == "bin":
            yield from ((f"model.{side}.version", np.array([3.0], np.float32)) for side in ("encoder", "decoder"))


_bart = partial(BartSpec, model_type="bart", tokenizer="bpe", config=_BART, tiny=_TINY)
# Whose positions are computed, and random ones would be read: `unread_tensors` has the right ones.
_marian = partial(
    BartSpec,
    model_type="marian",
    tokenizer="unigram",
    config=_MARIAN,
    tiny=_TINY_MARIAN,
    absent=("embed_positions.weight",),
)

SPECS: dict[str, Spec] = {
    "bart-large-cnn": _bart(
        like="facebook/bart-large-cnn", architecture="BartForConditionalGeneration", full=True, format="bin"
    ),
    "bart-large-mnli": _bart(
        like="facebook/bart-large-mnli",
        architecture="BartForSequenceClassification",
        config={**_BART, **labels("contradiction", "neutral", "entailment")},
    ),
    "bart-base": _bart(like="facebook/bart-base", architecture="BartModel"),
    "bart-squad2": _bart(like="save_pretrained", architecture="BartForQuestionAnswering", dtype="F16"),
    "bart-decoder": _bart(like="save_pretrained", architecture="BartForCausalLM", config=_DECODER_ALONE),
    "opus-mt-en-de": _marian(
        like="Helsinki-NLP/opus-mt-en-de",
        architecture="MarianMTModel",
        full=True,
    ),
    "marian-bare": _marian(
        like="save_pretrained",
        architecture="MarianModel",
    ),
    "marian-decoder": _marian(
        like="save_pretrained",
        architecture="MarianForCausalLM",
        config={**_MARIAN, "is_decoder": True, "is_encoder_decoder": False},
    ),
}
