"""TrOCR checkpoints: an image's encoder under `encoder.`, the decoder under `decoder.`, and the decoder alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import vision
from .common import Size, Spec


@dataclass(frozen=True)
class TrOCRSpec(Spec):
    """encoder, decoder: what their configs say besides the families' values.

    tokenizer: a key of vocabularies.WRITERS.  processor: what preprocessor_config.json says, in full size.
    float_tensor: whether the file has the buffer of old versions.
    """

    encoder: Mapping[str, Any] = field(default_factory=dict)
    decoder: Mapping[str, Any] = field(default_factory=dict)
    tokenizer: str = "bpe, named"
    processor: Mapping[str, Any] = field(default_factory=dict)
    float_tensor: bool = False


DECODER = {
    "model_type": "trocr",
    "activation_dropout": 0.0,
    "activation_function": "gelu",
    "add_cross_attention": True,
    "attention_dropout": 0.0,
    "bos_token_id": 0,
    "classifier_dropout": 0.0,
    "cross_attention_hidden_size": None,
    "d_model": 1024,
    "decoder_attention_heads": 16,
    "decoder_ffn_dim": 4096,
    "decoder_layerdrop": 0.0,
    "decoder_layers": 12,
    "decoder_start_token_id": 2,
    "dropout": 0.1,
    "eos_token_id": 2,
    "init_std": 0.02,
    "is_decoder": True,
    "layernorm_embedding": True,
    "max_position_embeddings": 512,
    "pad_token_id": 1,
    "scale_embedding": False,
    "tie_word_embeddings": True,
    "use_cache": False,
    "use_learned_position_embeddings": True,
    "vocab_size": 50265,
}
TINY = {
    "d_model": 48,
    "decoder_attention_heads": 4,
    "decoder_ffn_dim": 72,
    "decoder_layers": 2,
    "max_position_embeddings": 64,
    "vocab_size": 700,
}
GENERATION = {
    "_from_model_config": True,
    "bos_token_id": 0,
    "decoder_start_token_id": 2,
    "eos_token_id": 2,
    "pad_token_id": 1,
    "transformers_version": "4.27.0.dev0",
    "use_cache": False,
}
_IMAGES = {
    "do_normalize": True,
    "do_resize": True,
    "feature_extractor_type": "ViTFeatureExtractor",
    "image_mean": [0.5] * 3,
    "image_std": [0.5] * 3,
    "processor_class": "TrOCRProcessor",
    "resample": 2,
    "size": 384,
}
_SMALL_IMAGES = {
    **_IMAGES,
    "crop_size": 224,
    "do_center_crop": False,
    "feature_extractor_type": "DeiTFeatureExtractor",
    "resample": 3,
}
_BASE = {"model_type": "vit", "image_size": 384, "qkv_bias": False}
_LARGE = {**_BASE, "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
_SMALL = {
    "model_type": "deit",
    "image_size": 384,
    "hidden_size": 384,
    "num_attention_heads": 6,
    "intermediate_size": 1536,
}
_SINUSOIDAL = {
    "activation_function": "relu",
    "layernorm_embedding": False,
    "max_position_embeddings": 1024,
    "scale_embedding": True,
    "tie_word_embeddings": False,
    "use_learned_position_embeddings": False,
}


def _reader(like: str, encoder: Mapping[str, Any], decoder: Mapping[str, Any], **more: Any) -> TrOCRSpec:
    fixed = ("vision-encoder-decoder", "VisionEncoderDecoderModel")
    return TrOCRSpec(like, *fixed, encoder=encoder, decoder=decoder, **{"processor": _IMAGES, **more})


SPECS: dict[str, TrOCRSpec] = {
    "trocr-small-printed": _reader(
        "microsoft/trocr-small-printed",
        _SMALL,
        {
            "activation_function": "relu",
            "cross_attention_hidden_size": 384,
            "d_model": 256,
            "decoder_attention_heads": 8,
            "decoder_ffn_dim": 1024,
            "decoder_layers": 6,
            "scale_embedding": True,
            "tie_word_embeddings": False,
            "vocab_size": 64044,
        },
        pooler=True,
        format="bin",
        tokenizer="sentencepiece",
        processor=_SMALL_IMAGES,
    ),
    "trocr-base-handwritten": _reader("microsoft/trocr-base-handwritten", _BASE, {"cross_attention_hidden_size": 768}),
    "trocr-base-stage1": _reader(
        "microsoft/trocr-base-stage1",
        _BASE,
        {**_SINUSOIDAL, "cross_attention_hidden_size": 768},
        format="bin",
        float_tensor=True,
    ),
    "trocr-large-handwritten": _reader(
        "microsoft/trocr-large-handwritten", _LARGE, {"cross_attention_hidden_size": 1024}, format="bin"
    ),
    "trocr-large-printed": _reader(
        "microsoft/trocr-large-printed",
        _LARGE,
        {**_SINUSOIDAL, "cross_attention_hidden_size": 1024},
        float_tensor=True,
    ),
    "trocr-beit": _reader(
        "save_pretrained",
        {"model_type": "beit", "image_size": 384, "use_relative_position_bias": True},
        {"layernorm_embedding": False},
        pooler=True,
    ),
    "trocr-decoder": TrOCRSpec("save_pretrained", "trocr", "TrOCRForCausalLM"),
    "trocr-decoder-sinusoidal": TrOCRSpec(
        "save_pretrained",
        "trocr",
        "TrOCRForCausalLM",
        decoder={**_SINUSOIDAL, "activation_function": "gelu_new", "cross_attention_hidden_size": 56},
    ),
}
FULL = ("trocr-base-handwritten",)


def config_of(spec: TrOCRSpec, size: Size) -> dict[str, Any]:
    decoder = {**DECODER, **spec.decoder, **(TINY if size == "tiny" else {})}
    head = {"architectures": [spec.architecture]}
    if spec.model_type == "trocr":
        return {**head, **decoder, "transformers_version": "4.30.0"}
    kind = spec.encoder["model_type"]
    encoder = {**vision.COMMON, **vision.FAMILIES[kind], **spec.encoder}
    if size == "tiny":
        encoder |= vision.TINY
        encoder.pop("out_indices", None)
        if decoder["cross_attention_hidden_size"] is not None:
            decoder["cross_attention_hidden_size"] = encoder["hidden_size"]
        if kind == "beit":  # so that there is something to project
            encoder |= {"hidden_size": 32}
    outer = {"model_type": spec.model_type, "is_encoder_decoder": True, "tie_word_embeddings": False}
    return {**head, **outer, "encoder": encoder, "decoder": decoder, "transformers_version": "4.30.0"}


def processor_of(spec: TrOCRSpec, config: Mapping[str, Any]) -> dict[str, Any]:
    """The content of preprocessor_config.json."""
    return {**spec.processor, "size": config["encoder"]["image_size"]}
