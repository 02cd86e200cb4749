"""CLIPSeg checkpoints: CLIP with a decoder of masks, and its encoders alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .clip import _TEXT, _TINY_TEXT, _TINY_VISION, _VISION
from .common import Spec

_IMAGES = {"image_processor_type": "ViTImageProcessor", "do_resize": True, "size": {"height": 352, "width": 352}}
_IMAGES |= {"resample": 2, "do_rescale": True, "rescale_factor": 0.00392156862745098, "do_normalize": True}
_IMAGES |= {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
_SMALL_VISION = {**_TINY_VISION, "num_hidden_layers": 4}
_PARTS: dict[str, Any] = {"text_config": _TEXT, "vision_config": {**_VISION, "patch_size": 16}, "projection_dim": 512}
_OUTER: dict[str, Any] = {"extract_layers": [3, 6, 9], "reduce_dim": 64, "decoder_num_attention_heads": 4}
_OUTER |= {"decoder_intermediate_size": 2048, "conditional_layer": 0, "logit_scale_init_value": 2.6592}
_OUTER |= {"decoder_hidden_act": "quick_gelu", "decoder_attention_dropout": 0.0}
_TINY: dict[str, Any] = {
    "text_config": {**_TEXT, **_TINY_TEXT},
    "vision_config": {**_VISION, **_SMALL_VISION},
    "projection_dim": 32,
}
_TINY |= {"reduce_dim": 24, "decoder_num_attention_heads": 3, "decoder_intermediate_size": 40}


# With larger numbers the attention of the decoder is to one patch alone, or to another one after rounding.
_GAINS = {"decoder.film_mul": 0.1, "decoder.film_add": 0.1} | {f"reduces.{i}": 0.1 for i in range(3)}


@dataclass(frozen=True, kw_only=True)
class SegmentSpec(Spec):
    square = True  # transformers puts patches together as if they had been a square

    def unread_tensors(self, config: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
        if self.architecture.endswith("ForImageSegmentation"):
            yield "clip.logit_scale", np.array(2.6592, np.float32)

    def processor_of(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Images are larger than image_size: CLIP's positions are resized."""
        if config["text_config"]["vocab_size"] == _TEXT["vocab_size"]:
            return dict(self.processor)
        return {**self.processor, "size": {"height": 40, "width": 40}}


def _spec(like: str, complex_convolution: bool, tiny: Mapping[str, Any], **more: Any) -> SegmentSpec:
    outer = {**_OUTER, "use_complex_transposed_convolution": complex_convolution}
    return SegmentSpec(
        like=like,
        model_type="clipseg",
        config={**_PARTS, **outer},
        tiny={**_TINY, **tiny},
        **{
            "architecture": "CLIPSegForImageSegmentation",
            "processor": _IMAGES,
            "tokenizer": "wordpiece, json",
            "gains": _GAINS,
            **more,
        },
    )


SPECS: dict[str, Spec] = {
    "clipseg-rd64-refined": _spec("CIDAS/clipseg-rd64-refined", True, {"extract_layers": [0, 1, 2]}, full=True),
    "clipseg-rd64": _spec("CIDAS/clipseg-rd64", False, {"extract_layers": [3, 1], "conditional_layer": 1}),
    "clipseg-bare": _spec("save_pretrained", True, {"extract_layers": [0, 2]}, architecture="CLIPSegModel"),
    "clipseg-text": Spec(
        like="save_pretrained",
        model_type="clipseg_text_model",
        architecture="CLIPSegTextModel",
        config={**_TEXT, "eos_token_id": 4},
        tiny=_TINY_TEXT,
        tokenizer="wordpiece, json",
    ),
    "clipseg-vision": Spec(
        like="save_pretrained",
        model_type="clipseg_vision_model",
        architecture="CLIPSegVisionModel",
        config=_VISION,
        tiny=_TINY_VISION,
        processor={**_IMAGES, "size": {"height": 224, "width": 224}},
    ),
}
