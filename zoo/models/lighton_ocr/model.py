"""LightOnOCR (Taghadouini et al. 2026, https://arxiv.org/abs/2601.14251): the encoder of images and the connector of
Mistral Small 3.1, and a Qwen3, which reads an image's vectors in the places of <|image_pad|> tokens.

Shapes: B rows, T tokens, D width of the decoder.
"""

from __future__ import annotations

from typing import NamedTuple

from ...inputs import ImageInputs, TextInputs
from ...inputs.image_text import ImageTextCausalLM
from ...nn import Linear
from ...typing import Array
from ...weights import NameMap, Weights
from ..mistral3.model import Connector, MergedPatches, VisionTower
from ..qwen3.model import Qwen3ForCausalLM, Qwen3Model
from .config import LightOnOcrConfig

NAME_MAP = NameMap(
    prefix="model",
    base=("vision_encoder", "vision_projection", "language_model"),
    ignored=(r"(^|\.)rotary_emb\.inv_freq$", r"^lm_head\."),
)
TIED_WEIGHTS = {"lm_head.weight": "model.language_model.embed_tokens.weight"}


class LightOnOcrModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D)


class LightOnOcrPretrained(MergedPatches):
    config_class = LightOnOcrConfig
    name_map = NAME_MAP


class LightOnOcrModel(LightOnOcrPretrained):
    """The encoder, the connector and the decoder's layers."""

    is_base_model = True

    def __init__(self, w: Weights, cfg: LightOnOcrConfig):
        self.config = cfg
        self.vision_model = VisionTower(w / "vision_encoder", cfg.vision_config)
        self.vision_model.merged = cfg.spatial_merge_size
        self.connector = Connector(w / "vision_projection", cfg)
        self.language_model = Qwen3Model(w / "language_model", cfg.text_config)

    def forward(self, t: TextInputs, p: ImageInputs | None = None) -> LightOnOcrModelOutput:
        return LightOnOcrModelOutput(super().forward(t, p).last_hidden_state)


class Decoder(Qwen3ForCausalLM):
    """Qwen3 with its head, whose layers are those of the bare model."""

    def __init__(self, w: Weights, cfg: LightOnOcrConfig, base_model: Qwen3Model):
        self.config, self.base_model = cfg.text_config, base_model
        sizes = cfg.text_config.hidden_size, cfg.text_config.vocab_size
        self.head = Linear(w / "lm_head", *sizes, bias=False, vocab=True)


class LightOnOcrForConditionalGeneration(ImageTextCausalLM, LightOnOcrPretrained):
    """Logits of the next token after images and text."""

    tied = TIED_WEIGHTS
    decoder_class = Decoder

    def __init__(self, w: Weights, cfg: LightOnOcrConfig):
        self.config, self.base_model = cfg, LightOnOcrModel(w / "model", cfg)
        self.language_model = Decoder(w, cfg, self.base_model.language_model)
