"""Idefics3 (Laurençon et al. 2024, https://arxiv.org/abs/2408.12637), as SmolVLM (Marafioti et al. 2025,
https://arxiv.org/abs/2504.05299), SmolDocling (Nassar et al. 2025, https://arxiv.org/abs/2503.11576) and Granite
Docling have it: SigLIP's encoder over the tiles of an image, whose neighbouring patches become one vector each, and
Llama, which reads these vectors in the places of <image> tokens.

Shapes: N tiles, h w patches of a tile, E width of the encoder, r scale_factor, I = h w / (r r) tokens of a tile,
B rows, T tokens, D width of the decoder, V vocab_size.
"""

from __future__ import annotations

from typing import NamedTuple

from ... import ops
from ...inputs import ImageInputs, TextInputs
from ...inputs.image_text import ImageTextCausalLM, ImageTextModel
from ...inputs.images import fractional_places
from ...nn import LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..clip.model import ImageEmbeddings, Layer
from ..llama3.model import LlamaForCausalLM, LlamaModel
from ..siglip.model import SiglipVisionModel
from .config import Idefics3Config, Idefics3VisionConfig

IGNORED_WEIGHTS = (r"(^|\.)rotary_emb\.inv_freq$", r"(^|\.)embeddings\.position_ids$", r"^lm_head\.")
NAME_MAP = NameMap(prefix="model", base=("vision_model", "connector", "text_model"), ignored=IGNORED_WEIGHTS)
TIED_WEIGHTS = {"lm_head.weight": "model.text_model.embed_tokens.weight"}


class Idefics3ModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D)


class VisionEmbeddings(ImageEmbeddings):
    """SigLIP's, whose patches have the positions that their places in parts of the image are rounded to."""

    def _patches(self, grid: tuple[int, int]) -> Array:
        """The positions of the patches of a tile, (1, h w, E)."""
        rows, columns = map(fractional_places, grid)
        places = [[y * grid[1] + x for y in rows for x in columns]]
        every = ops.as_ids(places, self.position, "positions", grid[0] * grid[1])
        return ops.embedding(every, self.position, "positions")


class Idefics3VisionTransformer(SiglipVisionModel):
    """SigLIP's stack, with the norm at its end."""

    config_class = Idefics3VisionConfig
    inputs = ()

    def __init__(self, w: Weights, cfg: Idefics3VisionConfig):
        self.config, self.pooler = cfg, None
        self.embeddings = VisionEmbeddings(w / "embeddings", cfg, bias=True)
        self.layers = [Layer(w / "encoder.layers" / i, cfg) for i in range(cfg.num_hidden_layers)]
        self.norm = LayerNorm(w / "post_layernorm", cfg.hidden_size, cfg.layer_norm_eps)


class Connector(Module):
    """r r neighbouring patches -> one vector of the decoder's width."""

    def __init__(self, w: Weights, cfg: Idefics3Config):
        self.factor, E = cfg.scale_factor, cfg.vision_config.hidden_size
        self.projection = Linear(
            w / "modality_projection.proj", E * self.factor**2, cfg.text_config.hidden_size, bias=False
        )

    def __call__(self, x: Array, grid: tuple[int, int]) -> Array:
        """x (N, h w, E) -> (N, I, D)."""
        (N, count, E), r = x.shape, self.factor
        blocks = ops.windows(x.reshape(N, *grid, E), r)
        return self.projection(blocks.reshape(N, count // r**2, r * r * E))


class Idefics3Pretrained(ImageTextModel):
    config_class = Idefics3Config
    name_map = NAME_MAP

    def image_length(self, grid: tuple[int, int]) -> int:
        return grid[0] * grid[1] // self.config.scale_factor**2


class Idefics3Model(Idefics3Pretrained):
    """The encoder, the connector and the decoder's layers."""

    is_base_model = True

    def __init__(self, w: Weights, cfg: Idefics3Config):
        self.config = cfg
        self.vision_model = Idefics3VisionTransformer(w / "vision_model", cfg.vision_config)
        self.connector = Connector(w / "connector", cfg)
        self.language_model = LlamaModel(w / "text_model", cfg.text_config)

    def forward(self, t: TextInputs, p: ImageInputs | None = None) -> Idefics3ModelOutput:
        return Idefics3ModelOutput(super().forward(t, p).last_hidden_state)


class Decoder(LlamaForCausalLM):
    """Llama with its head, whose layers are those of the bare model."""

    def __init__(self, w: Weights, cfg: Idefics3Config, base_model: LlamaModel):
        self.config, self.base_model = cfg.text_config, base_model
        self.head = Linear(
            w / "lm_head", cfg.text_config.hidden_size, cfg.text_config.vocab_size, bias=False, vocab=True
        )


class Idefics3ForConditionalGeneration(ImageTextCausalLM, Idefics3Pretrained):
    """Logits of the next token after images and text."""

    tied = TIED_WEIGHTS
    decoder_class = Decoder

    def __init__(self, w: Weights, cfg: Idefics3Config):
        self.config, self.base_model = cfg, Idefics3Model(w / "model", cfg)
        self.language_model = Decoder(w, cfg, self.base_model.language_model)
