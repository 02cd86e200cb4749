"""PaliGemma (Beyer et al. 2024, https://arxiv.org/abs/2407.07726): the patches of SigLIP's encoder of images, which a
linear layer brings to the width of a Gemma, in the places of <image> tokens.  All tokens of a prompt attend to each
other; those of the answer attend to the ones before them.

Shapes: N images, E width of the encoder, I tokens of an image, which are its patches, B rows, T tokens, D width of the
decoder.
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
from ..gemma.model import GemmaForCausalLM, GemmaModel
from ..llama3.model import INPUTS
from ..siglip.model import SiglipVisionModel
from .config import PaliGemmaConfig

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
)
TIED_WEIGHTS = {"lm_head.weight": "model.language_model.embed_tokens.weight"}


class PaliGemmaModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D)


class Connector(Module):
    """A linear layer."""

    def __init__(self, w: Weights, cfg: PaliGemmaConfig):
        self.projection = Linear(w / "linear", cfg.vision_config.hidden_size, cfg.projection_dim)

    def __call__(self, x: Array, grid: tuple[int, int]) -> Array:
        """x (N, I, E) -> (N, I, D)."""
        return self.projection(x)


class LanguageModel(GemmaModel):
    """Gemma's layers, whose positions count from 1; token_type_ids are 1 for tokens of a prompt."""

    inputs: ClassVar[Mapping[str, str]] = {**INPUTS, "token_type_ids": "type_vocab_size"}

    def encode(self, t: TextInputs) -> Array:
        at = t.position_ids
        if at is None:
            at = t.start[:, None] + ops.arange(t.shape[1], self.like) + 1
        return super().encode(t._replace(position_ids=at))


class PaliGemmaPretrained(ImageTextModel):
    config_class = PaliGemmaConfig
    name_map = NAME_MAP
    reads_prefixes = True

    def image_length(self, grid: tuple[int, int]) -> int:
        return grid[0] * grid[1]


class PaliGemmaModel(PaliGemmaPretrained):
    """The encoder, the connector and the decoder's layers."""

    is_base_model = True
    only_saved = (r"vision_tower\.head\.",)

    def __init__(self, w: Weights, cfg: PaliGemmaConfig):
        self.config = cfg
        self.vision_model = SiglipVisionModel(w / "vision_tower", cfg.vision_config, pooler=False)
        self.connector = Connector(w / "multi_modal_projector", cfg)
        self.language_model = LanguageModel(w / "language_model", cfg.text_config)

    def forward(self, t: TextInputs, p: ImageInputs | None = None) -> PaliGemmaModelOutput:
        return PaliGemmaModelOutput(super().forward(t, p).last_hidden_state)


class Decoder(GemmaForCausalLM):
    """Gemma with its head, whose layers are those of the bare model."""

    inputs = LanguageModel.inputs

    def __init__(self, w: Weights, cfg: PaliGemmaConfig, base_model: LanguageModel):
        self.config, self.base_model = cfg.text_config, base_model
        sizes = cfg.text_config.hidden_size, cfg.text_config.vocab_size
        self.head = Linear(w / "lm_head", *sizes, bias=False, vocab=True)


class PaliGemmaForConditionalGeneration(ImageTextCausalLM, PaliGemmaPretrained):
    """Logits of the next token after images and text."""

    tied = TIED_WEIGHTS
    only_saved = PaliGemmaModel.only_saved
    decoder_class = Decoder

    def __init__(self, w: Weights, cfg: PaliGemmaConfig):
        self.config, self.base_model = cfg, PaliGemmaModel(w / "model", cfg)
        self.language_model = Decoder(w, cfg, self.base_model.language_model)
