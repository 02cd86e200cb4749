"""ALIGN (Jia et al. 2021, https://arxiv.org/abs/2102.05918): a BERT for texts and an EfficientNet for images, trained
on the noisy texts beside a billion images.  The vector of an image is the mean of the last block's channels; of a text
it is the projected state of the first token.

Images may have any size.

Shapes: B texts, T tokens, C images, Y and X height and width in pixels, y and x those of the last block, D its
channels, P width of the vectors, which is D.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ... import ops
from ...inputs import ImageInputs, ImageModel, TextInputs
from ...inputs.dual_encoder import DualEncoder, Logits, Vectors, unit_length
from ...nn import Linear
from ...typing import Array
from ...weights import NameMap, Weights
from ..bert.model import BertModel
from ..efficientnet.model import Block, EfficientNetModelOutput, Stem
from .config import AlignConfig, AlignTextConfig, AlignVisionConfig


class AlignTextModel(BertModel):
    config_class = AlignTextConfig
    inputs: ClassVar[Mapping[str, str]] = {"input_ids": "vocab_size"}


class AlignVisionModel(ImageModel):
    """EfficientNet without what follows its blocks."""

    is_base_model = True
    config_class = AlignVisionConfig
    any_size = True

    def __init__(self, w: Weights, cfg: AlignVisionConfig):
        self.config, sizes = cfg, cfg.blocks
        self.embeddings = Stem(w / "embeddings", cfg)
        self.layers = [
            Block(w / "encoder.blocks" / i, cfg, size, cfg.drop_connect_rate * i / len(sizes))
            for i, size in enumerate(sizes)
        ]

    def forward(self, p: ImageInputs) -> EfficientNetModelOutput:
        x = self.embeddings(p.pixel_values)
        for layer in self.layers:
            x = layer(x)
        return EfficientNetModelOutput(x, ops.mean(x.reshape(x.shape[0], -1, x.shape[3]), 1))


class AlignModel(DualEncoder):
    """Both encoders, and the similarity of each image and each text."""

    config_class = AlignConfig
    name_map = NameMap(prefix="align", base=(), ignored=(r"\.num_batches_tracked$", r"^text_model\.pooler\."))
    only_saved = (r"\.num_batches_tracked$", r"^text_model\.pooler\.")  # a counter of training, and what is not called
    inputs = ()
    label_smoothing = 0.1

    def __init__(self, w: Weights, cfg: AlignConfig):
        self.config, text = cfg, cfg.text_config
        self.text_model = AlignTextModel(w / "text_model", text, pooler=False)
        self.vision_model = AlignVisionModel(w / "vision_model", cfg.vision_config)
        self.text_projection = Linear(w / "text_projection", text.hidden_size, cfg.projection_dim)
        self.temperature = w.get("temperature", ())

    def text_embeds(self, t: TextInputs) -> Array:
        return unit_length(self.text_projection(self.text_model.forward(t).last_hidden_state[:, 0]))

    def image_embeds(self, p: ImageInputs) -> Array:
        return unit_length(self.vision_model.forward(p).pooler_output)

    def compare(self, v: Vectors) -> Logits:
        image, text = v
        return Logits(ops.linear(image, text) / self.temperature, ops.linear(text, image) / self.temperature)
