"""SAM (Kirillov et al. 2023, https://arxiv.org/abs/2304.02643): an encoder of images (vision.py), one of points, boxes
and coarse masks, and a decoder in which the tokens of prompts and masks, and the image, attend to each other.

Shapes: N images, h w patches, C channels of what both encoders give, F mlp_dim; M objects of an image, R = N M, P
tokens of prompts, T tokens in all, J masks of an object.
"""

from __future__ import annotations

import math
from typing import Any

from ... import ops
from ...inputs import ImageInputs
from ...inputs.mask_generation import ImageFeatures, MaskGenerator, MaskOutput, PromptInputs
from ...nn import Conv2d, ConvTranspose2d, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from .config import SamConfig, SamMaskDecoderConfig, SamPromptEncoderConfig
from .vision import NORM_EPS, VisionEncoder

NAME_MAP = NameMap(prefix="sam", base=("shared_image_embedding", "vision_encoder", "prompt_encoder", "mask_decoder"))
TIED_WEIGHTS = {"prompt_encoder.shared_embedding.positional_embedding": "shared_image_embedding.positional_embedding"}
FINAL_EPS = 1e-5  # for the last norm of tokens, which no field of the config is about


def fourier_features(points: Array, directions: Array) -> Array:
    """Random Fourier features (Tancik et al. 2020, https://arxiv.org/abs/2006.10739) of points (..., 2), x and y as
    parts of the image; directions (2, C / 2) -> (..., C).
    """
    at = 2 * points - 1
    waves = ops.sinusoids(
        2 * math.pi * (at[..., :1] * directions[0] + at[..., 1:] * directions[1]), 2, directions
    )  # (..., C / 2, 2)
    return ops.cat([waves[..., 0], waves[..., 1]], -1)


class MaskEmbedding(Module):
    """Coarse masks of an image's objects -> vectors of its patches."""

    def __init__(self, w: Weights, cfg: SamPromptEncoderConfig):
        m, self.act = cfg.mask_input_channels, ops.activation(cfg.hidden_act)
        self.conv1 = Conv2d(w / "conv1", 1, m // 4, 2, stride=2)
        self.norm1 = LayerNorm(w / "layer_norm1", m // 4, cfg.layer_norm_eps)
        self.conv2 = Conv2d(w / "conv2", m // 4, m, 2, stride=2)
        self.norm2 = LayerNorm(w / "layer_norm2", m, cfg.layer_norm_eps)
        self.conv3 = Conv2d(w / "conv3", m, cfg.hidden_size, 1)

    def __call__(self, masks: Array) -> Array:
        """masks (N, 4 h, 4 w) -> (N, h, w, C)."""
        x = ops.activate(self.norm1(self.conv1(masks[..., None])), self.act)
        return self.conv3(ops.activate(self.norm2(self.conv2(x)), self.act))


class PromptEncoder(Module):
    def __init__(self, w: Weights, cfg: SamPromptEncoderConfig):
        C, self.size = cfg.hidden_size, cfg.image
        self.directions = w.get("shared_embedding.positional_embedding", (2, C // 2))
        self.kinds = self.read_kinds(w, C)
        self.nowhere = w.get("not_a_point_embed.weight", (1, C))
        self.no_mask = w.get("no_mask_embed.weight", (1, C))
        self.mask = MaskEmbedding(w / "mask_embed", cfg)

    def read_kinds(self, w: Weights, C: int) -> list[Array]:
        """The vectors of the labels 0 ... 3."""
        return [w.get(f"point_embed.{i}.weight", (1, C)) for i in range(4)]

    def __call__(self, p: PromptInputs) -> Array:
        """-> (N, M, P, C): the features of each point's place and the vector of its label; of no place the label's."""
        x, y = ((p.input_points[..., i : i + 1] + 0.5) / self.size[1 - i] for i in range(2))
        places = fourier_features(ops.cat([x, y], -1), self.directions)
        kinds = ops.cat([self.nowhere * 0, self.nowhere, *self.kinds], 0)  # of the labels -10, -1, 0, ... 3
        label, has_place = p.input_labels, (p.input_labels >= 0)[..., None]
        kind = ops.embedding(ops.where(label < -1, label * 0, label + 2), kinds, "input_labels")
        return ops.where(has_place, places, places * 0) + kind

    def dense(self, masks: Array | None) -> Array:
        """What is added to the patches: (N, h, w, C) of masks, or (1, C)."""
        return self.no_mask if masks is None else self.mask(masks)


class TokenAttention(Module):
    """Attention of one sequence to another, in D / rate features."""

    out_name = "out_proj"

    def __init__(self, w: Weights, cfg: SamMaskDecoderConfig, rate: int):
        C, self.heads = cfg.hidden_size, cfg.num_attention_heads
        self.q, self.k, self.v = (Linear(w / f"{name}_proj", C, C // rate) for name in "qkv")
        self.out = Linear(w / self.out_name, C // rate, C)

    def __call__(self, q: Array, k: Array, v: Array) -> Array:
        """q (R, T, C), k and v (R, S, C) -> (R, T, C)."""
        parts = self.q(q), self.k(k), self.v(v)
        a = ops.attention(*(x.reshape(*x.shape[:2], self.heads, -1) for x in parts))
        return self.out(a.reshape(*a.shape[:2], -1))


class TwoWayLayer(Module):
    """Tokens attend to each other and to the image, and the image to the tokens."""

    attention = TokenAttention
    mlp_names = "lin1", "lin2"

    def __init__(self, w: Weights, cfg: SamMaskDecoderConfig, is_first: bool):
        C, F, eps, rate = cfg.hidden_size, cfg.mlp_dim, cfg.layer_norm_eps, cfg.attention_downsample_rate
        self.is_first = is_first
        self.self_attention = self.attention(w / "self_attn", cfg, 1)
        self.to_image = self.attention(w / "cross_attn_token_to_image", cfg, rate)
        self.to_tokens = self.attention(w / "cross_attn_image_to_token", cfg, rate)
        up, down = self.mlp_names
        self.up, self.down = Linear(w / "mlp" / up, C, F, act=cfg.hidden_act), Linear(w / "mlp" / down, F, C)
        self.norm1, self.norm2, self.norm3, self.norm4 = (LayerNorm(w / f"layer_norm{i}", C, eps) for i in (1, 2, 3, 4))

    def __call__(self, t: Array, x: Array, prompts: Array, positions: Array) -> tuple[Array, Array]:
        """Tokens t (R, T, C), which began as `prompts`, and patches x (R, h w, C) at positions (h w, C) -> both."""
        if self.is_first:  # without a residual
            t = self.norm1(self.self_attention(t, t, t))
        else:
            q = t + prompts
            t = self.norm1(self.self_attention(q, q, t), residual=t)
        t = self.norm2(self.to_image(t + prompts, x + positions, x), residual=t)
        t = self.norm3(self.down(self.up(t)), residual=t)
        x = self.norm4(self.to_tokens(x + positions, t + prompts, t), residual=x)
        return t, x


class TwoWayTransformer(Module):
    layer = TwoWayLayer

    def __init__(self, w: Weights, cfg: SamMaskDecoderConfig):
        self.layers = [self.layer(w / "layers" / i, cfg, i == 0) for i in range(cfg.num_hidden_layers)]
        self.to_image = self.layer.attention(w / "final_attn_token_to_image", cfg, cfg.attention_downsample_rate)
        self.norm = LayerNorm(w / "layer_norm_final_attn", cfg.hidden_size, FINAL_EPS)

    def __call__(self, prompts: Array, x: Array, positions: Array) -> tuple[Array, Array]:
        """prompts (R, T, C), x (R, h w, C), positions (h w, C) -> tokens (R, T, C), patches (R, h w, C)."""
        t = prompts
        for layer in self.layers:
            t, x = layer(t, x, prompts, positions)
        return self.norm(self.to_image(t + prompts, x + positions, x), residual=t), x


class FeedForward(Module):
    """Linear layers with ReLU between them."""

    def __init__(self, w: Weights, d_in: int, d: int, d_out: int, depth: int):
        self.first = Linear(w / "proj_in", d_in, d, act="relu")
        self.middle = [Linear(w / "layers" / i, d, d, act="relu") for i in range(depth - 2)]
        self.last = Linear(w / "proj_out", d, d_out)

    def __call__(self, x: Array) -> Array:
        """x (..., d_in) -> (..., d_out)."""
        x = self.first(x)
        for layer in self.middle:
            x = layer(x)
        return self.last(x)


class MaskDecoder(Module):
    """Each mask has a token, of which a vector is made whose products with the pixels are the mask."""

    transformer_class = TwoWayTransformer

    def __init__(self, w: Weights, cfg: SamMaskDecoderConfig):
        C, J = cfg.hidden_size, cfg.num_multimask_outputs + 1
        self.iou_token = w.get("iou_token.weight", (1, C))
        self.mask_tokens = w.get("mask_tokens.weight", (J, C))
        self.transformer = self.transformer_class(w / "transformer", cfg)
        self.up = ConvTranspose2d(w / "upscale_conv1", C, C // 4, 2, 2)
        self.up_norm = LayerNorm(w / "upscale_layer_norm", C // 4, NORM_EPS)
        self.up_again = ConvTranspose2d(w / "upscale_conv2", C // 4, C // 8, 2, 2)
        self.of_masks = [FeedForward(w / "output_hypernetworks_mlps" / i, C, C, C // 8, 3) for i in range(J)]
        self.iou = FeedForward(w / "iou_prediction_head", C, cfg.iou_head_hidden_dim, J, cfg.iou_head_depth)

    def __call__(self, x: Array, positions: Array, prompts: Array) -> MaskOutput:
        """x (N, h, w, C), positions (h w, C), prompts (N, M, P, C) -> J masks of each object."""
        t, pixels = self.decode(ops.cat([self.iou_token, self.mask_tokens], 0), x, positions, prompts)
        return MaskOutput(*self.read(t, pixels, prompts))

    def decode(
        self, own: Array, x: Array, positions: Array, prompts: Array, finer: Array | None = None, finest: Any = None
    ) -> tuple[Array, Array]:
        """The decoder's own tokens (T - P, C) before those of prompts, and what is added to the pixels on their way up,
        (N, 2 h, 2 w, C / 4) and (N, 4 h, 4 w, C / 8) -> tokens (R, T, C), pixels (R, 4 h, 4 w, C / 8).
        """
        (_, h, w, C), (_, M, P, _) = x.shape, prompts.shape
        x = per_object(x, M).reshape(-1, h * w, C)
        own = own[None] + ops.zeros((x.shape[0], 1, 1), x)
        t, x = self.transformer(ops.cat([own, prompts.reshape(-1, P, C)], 1), x, positions)
        y = self.up(x.reshape(-1, h, w, C))
        y = self.up_again(ops.activate(self.up_norm(y if finer is None else y + per_object(finer, M)), "gelu"))
        return t, ops.activate(y if finest is None else y + per_object(finest, M), "gelu")

    def read(self, t: Array, pixels: Array, prompts: Array) -> tuple[Array, Array]:
        """Tokens (R, T, C), of the scores and then of the masks, and pixels (R, y, x, C / 8) -> scores (N, M, J), masks
        (N, M, J, y, x).
        """
        vectors = ops.cat([mlp(t[:, i + 1 : i + 2]) for i, mlp in enumerate(self.of_masks)], 1)  # (R, J, C / 8)
        (_, y, x, c), (N, M), J = pixels.shape, prompts.shape[:2], len(self.of_masks)
        masks = ops.scores(vectors[:, :, None], pixels.reshape(-1, y * x, 1, c))
        return self.iou(t[:, 0]).reshape(N, M, J), masks.reshape(N, M, J, y, x)


def per_object(x: Array, M: int) -> Array:
    """What is of an image, for each of its objects: (N, Y, X, C) -> (N M, Y, X, C)."""
    return (x[:, None] + ops.zeros((1, M, 1, 1, 1), x)).reshape(-1, *x.shape[1:])


class SamModel(MaskGenerator):
    config_class = SamConfig
    name_map = NAME_MAP
    tied = TIED_WEIGHTS
    record = ImageFeatures

    def __init__(self, w: Weights, cfg: SamConfig):
        self.config = cfg
        self.directions = w.get("shared_image_embedding.positional_embedding", (2, cfg.vision_config.num_pos_feats))
        self.vision_model = VisionEncoder(w / "vision_encoder", cfg.vision_config)
        self.prompt_encoder = PromptEncoder(w / "prompt_encoder", cfg.prompt_encoder_config)
        self.mask_decoder = MaskDecoder(w / "mask_decoder", cfg.mask_decoder_config)

    def image_features(self, p: ImageInputs) -> ImageFeatures:
        x = self.vision_model.encode(p)
        return ImageFeatures(x.reshape(x.shape[0], *p.grid, -1))

    def masks(self, features: ImageFeatures, prompts: PromptInputs) -> MaskOutput:
        x = features.image_embeddings + self.prompt_encoder.dense(prompts.input_masks)
        positions = fourier_features(ops.centres(self.config.vision_config.grid, x), self.directions)
        return self.mask_decoder(x, positions, self.prompt_encoder(prompts))

    def forward(self, p: ImageInputs, prompts: PromptInputs) -> MaskOutput:
        return self.masks(self.image_features(p), prompts)
