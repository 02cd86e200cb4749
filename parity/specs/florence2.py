"""Florence-2 checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..pictures import draw
from .common import Spec

if TYPE_CHECKING:
    from PIL import Image

    from zoo.images import ImageProcessor


@dataclass(frozen=True, kw_only=True)
class Florence2Spec(Spec):
    @staticmethod
    def pictures(config: Any, processor: ImageProcessor, seed: int) -> Sequence[Image.Image]:
        return [draw(*size, seed=seed) for size in ((480, 640), (500, 333), (30, 44))]

    def processor_of(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """No field of the config says the size of images."""
        if config["vision_config"]["embed_dim"] == _VISION["embed_dim"]:
            return dict(self.processor)
        return {**self.processor, "size": {"height": 64, "width": 64}, "crop_size": {"height": 64, "width": 64}}


_VISION = {
    "model_type": "florence_vision",
    "in_channels": 3,
    "depths": [1, 1, 9, 1],
    "embed_dim": [128, 256, 512, 1024],
}
_VISION |= {"patch_size": [7, 3, 3, 3], "patch_stride": [4, 2, 2, 2], "patch_padding": [3, 1, 1, 1]}
_VISION |= {"patch_prenorm": [False, True, True, True], "num_heads": [4, 8, 16, 32], "num_groups": [4, 8, 16, 32]}
_VISION |= {"window_size": 12, "drop_path_rate": 0.1, "mlp_ratio": 4.0, "qkv_bias": True, "activation_function": "gelu"}
_VISION |= {"projection_dim": 768, "max_temporal_embeddings": 100, "max_position_embeddings": 50}
# Windows of 3 patches, which do not fill 16 x 16 and 8 x 8.
_TINY_VISION = {**_VISION, "depths": [1, 2], "embed_dim": [16, 24], "patch_size": [7, 3], "patch_stride": [4, 2]}
_TINY_VISION |= {"patch_padding": [3, 1], "patch_prenorm": [False, True], "num_heads": [2, 3], "num_groups": [4, 2]}
_TINY_VISION |= {"window_size": 3, "mlp_ratio": 2.0, "projection_dim": 32, "max_position_embeddings": 12}
_TEXT = {"model_type": "bart", "vocab_size": 51328, "d_model": 768, "encoder_layers": 6, "decoder_layers": 6}
_TEXT |= {"encoder_attention_heads": 12, "decoder_attention_heads": 12, "encoder_ffn_dim": 3072}
_TEXT |= {"decoder_ffn_dim": 3072, "max_position_embeddings": 4096, "activation_function": "gelu", "dropout": 0.1}
_TEXT |= {"attention_dropout": 0.1, "activation_dropout": 0.1, "scale_embedding": False, "is_encoder_decoder": True}
_TEXT |= {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}
_TEXT |= {"num_hidden_layers": 6, "use_cache": True}
_TINY_TEXT = {**_TEXT, "vocab_size": 700, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2}
_TINY_TEXT |= {"encoder_attention_heads": 4, "decoder_attention_heads": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 56}
_TINY_TEXT |= {"max_position_embeddings": 160, "num_hidden_layers": 2}
_IMAGES = {"image_processor_type": "CLIPImageProcessor", "do_center_crop": False, "do_convert_rgb": None}
_IMAGES |= {"do_normalize": True, "do_rescale": True, "do_resize": True, "image_mean": [0.485, 0.456, 0.406]}
_IMAGES |= {"image_std": [0.229, 0.224, 0.225], "image_seq_length": 577, "resample": 3, "rescale_factor": 1 / 255}
_IMAGES |= {"size": {"height": 768, "width": 768}, "crop_size": {"height": 768, "width": 768}}
_IMAGES |= {"processor_class": "Florence2Processor"}
_OUTER = {"image_token_id": 51289, "is_encoder_decoder": True, "tie_word_embeddings": True}

SPECS: dict[str, Spec] = {
    "Florence-2-base": Florence2Spec(
        like="florence-community/Florence-2-base",
        model_type="florence2",
        architecture="Florence2ForConditionalGeneration",
        config={**_OUTER, "vision_config": _VISION, "text_config": _TEXT},
        tiny={"vision_config": _TINY_VISION, "text_config": _TINY_TEXT, "image_token_id": 699},
        tokenizer="bpe",
        processor=_IMAGES,
        full=True,
    ),
}
