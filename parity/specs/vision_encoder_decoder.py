"""Donut checkpoints: a Swin under `encoder.`, mBART's decoder under `decoder.`, and the Swin alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .common import labels
from .swin import index_tensors
from .trocr import TrOCRSpec

_SWIN = {"image_size": [1280, 960], "patch_size": 4, "num_channels": 3, "embed_dim": 128}
_SWIN |= {"depths": [2, 2, 14, 2], "num_heads": [4, 8, 16, 32], "window_size": 10, "mlp_ratio": 4.0, "qkv_bias": True}
_SWIN |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "drop_path_rate": 0.1, "hidden_act": "gelu"}
_SWIN |= {"use_absolute_embeddings": False, "layer_norm_eps": 1e-5, "hidden_size": 1024, "num_layers": 4}
_SWIN |= {"initializer_range": 0.02, "path_norm": True}
# Windows of 4 patches are shifted in both stages, of 12 x 9 patches and of 6 x 5.
_TINY_SWIN = {**_SWIN, "image_size": [48, 36], "embed_dim": 24, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}
_TINY_SWIN |= {"mlp_ratio": 2.0, "hidden_size": 48, "num_layers": 2}
_MBART = {"model_type": "mbart", "is_decoder": True, "add_cross_attention": True, "is_encoder_decoder": False}
_MBART |= {"vocab_size": 57580, "d_model": 1024, "max_position_embeddings": 768, "scale_embedding": True}
_MBART |= {"add_final_layer_norm": True, "activation_function": "gelu", "encoder_layers": 12, "decoder_layers": 4}
_MBART |= {"encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096, "dropout": 0.1, "attention_dropout": 0.0}
_MBART |= {"encoder_attention_heads": 16, "decoder_attention_heads": 16, "activation_dropout": 0.0}
_MBART |= {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 57579, "use_cache": True}
_MBART |= {"hidden_size": 1024, "num_hidden_layers": 12, "forced_eos_token_id": 2, "cross_attention_hidden_size": None}
_TINY_MBART = {**_MBART, "vocab_size": 700, "d_model": 48, "hidden_size": 48, "max_position_embeddings": 64}
_TINY_MBART |= {"decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 72, "decoder_start_token_id": 699}
_PAGES = {"image_processor_type": "DonutImageProcessor", "do_align_long_axis": False, "do_normalize": True}
_PAGES |= {"do_pad": True, "do_resize": True, "do_thumbnail": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
_PAGES |= {"resample": 2, "size": {"height": 1280, "width": 960}, "processor_class": "DonutProcessor"}
_OUTER = {"is_encoder_decoder": True, "tie_word_embeddings": False, "transformers_version": "4.22.0.dev0"}


@dataclass(frozen=True, kw_only=True)
class DonutSpec(TrOCRSpec):
    """The files have the indices of Swin's relative positions."""

    def unread_tensors(self, config: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
        yield from index_tensors(config.get("encoder", config)["window_size"], names)


def _donut(like: str, decoder: dict[str, Any], tiny: dict[str, Any], **more: Any) -> DonutSpec:
    return DonutSpec(
        like=like,
        model_type="vision-encoder-decoder",
        architecture="VisionEncoderDecoderModel",
        config={**_OUTER, "encoder": {"model_type": "donut-swin", **_SWIN}, "decoder": {**_MBART, **decoder}},
        tiny={"encoder": {"model_type": "donut-swin", **_TINY_SWIN}, "decoder": {**_TINY_MBART, **tiny}},
        tokenizer="unigram",
        processor=_PAGES,
        **more,
    )


_encoder: Any = {"like": "save_pretrained", "model_type": "donut-swin", "processor": _PAGES}

SPECS: dict[str, TrOCRSpec] = {
    "donut-base-finetuned-cord-v2": _donut(
        "naver-clova-ix/donut-base-finetuned-cord-v2", {}, {}, format="bin", full=True
    ),
    # A layer projects the encoder's states, and the head has a matrix of its own.
    "donut-projected": _donut(
        "save_pretrained",
        {"d_model": 512, "tie_word_embeddings": False, "scale_embedding": False},
        {"d_model": 32, "tie_word_embeddings": False, "scale_embedding": False},
    ),
    "donut-encoder": DonutSpec(architecture="DonutSwinModel", config=_SWIN, tiny=_TINY_SWIN, **_encoder),
    "donut-classes": DonutSpec(
        architecture="DonutSwinForImageClassification",
        config={**_SWIN, "qkv_bias": False, **labels(count=16)},
        tiny={**_TINY_SWIN, **labels(count=7)},
        **_encoder,
    ),
}
