"""LLaVA 1.5 (Liu et al. 2023, https://arxiv.org/abs/2310.03744): the states of one of the last layers of CLIP's encoder
of images, which two linear layers bring to the width of a Llama, in the places of <image> tokens.

Shapes: N images, h w patches, E width of the encoder, I tokens of an image, which are its patches or also its class
token, B rows, T tokens, D width of the decoder, V vocab_size.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from ...inputs import Context, ImageInputs, TextInputs
from ...inputs.image_text import ImageTextCausalLM, ImageTextModel
from ...nn import Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..clip.config import CLIPVisionConfig
from ..clip.model import CLIPVisionModel
from ..llama3.config import LlamaConfig
from ..llama3.model import LlamaForCausalLM, LlamaModel
from .config import LlavaConfig

NAME_MAP = NameMap(
    prefix="model",
    base=("vision_tower", "multi_modal_projector", "language_model"),
    renames={
        r"^language_model\.lm_head\.": "lm_head.",
        r"^language_model\.model\.": "model.language_model.",
        r"^(model\.)?vision_tower\.(vision_model\.)?": "model.vision_tower.",
        r"^multi_modal_projector\.": "model.multi_modal_projector.",
    },
    ignored=(r"(^|\.)rotary_emb\.inv_freq$", r"(^|\.)embeddings\.position_ids$", r"^lm_head\."),
)
TIED_WEIGHTS = {"lm_head.weight": "model.language_model.embed_tokens.weight"}


class LlavaModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D)


class VisionTower(CLIPVisionModel):
    """CLIP's stack, up to the layer that the decoder reads.  What comes after it is only in the file, if at all."""

    inputs = ()
    layers_read: int
    skips_class_token: bool

    def __init__(self, w: Weights, cfg: CLIPVisionConfig):
        super().__init__(w, cfg, norm="post_layernorm" in w)

    def encode(self, p: ImageInputs) -> Array:
        """-> (N, I, E)."""
        x = self.pre_norm(self.embeddings(p))
        for layer in self.layers[: self.layers_read]:
            x = layer(x, Context())
        return x[:, 1:] if self.skips_class_token else x


class Connector(Module):
    """Two linear layers."""

    def __init__(self, w: Weights, cfg: LlavaConfig):
        E, D, bias = cfg.vision_config.hidden_size, cfg.text_config.hidden_size, cfg.multimodal_projector_bias
        self.up = Linear(w / "linear_1", E, D, bias, act=cfg.projector_hidden_act)
        self.down = Linear(w / "linear_2", D, D, bias)

    def __call__(self, x: Array, grid: tuple[int, int]) -> Array:
        """x (N, I, E) -> (N, I, D)."""
        return self.down(self.up(x))


class LlavaPretrained(ImageTextModel):
    config_class = LlavaConfig
    name_map = NAME_MAP

    def image_length(self, grid: tuple[int, int]) -> int:
        return grid[0] * grid[1] + (not self.config.skips_class_token)


class LlavaModel(LlavaPretrained):
    """The encoder, the connector and the decoder's layers."""

    is_base_model = True

    def __init__(self, w: Weights, cfg: LlavaConfig):
        self.config = cfg
        self.vision_model = VisionTower(w / "vision_tower", cfg.vision_config)
        self.vision_model.layers_read, self.vision_model.skips_class_token = cfg.feature_layers, cfg.skips_class_token
        self.connector = Connector(w / "multi_modal_projector", cfg)
        self.language_model = LlamaModel(w / "language_model", cfg.text_config)

    def forward(self, t: TextInputs, p: ImageInputs | None = None) -> LlavaModelOutput:
        return LlavaModelOutput(super().forward(t, p).last_hidden_state)


class Decoder(LlamaForCausalLM):
    """Llama with its head, whose layers are those of the bare model."""

    def __init__(self, w: Weights, cfg: LlamaConfig, base_model: LlamaModel):
        self.config, self.base_model = cfg, base_model
        self.head = Linear(w / "lm_head", cfg.hidden_size, cfg.vocab_size, bias=False, vocab=True)


class LlavaForConditionalGeneration(ImageTextCausalLM, LlavaPretrained):
    """Logits of the next token after images and text."""

    tied = TIED_WEIGHTS
    base_class: ClassVar[type[Any]] = LlavaModel
    decoder_class = Decoder

    def __init__(self, w: Weights, cfg: Any):
        self.config, self.base_model = cfg, self.base_class(w / "model", cfg)
        self.language_model = Decoder(w, cfg.text_config, self.base_model.language_model)
