"""Chinese-CLIP (Yang et al. 2022, https://arxiv.org/abs/2211.01335): CLIP whose encoder of texts is a Chinese BERT.  Of
a text it takes the state of the first token.

Shapes: as in CLIP's models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from ... import ops
from ...inputs import ImageInputs, TextInputs
from ...inputs.dual_encoder import DualEncoder, Logits, Vectors, unit_length
from ...nn import Linear
from ...typing import Array
from ...weights import Weights
from ..bert.model import BertModel
from ..clip import model as clip
from .config import ChineseCLIPConfig, ChineseCLIPTextConfig, ChineseCLIPVisionConfig


class ChineseCLIPTextModel(BertModel):
    config_class = ChineseCLIPTextConfig
    inputs: ClassVar[Mapping[str, str]] = {"input_ids": "vocab_size"}


class ChineseCLIPVisionModel(clip.CLIPVisionModel):
    config_class = ChineseCLIPVisionConfig


class ChineseCLIPModel(DualEncoder):
    """Both encoders, and the similarity of each image and each text."""

    config_class = ChineseCLIPConfig
    name_map = replace(clip.NAME_MAP, prefix="chinese_clip", ignored=(clip.BUFFER, r"^text_model\.pooler\."))

    def __init__(self, w: Weights, cfg: ChineseCLIPConfig):
        self.config, text, P = cfg, cfg.text_config, cfg.projection_dim
        self.text_model = ChineseCLIPTextModel(w / "text_model", text, pooler=False)
        self.vision_model = ChineseCLIPVisionModel(w / "vision_model", cfg.vision_config)
        self.text_projection = Linear(w / "text_projection", text.hidden_size, P, bias=False)
        self.image_projection = Linear(w / "visual_projection", cfg.vision_config.hidden_size, P, bias=False)
        self.scale = w.get("logit_scale", ())

    def text_embeds(self, t: TextInputs) -> Array:
        return unit_length(self.text_projection(self.text_model.forward(t).last_hidden_state[:, 0]))

    def image_embeds(self, p: ImageInputs) -> Array:
        return unit_length(self.image_projection(self.vision_model.forward(p).pooler_output))

    def compare(self, v: Vectors) -> Logits:
        image, text, scale = *v, ops.exp(self.scale)
        return Logits(ops.linear(image, text) * scale, ops.linear(text, image) * scale)
