"""Grounding DINO and MM-Grounding-DINO: the Hub's checkpoints have transformers 4's names for their Swin."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from zoo.images.phrases import post_process_phrases

from ..pictures import page
from .common import Loaded, Spec, as_arrays

if TYPE_CHECKING:
    from PIL import Image

    from zoo.images import ImageProcessor

_CONFIG: dict[str, Any] = {"num_queries": 900, "encoder_layers": 6, "encoder_ffn_dim": 2048, "dropout": 0.1}
_CONFIG |= {"encoder_attention_heads": 8, "decoder_layers": 6, "decoder_ffn_dim": 2048, "decoder_attention_heads": 8}
_CONFIG |= {"d_model": 256, "activation_function": "relu", "num_feature_levels": 4, "two_stage": True}
_CONFIG |= {
    "max_text_len": 256,
    "text_enhancer_dropout": 0.0,
    "fusion_droppath": 0.1,
    "positional_embedding_temperature": 20,
}
_TEXT = {"model_type": "bert", "vocab_size": 30522, "max_position_embeddings": 512}
_SWIN: dict[str, Any] = {"model_type": "swin", "image_size": 224, "out_indices": [2, 3, 4], "window_size": 7}
_SWIN |= {"embed_dim": 96, "depths": [2, 2, 6, 2], "num_heads": [3, 6, 12, 24]}
_BASE = {**_SWIN, "embed_dim": 128, "depths": [2, 2, 18, 2], "num_heads": [4, 8, 16, 32], "window_size": 12}

# Four channels in a group: the norm of two, of a level of one place, keeps few digits of their difference.
_TINY: dict[str, Any] = {"d_model": 128, "encoder_layers": 2, "decoder_layers": 3, "num_queries": 25}
_TINY |= {"encoder_ffn_dim": 96, "decoder_ffn_dim": 72, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
_TINY |= {"encoder_n_points": 2, "decoder_n_points": 3, "max_text_len": 64}
_TINY_TEXT = {**_TEXT, "vocab_size": 1100, "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
_TINY_TEXT |= {"intermediate_size": 72, "max_position_embeddings": 80}
_TINY_SWIN = {**_SWIN, "embed_dim": 16, "depths": [1, 2, 1, 1], "num_heads": [1, 2, 4, 4], "window_size": 4}
_PROCESSOR: dict[str, Any] = {"image_processor_type": "GroundingDinoImageProcessor", "format": "coco_detection"}
_PROCESSOR |= {"do_normalize": True, "do_pad": True, "do_rescale": True, "do_resize": True, "resample": 2}
_PROCESSOR |= {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
_PROCESSOR |= {"rescale_factor": 0.00392156862745098, "size": {"longest_edge": 1333, "shortest_edge": 800}}
# The points of attention are some way apart, and not so far that rounding moves what they see.
_GAINS = {"sampling_offsets.bias": 20, "query_position_embeddings": 2}


@dataclass(frozen=True, kw_only=True)
class GroundingSpec(Spec):
    not_compared: ClassVar[tuple[str, ...]] = (
        *("init_reference_points", "intermediate_hidden_states", "intermediate_reference_points", "input_ids"),
        *("enc_outputs_class", "enc_outputs_coord_logits", "encoder_logits", "encoder_pred_boxes"),
    )

    def file_name(self, name: str) -> str:
        return re.sub(r"conv_encoder\.model\.swin\.(embeddings|encoder)\.", r"conv_encoder.model.\1.", name)

    def processor_of(self, config: Mapping[str, Any]) -> dict[str, Any]:
        is_tiny = config["d_model"] < self.config["d_model"]
        return {**self.processor, **({"size": {"longest_edge": 160, "shortest_edge": 96}} if is_tiny else {})}

    @staticmethod
    def pictures(config: Any, processor: ImageProcessor, seed: int) -> Sequence[Image.Image]:
        return [page()]

    @staticmethod
    def objects(
        config: Any, logits: np.ndarray, boxes: np.ndarray, sizes: list[tuple[int, int]], threshold: float
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        tokens = np.arange(logits.shape[2])[:, None]
        return as_arrays(
            post_process_phrases(logits, boxes, sizes, list(map(str, tokens[:, 0])), tokens, threshold=threshold)
        )

    @staticmethod
    def load_reference(model_class: Any, folder: Path, config: Mapping[str, Any], dtype: Any) -> Loaded:
        """With the attention that BERT has by default: "eager" adds the mask of phrases, which is 0 or 1, to scores."""
        model, info = model_class.from_pretrained(folder, dtype=dtype, local_files_only=True, output_loading_info=True)
        missing = [name for name in info["missing_keys"] if ".swin.layernorm." not in name]  # which is not called
        return model, {**info, "missing_keys": missing}


def _grounding(
    like: str, kind: str = "", net: Mapping[str, Any] = _SWIN, head: str = "ForObjectDetection", **more: Any
) -> GroundingSpec:
    config, tiny, inert = more.pop("config", {}), more.pop("tiny", {}), more.pop("inert", ())
    return GroundingSpec(
        like=like,
        model_type=f"{kind}grounding-dino",
        architecture=f"{kind.strip('-').upper()}GroundingDino{head}",
        config={**_CONFIG, "backbone_config": net, "text_config": _TEXT, **config},
        tiny={**_TINY, "backbone_config": _TINY_SWIN, "text_config": _TINY_TEXT, **tiny},
        processor=_PROCESSOR,
        tokenizer="wordpiece, with BERT's places",
        gains={**_GAINS, **({"layer_norm_after": 8} if kind else {})},  # whose logits are scaled
        inert=(*Spec.inert, *inert),
        **more,
    )


# Of the biases that scale no box: one moves all places, and all but the last are of training.
_BIASES = (r"encoder_output_class_embed", r"decoder\.class_embed")
SPECS: dict[str, GroundingSpec] = {
    "grounding-dino-tiny": _grounding("IDEA-Research/grounding-dino-tiny", full=True),
    "grounding-dino-base": _grounding("IDEA-Research/grounding-dino-base", net=_BASE),
    "grounding-dino-own-heads": _grounding(
        "save_pretrained",
        config={"decoder_bbox_embed_share": False, "position_embedding_type": "learned"},
        format="bin",
        inert=(r"^bbox_embed\.[01]\.", r"decoder\.bbox_embed\.2\."),
    ),
    "grounding-dino-bare": _grounding("save_pretrained", head="Model"),
    "mm-grounding-dino-tiny": _grounding(
        "openmmlab-community/mm_grounding_dino_tiny_o365v1_goldg",
        "mm-",
        full=True,
        inert=_BIASES,
        config={"decoder_bbox_embed_share": False, "decoder_cls_embed_share": False},
    ),
    "mm-grounding-dino-bare": _grounding("save_pretrained", "mm-", head="Model", inert=_BIASES),
}
