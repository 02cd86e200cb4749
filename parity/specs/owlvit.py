"""OWL-ViT and OWLv2: CLIP's two encoders and the heads of a detector, which give each image all texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from zoo.images.boxes import post_process_grounded_object_detection

from .clip import _IMAGES, _TEXT, _TINY_TEXT, _TINY_VISION, _VISION
from .common import Spec, as_arrays

_TEXTS = {**_TEXT, "max_position_embeddings": 16, "bos_token_id": 49406, "eos_token_id": 49407, "pad_token_id": 0}
_NORM = {name: _IMAGES[name] for name in ("do_normalize", "image_mean", "image_std")}
_OWLVIT: dict[str, Any] = {**_NORM, "feature_extractor_type": "OwlViTFeatureExtractor", "do_resize": True}
_OWLVIT |= {"size": 768, "resample": 3, "do_center_crop": False, "crop_size": 768}
_OWLV2: dict[str, Any] = {**_NORM, "image_processor_type": "Owlv2ImageProcessor", "do_resize": True, "do_pad": True}
_OWLV2 |= {"size": {"height": 960, "width": 960}, "resample": 2, "do_rescale": True}
_OWLV2 |= {"rescale_factor": 0.00392156862745098}
# Cosines of random vectors are small: a shift for all texts that is smaller tells them apart.
_GAINS = {"class_head.logit_shift": 0.1, "class_head.logit_scale": 2.0, "class_head.logit_scale.bias": 20.0}


@dataclass(frozen=True, kw_only=True)
class OwlViTSpec(Spec):
    not_compared: ClassVar[tuple[str, ...]] = ("text_embeds", "image_embeds", "class_embeds")

    @staticmethod
    def arguments(given: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
        """All texts for each image, since transformers takes a share of them for one."""
        given = Spec.arguments(given, config)
        if _detects(config):
            images = len(given["pixel_values"])
            texts = {name: given[name].repeat(images, 1) for name in ("input_ids", "attention_mask") if name in given}
            given |= texts
        return given

    @staticmethod
    def objects(
        config: Any, logits: np.ndarray, boxes: np.ndarray, sizes: list[tuple[int, int]], threshold: float
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        if config.model_type == "owlv2":  # images are padded to squares
            sizes = [(max(size), max(size)) for size in sizes]
        labels = [str(i) for i in range(logits.shape[2])]
        return as_arrays(post_process_grounded_object_detection(logits, boxes, sizes, labels, threshold=threshold))

    @staticmethod
    def from_stages(
        found: dict[str, np.ndarray], arrays: Mapping[str, np.ndarray], config: Mapping[str, Any]
    ) -> dict[str, np.ndarray]:
        if not _detects(config):
            return found
        texts = len(arrays["input_ids"])
        return {name: x[:texts] if name.startswith("text_model") else x for name, x in found.items()}


def _detects(config: Mapping[str, Any]) -> bool:
    return config["architectures"][0].endswith("ForObjectDetection")


def _owl(like: str, kind: str, architecture: str, patch: int, side: int, **more: Any) -> OwlViTSpec:
    vision = {**_VISION, "image_size": side, "patch_size": patch}
    inert = ("logit_scale$", "visual_projection") if architecture.endswith("ForObjectDetection") else ()
    return OwlViTSpec(
        like=like,
        model_type=kind,
        architecture=architecture,
        config={"projection_dim": 512, "text_config": _TEXTS, "vision_config": vision},
        tiny={
            "text_config": {**_TEXTS, **_TINY_TEXT, "max_position_embeddings": 16},
            "vision_config": {**vision, **_TINY_VISION},
            "projection_dim": 48,
        },
        processor=_OWLVIT if kind == "owlvit" else _OWLV2,
        tokenizer="wordpiece, json",
        inert=(*Spec.inert, *inert),
        gains=_GAINS,
        **more,
    )


SPECS: dict[str, OwlViTSpec] = {
    "owlvit-base-patch32": _owl("google/owlvit-base-patch32", "owlvit", "OwlViTForObjectDetection", 32, 768, full=True),
    "owlvit-bare": _owl("save_pretrained", "owlvit", "OwlViTModel", 32, 768),
    "owlv2-base-patch16-ensemble": _owl(
        "google/owlv2-base-patch16-ensemble", "owlv2", "Owlv2ForObjectDetection", 16, 960, full=True
    ),
    "owlv2-bare": _owl("save_pretrained", "owlv2", "Owlv2Model", 16, 960),
}
