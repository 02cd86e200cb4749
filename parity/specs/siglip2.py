"""SigLIP 2 NaFlex checkpoints, whose images are lists of patches for transformers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..pictures import draw
from .common import Spec, labels

if TYPE_CHECKING:
    from PIL import Image

    from zoo.images import ImageProcessor


@dataclass(frozen=True, kw_only=True)
class PatchSpec(Spec):
    def processor_of(self, config: Mapping[str, Any]) -> dict[str, Any]:
        vision = config.get("vision_config", config)
        return {**self.processor, "patch_size": vision["patch_size"], "max_num_patches": vision["num_patches"]}

    @staticmethod
    def pictures(config: Any, processor: ImageProcessor, seed: int) -> Sequence[Image.Image]:
        return [draw(300, 420, seed), draw(300, 420, seed + 1)]  # of one shape, that of no square

    @staticmethod
    def from_processor(found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        h, w = found["spatial_shapes"][0]
        patches = found["pixel_values"][:, : h * w]
        edge = int((patches.shape[2] / 3) ** 0.5)
        rows = patches.reshape(len(patches), h, w, edge, edge, 3).swapaxes(2, 3)
        return {"pixel_values": rows.reshape(len(patches), h * edge, w * edge, 3)}

    @staticmethod
    def arguments(given: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
        if "pixel_values" not in given:
            return given
        pixels, edge = given["pixel_values"], config.get("vision_config", config)["patch_size"]
        B, C, (h, w) = len(pixels), pixels.shape[3], (n // edge for n in pixels.shape[1:3])
        patches = pixels.reshape(B, h, edge, w, edge, C).transpose(2, 3).reshape(B, h * w, edge * edge * C)
        shapes = pixels.new_tensor([[h, w]] * B).long()
        more = {"spatial_shapes": shapes, "pixel_attention_mask": pixels.new_ones(B, h * w)}
        return {**given, **more, "pixel_values": patches}


_LAYERS = {"num_hidden_layers": 12, "hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6, "hidden_size": 768}
_LAYERS |= {"intermediate_size": 3072, "num_attention_heads": 12, "attention_dropout": 0.0}
_TEXT = {**_LAYERS, "vocab_size": 256000, "max_position_embeddings": 64, "projection_size": 768}
_TEXT |= {"bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0}
_VISION = {**_LAYERS, "patch_size": 16, "num_patches": 256, "num_channels": 3}
_TINY = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 72}
_TINY_TEXT = {**_TINY, "vocab_size": 900, "max_position_embeddings": 40, "projection_size": 48}
_TINY_VISION = {**_TINY, "patch_size": 8, "num_patches": 25}
_NO_POOLER = {**_VISION, "vision_use_head": False}
_IMAGES = {"image_processor_type": "Siglip2ImageProcessor", "do_resize": True, "do_rescale": True, "resample": 2}
_IMAGES |= {"rescale_factor": 0.00392156862745098, "do_normalize": True}
_IMAGES |= {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}

_alone = partial(PatchSpec, like="save_pretrained")


def _dual_spec(vision: dict[str, Any], like: str = "save_pretrained", classes: bool = False, **more: Any) -> Spec:
    small = {"text_config": {**_TEXT, **_TINY_TEXT}, "vision_config": {**vision, **_TINY_VISION}}
    return PatchSpec(
        like=like,
        model_type="siglip2",
        config={"text_config": _TEXT, "vision_config": vision, **(labels(count=1000) if classes else {})},
        tiny={**small, **(labels(count=7) if classes else {})},
        processor=_IMAGES,
        tokenizer="gemma",
        **more,
    )


SPECS: dict[str, Spec] = {
    "siglip2-base-patch16-naflex": _dual_spec(
        _VISION, "google/siglip2-base-patch16-naflex", architecture="Siglip2Model", full=True
    ),
    "siglip2-classifier": _dual_spec(_NO_POOLER, architecture="Siglip2ForImageClassification", classes=True),
    "siglip2-text": _alone(
        model_type="siglip2_text_model",
        architecture="Siglip2TextModel",
        config=_TEXT,
        tiny=_TINY_TEXT,
        tokenizer="gemma",
    ),
    "siglip2-vision": _alone(
        model_type="siglip2_vision_model",
        architecture="Siglip2VisionModel",
        config=_NO_POOLER,
        tiny=_TINY_VISION,
        processor=_IMAGES,
        dtype="F16",
    ),
}
