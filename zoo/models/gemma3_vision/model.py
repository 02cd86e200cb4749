"""Gemma 3 (Gemma team 2025, https://arxiv.org/abs/2503.19786) of images and texts: SigLIP's encoder of images, whose
patches become the means of squares of them, and Gemma 3, which reads these in the places of <image_soft_token>.  The
tokens of one image attend to each other, to those after them too; in layers with a window also beyond it.

Shapes: N images, h w patches, E width of the encoder, I tokens of an image, B rows, T tokens, D width of the decoder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

from ... import ops
from ...inputs import ImageInputs, TextInputs
from ...inputs.image_text import ImageTextCausalLM, ImageTextModel
from ...nn import Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..gemma.model import Norm
from ..gemma3.model import Gemma3ForCausalLM, Gemma3TextModel
from ..llama3.model import INPUTS
from ..siglip.model import SiglipVisionModel
from .config import Gemma3Config

NAME_MAP = NameMap(
    prefix="model",
    base=("vision_tower", "multi_modal_projector", "language_model"),
    renames={
        r"^language_model\.lm_head\.": "lm_head.",
        r"^language_model\.model\.": "model.language_model.",
        r"^(model\.)?vision_tower\.(vision_model\.)?": "model.vision_tower.",
        r"^multi_modal_projector\.": "model.multi_modal_projector.",
    },
    ignored=(
        r"(^|\.)rotary_emb\.inv_freq$",
        r"(^|\.)embeddings\.position_ids$",
        r"^lm_head\.",
        r"vision_tower\.head\.",
    ),
    transposed=(r"mm_input_projection_weight$",),
)
TIED_WEIGHTS = {"lm_head.weight": "model.language_model.embed_tokens.weight"}


class Gemma3ModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D)


class Connector(Module):
    """The means of squares of patches, a norm, and a linear layer."""

    def __init__(self, w: Weights, cfg: Gemma3Config):
        E, D, self.pool = cfg.vision_config.hidden_size, cfg.text_config.hidden_size, cfg.pool
        self.norm = Norm(w / "mm_soft_emb_norm", E, cfg.vision_config.layer_norm_eps)
        self.projection = w.linear(["mm_input_projection_weight"], [D], E)

    def __call__(self, x: Array, grid: tuple[int, int]) -> Array:
        """x (N, h w, E) -> (N, I, D)."""
        N, _, E = x.shape
        means = ops.avg_pool2d(x.reshape(N, *grid, E), self.pool)
        return ops.linear(self.norm(means.reshape(N, -1, E)), self.projection)


class LanguageModel(Gemma3TextModel):
    """Gemma 3's layers; token_type_ids are 1 for tokens of images."""

    inputs: ClassVar[Mapping[str, str]] = {**INPUTS, "token_type_ids": "type_vocab_size"}


class Gemma3Pretrained(ImageTextModel):
    config_class = Gemma3Config
    name_map = NAME_MAP

    def image_length(self, grid: tuple[int, int]) -> int:
        return self.config.mm_tokens_per_image


class Gemma3Model(Gemma3Pretrained):
    """The encoder, the connector and the decoder's layers."""

    is_base_model = True
    only_saved = (r"vision_tower\.head\.",)

    def __init__(self, w: Weights, cfg: Gemma3Config):
        self.config = cfg
        self.vision_model = SiglipVisionModel(w / "vision_tower", cfg.vision_config, pooler=False)
        self.connector = Connector(w / "multi_modal_projector", cfg)
        self.language_model = LanguageModel(w / "language_model", cfg.text_config)

    def forward(self, t: TextInputs, p: ImageInputs | None = None) -> Gemma3ModelOutput:
        return Gemma3ModelOutput(super().forward(t, p).last_hidden_state)


class Decoder(Gemma3ForCausalLM):
    """Gemma 3 with its head, whose layers are those of the bare model."""

    inputs = LanguageModel.inputs

    def __init__(self, w: Weights, cfg: Gemma3Config, base_model: LanguageModel):
        self.config, self.base_model = cfg.text_config, base_model
        sizes = cfg.text_config.hidden_size, cfg.text_config.vocab_size
        self.head = Linear(w / "lm_head", *sizes, bias=False, vocab=True)


class Gemma3ForConditionalGeneration(ImageTextCausalLM, Gemma3Pretrained):
    """Logits of the next token after images and text."""

    tied = TIED_WEIGHTS
    only_saved = Gemma3Model.only_saved
    decoder_class = Decoder

    def __init__(self, w: Weights, cfg: Gemma3Config):
        self.config, self.base_model = cfg, Gemma3Model(w / "model", cfg)
        self.language_model = Decoder(w, cfg, self.base_model.language_model)
