"""TrOCR checkpoints: an image's encoder under `encoder.`, the decoder under `decoder.`, and the decoder alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from zoo.images import ImageProcessor, open_image
from zoo.images.processor import on_paper

from ..pictures import draw, page
from ..vocabularies import write_json
from . import vision
from .common import Loaded, Spec

if TYPE_CHECKING:
    from PIL import Image

LINE = (76, 52, 420, 92)  # on the page that comes with zoo: left, top, right and bottom of its title
SIZES = ((64, 256), (20, 130))  # height and width of other lines of text


@dataclass(frozen=True, kw_only=True)
class TrOCRSpec(Spec):
    """float_tensor: whether the file has the buffer of old versions."""

    float_tensor: bool = False

    def base_config(self, config: Any) -> tuple[Any, str]:
        return config.encoder, "encoder."

    def unread_tensors(self, config: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
        if self.float_tensor:
            yield "decoder.model.decoder.embed_positions._float_tensor", np.zeros(1, np.float32)

    def write_files(self, folder: Path, config: Mapping[str, Any]) -> None:
        super().write_files(folder, config)
        start = {"decoder_start_token_id": config.get("decoder", config).get("decoder_start_token_id")}
        if start["decoder_start_token_id"] is not None:
            write_json(folder / "generation_config.json", {**_GENERATION, **start})

    @staticmethod
    def pictures(config: Any, processor: ImageProcessor, seed: int) -> Sequence[Image.Image]:
        """A line of the page, and other images; as wide as the processor would pad them, where it does."""
        found = [page().crop(LINE), *(draw(*size, seed=seed) for size in SIZES)]
        if not processor.pad_line:
            return found
        height, width = processor.output_size(1, 1)
        wide = [on_paper(np.asarray(one), max(one.width, round(one.height * width / height))) for one in found]
        return [open_image(one) for one in wide]

    @staticmethod
    def load_reference(model_class: Any, folder: Path, config: Mapping[str, Any], dtype: Any) -> Loaded:
        """Version 5 makes the table of positions before it has memory for it, and leaves it empty: `weights` is none of
        the model's buffers.
        """
        model, info = Spec.load_reference(model_class, folder, config, dtype)
        for module in model.modules():
            if type(module).__name__ == "TrOCRSinusoidalPositionalEmbedding" and module.weights.is_meta:
                rows = module.weights.shape[0]
                table = module.get_embedding(rows, module.embedding_dim, module.padding_idx)
                module.weights = table.to(dtype)  # which it does for buffers alone
        return model, info


_DECODER = {"model_type": "trocr", "is_decoder": True, "add_cross_attention": True, "vocab_size": 50265}
_DECODER |= {"d_model": 1024, "decoder_layers": 12, "decoder_attention_heads": 16, "decoder_ffn_dim": 4096}
_DECODER |= {"cross_attention_hidden_size": None, "max_position_embeddings": 512, "activation_function": "gelu"}
_DECODER |= {"dropout": 0.1, "attention_dropout": 0.0, "activation_dropout": 0.0, "classifier_dropout": 0.0}
_DECODER |= {"layernorm_embedding": True, "scale_embedding": False, "tie_word_embeddings": True, "init_std": 0.02}
_DECODER |= {"use_learned_position_embeddings": True, "decoder_layerdrop": 0.0, "use_cache": False}
_DECODER |= {"decoder_start_token_id": 2, "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1}
_TINY = {"d_model": 48, "decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 72}
_TINY |= {"max_position_embeddings": 64, "vocab_size": 700}
_GENERATION = {"_from_model_config": True, "bos_token_id": 0, "decoder_start_token_id": 2, "eos_token_id": 2}
_GENERATION |= {"pad_token_id": 1, "transformers_version": "4.27.0.dev0", "use_cache": False}
_IMAGES = {"do_normalize": True, "do_resize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "resample": 2}
_IMAGES |= {"feature_extractor_type": "ViTFeatureExtractor", "processor_class": "TrOCRProcessor", "size": 384}
_SMALL_IMAGES = {**_IMAGES, "crop_size": 224, "do_center_crop": False, "resample": 3}
_SMALL_IMAGES |= {"feature_extractor_type": "DeiTFeatureExtractor"}

_VIT = {**vision.VIT, "model_type": "vit", "image_size": 384, "qkv_bias": False}
_VIT_L = {**_VIT, "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
_DEIT = {**vision.VIT, "model_type": "deit", "image_size": 384, "hidden_size": 384, "num_attention_heads": 6}
_DEIT |= {"intermediate_size": 1536}
_BEIT = {**vision.BEIT, "model_type": "beit", "image_size": 384, "use_relative_position_bias": True}
_SINUSOIDAL = {"activation_function": "relu", "layernorm_embedding": False, "max_position_embeddings": 1024}
_SINUSOIDAL |= {"scale_embedding": True, "tie_word_embeddings": False, "use_learned_position_embeddings": False}
_SMALL = {"activation_function": "relu", "cross_attention_hidden_size": 384, "d_model": 256, "vocab_size": 64044}
_SMALL |= {"decoder_layers": 6, "decoder_attention_heads": 8, "decoder_ffn_dim": 1024}
_SMALL |= {"scale_embedding": True, "tie_word_embeddings": False}


def _reader(
    like: str, encoder: Mapping[str, Any], decoder: Mapping[str, Any], size: int = 48, **more: Any
) -> TrOCRSpec:
    """size: of the encoder's states at tiny size."""
    outer = {"is_encoder_decoder": True, "tie_word_embeddings": False, "transformers_version": "4.30.0"}
    decoder = {**_DECODER, **decoder}
    small_encoder = {**encoder, **vision.TINY, "hidden_size": size}
    small_encoder.pop("out_indices", None)
    small = {**decoder, **_TINY}
    if decoder["cross_attention_hidden_size"] is not None:
        small["cross_attention_hidden_size"] = size
    return TrOCRSpec(
        like=like,
        model_type="vision-encoder-decoder",
        architecture="VisionEncoderDecoderModel",
        config={**outer, "encoder": encoder, "decoder": decoder},
        tiny={"encoder": small_encoder, "decoder": small},
        **{"tokenizer": "bpe, named", "processor": _IMAGES, "absent": ("mask_token",), **more},
    )


def _decoder(**config: Any) -> TrOCRSpec:
    return TrOCRSpec(
        like="save_pretrained",
        model_type="trocr",
        architecture="TrOCRForCausalLM",
        config={**_DECODER, "transformers_version": "4.30.0", **config},
        tiny=_TINY,
        tokenizer="bpe, named",
    )


SPECS: dict[str, TrOCRSpec] = {
    "trocr-base-handwritten": _reader(
        "microsoft/trocr-base-handwritten", _VIT, {"cross_attention_hidden_size": 768}, full=True
    ),
    "trocr-small-printed": _reader(
        "microsoft/trocr-small-printed",
        _DEIT,
        _SMALL,
        pooler=True,
        format="bin",
        tokenizer="sentencepiece",
        processor=_SMALL_IMAGES,
    ),
    "trocr-base-stage1": _reader(
        "microsoft/trocr-base-stage1",
        _VIT,
        {**_SINUSOIDAL, "cross_attention_hidden_size": 768},
        format="bin",
        float_tensor=True,
    ),
    "trocr-large-handwritten": _reader(
        "microsoft/trocr-large-handwritten", _VIT_L, {"cross_attention_hidden_size": 1024}, format="bin"
    ),
    "trocr-large-printed": _reader(
        "microsoft/trocr-large-printed", _VIT_L, {**_SINUSOIDAL, "cross_attention_hidden_size": 1024}, float_tensor=True
    ),
    "trocr-beit": _reader("save_pretrained", _BEIT, {"layernorm_embedding": False}, size=32, pooler=True),
    "trocr-decoder": _decoder(),
    "trocr-decoder-sinusoidal": _decoder(
        **{**_SINUSOIDAL, "activation_function": "gelu_new", "cross_attention_hidden_size": 56}
    ),
}
