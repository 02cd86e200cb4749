"""ALIGN checkpoints."""

from __future__ import annotations

from typing import Any

from .chinese_clip import _TEXT
from .clip import _TINY
from .common import Spec
from .mobilenet import _TOP, EFFICIENT, TINY_EFFICIENT

_BERT: dict[str, Any] = {**_TEXT, "vocab_size": 30522}
_VISION = {name: value for name, value in EFFICIENT.items() if name != "dropout_rate"}
_VISION |= {"image_size": 600, "width_coefficient": 2.0, "depth_coefficient": 3.1, "hidden_dim": 2560}
_PROCESSOR = {**_TOP, "include_top": False, "rescale_offset": True, "rescale_factor": 0.00784313725490196}
_PROCESSOR |= {"size": {"height": 346, "width": 346}, "resample": 2, "do_center_crop": True, "do_normalize": False}
# Each block's activations and gate make numbers smaller.  Of 55 blocks the many that are added would make them chaotic.
_GAINS = {f"blocks.{i}.projection.project_conv": 5.5 for i in range(10)}

SPECS = {
    "align-base": Spec(
        like="kakaobrain/align-base",
        model_type="align",
        architecture="AlignModel",
        config={"projection_dim": 640, "temperature_init_value": 1.0, "text_config": _BERT, "vision_config": _VISION},
        tiny={
            "text_config": {**_BERT, **_TINY, "vocab_size": 900, "max_position_embeddings": 40},
            "vision_config": {**_VISION, **TINY_EFFICIENT, "image_size": 144},
            "projection_dim": 32,
        },
        processor=_PROCESSOR,
        tokenizer="wordpiece",
        gains=_GAINS,
        full=True,
    ),
}
