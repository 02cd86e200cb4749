"""SigLIP (Zhai et al. 2023, https://arxiv.org/abs/2303.15343) and SigLIP 2 (Tschannen et al. 2025,
https://arxiv.org/abs/2502.14786) for images of a fixed size: CLIP whose loss judges each pair of a text and an image by
itself, with texts that are padded to all positions and a learned query in the place of the class token.

Shapes: B texts, T tokens, C images, N = h w patches, D hidden_size, F intermediate_size, P vectors' width, L labels.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ... import ops
from ...inputs import Context, ImageInputs, TextInputs, TextModel
from ...inputs.dual_encoder import DualEncoder, Logits, Vectors, unit_length
from ...nn import LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..clip import model as clip
from .config import SiglipConfig, SiglipTextConfig, SiglipVisionConfig

NAME_MAP = replace(clip.NAME_MAP, prefix="siglip")
TEXT = replace(clip.TEXT, base=(*clip.TEXT.base, "head"))
VISION = replace(clip.VISION, base=(*clip.VISION.base, "head"))


class SiglipEncoderOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D) or (C, N, D)
    pooler_output: Array | None  # (B, P) or (C, P); None if the checkpoint has no head


class SiglipTextModel(TextModel):
    """A stack that sees all tokens, and a linear layer on the state of the last one, padding included."""

    config_class = SiglipTextConfig
    name_map = TEXT
    is_base_model = True
    embeds = "pooler_output"
    pads_texts = True

    def __init__(self, w: Weights, cfg: SiglipTextConfig):
        self.config = cfg
        self.embeddings = clip.TextEmbeddings(w / "embeddings", cfg)
        self.layers = [clip.Layer(w / "encoder.layers" / i, cfg) for i in range(cfg.num_hidden_layers)]
        self.norm = LayerNorm(w / "final_layer_norm", cfg.hidden_size, cfg.layer_norm_eps)
        self.head = Linear(w / "head", cfg.hidden_size, cfg.output_size)

    def forward(self, t: TextInputs) -> SiglipEncoderOutput:
        x = self.embeddings(t)
        for layer in self.layers:
            x = layer(x, t.context)
        x = self.norm(x)
        return SiglipEncoderOutput(x, self.head(x[:, -1]))


class InProjection(Linear):
    """The queries, keys and values of torch's MultiheadAttention."""

    def __init__(self, w: Weights, d: int):
        self.weight, self.bias = w.linear(["in_proj_weight"], [3 * d], d), w.get("in_proj_bias", (3 * d,))
        self.act, self.dropout = None, clip.Dropout(0.0)


class Pooler(Module):
    """Attention of a learned query to all patches, and an MLP."""

    def __init__(self, w: Weights, cfg: SiglipVisionConfig):
        D, F = cfg.hidden_size, cfg.intermediate_size
        self.heads = cfg.num_attention_heads
        self.probe = w.get("probe", (1, 1, D))
        self.qkv, self.out = InProjection(w / "attention", D), Linear(w / "attention.out_proj", D, D)
        self.norm = LayerNorm(w / "layernorm", D, cfg.layer_norm_eps)
        self.up, self.down = Linear(w / "mlp.fc1", D, F, act=cfg.hidden_act), Linear(w / "mlp.fc2", F, D)

    def __call__(self, x: Array) -> Array:
        """x (C, N, D) -> (C, D)."""
        both = ops.cat([ops.cat([self.probe] * x.shape[0], 0), x], 1)
        q, k, v = ops.split_heads(self.qkv(both), self.heads)
        y = self.out(ops.attention(q[:, :1], k[:, 1:], v[:, 1:]).reshape(x.shape[0], 1, -1))
        return self.down(self.up(self.norm(y)), residual=y)[:, 0]


class SiglipVisionModel(clip.CLIPVision):
    """The stack, with the norm at its end, and the output of its pooler."""

    config_class = SiglipVisionConfig
    name_map = VISION
    is_base_model = True

    def __init__(self, w: Weights, cfg: SiglipVisionConfig, pooler: bool = True):
        self.config = cfg
        self.embeddings = clip.ImageEmbeddings(w / "embeddings", cfg, bias=True)
        self.layers = [clip.Layer(w / "encoder.layers" / i, cfg) for i in range(cfg.num_hidden_layers)]
        self.norm = LayerNorm(w / "post_layernorm", cfg.hidden_size, cfg.layer_norm_eps)
        self.pooler = Pooler(w / "head", cfg) if pooler and cfg.vision_use_head else None

    def encode(self, p: ImageInputs) -> Array:
        """-> (C, N, D) of every patch."""
        x = self.embeddings(p)
        for layer in self.layers:
            x = layer(x, Context())
        return self.norm(x)

    def forward(self, p: ImageInputs) -> SiglipEncoderOutput:
        x = self.encode(p)
        return SiglipEncoderOutput(x, None if self.pooler is None else self.pooler(x))


class SiglipForImageClassification(clip.CLIPVision):
    """A linear layer on the mean of the patches."""

    config_class = SiglipConfig
    name_map = replace(NAME_MAP, ignored=(*clip.TEXT.ignored[2:], r"^text_model\.", r"^vision_model\.head\."))
    only_saved = (r"^vision_model\.head\.",)

    def __init__(self, w: Weights, cfg: SiglipConfig):
        self.config = cfg
        self.base_model = SiglipVisionModel(w / "vision_model", cfg.vision_config, pooler=False)
        self.classifier = Linear(w / "classifier", cfg.vision_config.hidden_size, cfg.num_labels)

    def forward(self, p: ImageInputs) -> Array:
        """-> logits (C, L)."""
        return self.classifier(ops.mean(self.base_model.encode(p), 1))


class SiglipModel(DualEncoder):
    """Both encoders, and the logit of each pair of an image and a text: it is about that pair alone."""

    config_class = SiglipConfig
    name_map = NAME_MAP
    scores = "sigmoid"

    def __init__(self, w: Weights, cfg: SiglipConfig):
        self.config = cfg
        self.text_model = SiglipTextModel(w / "text_model", cfg.text_config)
        self.vision_model = SiglipVisionModel(w / "vision_model", cfg.vision_config)
        self.scale, self.bias = w.get("logit_scale", (1,)), w.get("logit_bias", (1,))

    def text_embeds(self, t: TextInputs) -> Array:
        return unit_length(self.text_model.forward(t).pooler_output)

    def image_embeds(self, p: ImageInputs) -> Array:
        return unit_length(self.vision_model.forward(p).pooler_output)

    def compare(self, v: Vectors) -> Logits:
        image, text, scale = *v, ops.exp(self.scale)
        of_image, of_text = ops.linear(image, text), ops.linear(text, image)
        return Logits(of_image * scale + self.bias, of_text * scale + self.bias)
