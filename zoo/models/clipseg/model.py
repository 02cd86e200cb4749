"""CLIPSeg (Lüddecke and Ecker 2021, https://arxiv.org/abs/2112.10003): CLIP, and a small decoder that finds in an image
what a text says.  It reads the states of some of the image's layers, from the last to the first, and the text's vector
scales and shifts (FiLM, Perez et al. 2017, https://arxiv.org/abs/1709.07871) its own states in one of its layers.

Images may have any size; CLIP's positions are resized.

Shapes: B images and the text of each, N = h w patches and the class token, D hidden_size of the images' encoder, R
reduce_dim, P width of the vectors, K layers of the decoder, Y and X height and width of a mask.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ... import ops
from ...inputs import Context, ImageInputs, TextInputs
from ...inputs.text_masks import ImageStates, MaskInputs, TextMaskModel
from ...nn import Conv2d, ConvTranspose2d, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..clip import model as clip
from .config import CLIPSegConfig, CLIPSegTextConfig, CLIPSegVisionConfig

NAME_MAP = replace(clip.NAME_MAP, prefix="clip", ignored=(r"(^|\.)embeddings\.position_ids$", r"^decoder\."))
SCALE = r"^(clip\.)?logit_scale$"  # read by CLIP alone


class CLIPSegTextModel(clip.CLIPTextModel):
    config_class = CLIPSegTextConfig


class CLIPSegVisionModel(clip.CLIPVisionModel):
    config_class = CLIPSegVisionConfig
    any_size, inputs = True, ()


class CLIPSegModel(clip.CLIPModel):
    """CLIP itself: the similarity of each image and each text."""

    config_class = CLIPSegConfig
    name_map = NAME_MAP
    inputs = ()

    def __init__(self, w: Weights, cfg: CLIPSegConfig):
        self.config, P = cfg, cfg.projection_dim
        self.text_model = CLIPSegTextModel(w / "text_model", cfg.text_config)
        self.vision_model = CLIPSegVisionModel(w / "vision_model", cfg.vision_config)
        self.text_projection = Linear(w / "text_projection", cfg.text_config.hidden_size, P, bias=False)
        self.image_projection = Linear(w / "visual_projection", cfg.vision_config.hidden_size, P, bias=False)
        self.scale = w.get("logit_scale", ())


class DecoderLayer(Module):
    """CLIP's layer with its norms after the attention and after the MLP."""

    def __init__(self, w: Weights, cfg: CLIPSegConfig):
        R, F, eps = cfg.reduce_dim, cfg.decoder_intermediate_size, cfg.vision_config.layer_norm_eps
        self.heads = cfg.decoder_num_attention_heads
        self.qkv = Linear.fuse(w / "self_attn", ["q_proj", "k_proj", "v_proj"], R, [R, R, R])
        self.out = Linear(w / "self_attn.out_proj", R, R)
        self.attention_norm, self.mlp_norm = LayerNorm(w / "layer_norm1", R, eps), LayerNorm(w / "layer_norm2", R, eps)
        self.up, self.down = Linear(w / "mlp.fc1", R, F, act="relu"), Linear(w / "mlp.fc2", F, R)

    def __call__(self, x: Array) -> Array:
        """x (B, N, R) -> (B, N, R)."""
        a = ops.attention(*ops.split_heads(self.qkv(x), self.heads))
        x = self.attention_norm(self.out(a.reshape(x.shape)), residual=x)
        return self.mlp_norm(self.down(self.up(x)), residual=x)


def pixels_of_patches(w: Weights, cfg: CLIPSegConfig) -> list[Any]:
    """The convolutions from patches (B, h, w, R) to logits (B, Y, X, 1)."""
    R, p = cfg.reduce_dim, cfg.vision_config.patch[0]
    if not cfg.use_complex_transposed_convolution:
        return [ConvTranspose2d(w, R, 1, p, stride=p)]
    return [
        Conv2d(w / 0, R, R, 3, padding=1, act="relu"),
        ConvTranspose2d(w / 2, R, R // 2, p // 4, stride=p // 4, act="relu"),
        ConvTranspose2d(w / 4, R // 2, 1, p // 4, stride=p // 4),
    ]


class Decoder(Module):
    def __init__(self, w: Weights, cfg: CLIPSegConfig):
        D, R, P, K = cfg.vision_config.hidden_size, cfg.reduce_dim, cfg.projection_dim, len(cfg.extract_layers)
        self.width, self.conditional_layer = R, cfg.conditional_layer
        self.reduces = [Linear(w / "reduces" / i, D, R) for i in range(K)]
        self.decoder_layers = [DecoderLayer(w / "layers" / i, cfg) for i in range(K)]
        self.film_mul, self.film_add = Linear(w / "film_mul", P, R), Linear(w / "film_add", P, R)
        self.convolutions = pixels_of_patches(w / "transposed_convolution", cfg)

    def reduce(self, states: list[Array]) -> Array:
        """States (B, N, D) of the layers that are read, the last first -> (B, N, K R)."""
        return ops.cat([reduce(x) for reduce, x in zip(self.reduces, states, strict=True)], 2)

    def __call__(self, m: MaskInputs) -> Array:
        """-> logits (B, Y, X)."""
        (B, h, w, E), R = m.patches.shape, self.width
        known = ops.cat([m.first[:, None], m.patches.reshape(B, h * w, E)], 1)
        x = None
        for i, layer in enumerate(self.decoder_layers):
            own = known[:, :, i * R : (i + 1) * R]
            x = own if x is None else own + x
            if i == self.conditional_layer:
                text = m.conditional_embeddings
                x = self.film_mul(text)[:, None] * x + self.film_add(text)[:, None]
            x = layer(x)
        assert x is not None
        y = x[:, 1:].reshape(B, h, w, R)
        for convolution in self.convolutions:
            y = convolution(y)
        return y[:, :, :, 0]


class CLIPSegForImageSegmentation(TextMaskModel):
    config_class = CLIPSegConfig
    name_map = replace(NAME_MAP, ignored=(clip.BUFFER, SCALE))
    vision_model: Any
    only_saved = (SCALE,)
    inputs = ()

    def __init__(self, w: Weights, cfg: CLIPSegConfig):
        self.config, P, clip_w = cfg, cfg.projection_dim, w / "clip"
        self.text_model = CLIPSegTextModel(clip_w / "text_model", cfg.text_config)
        self.vision_model = CLIPSegVisionModel(clip_w / "vision_model", cfg.vision_config)
        self.text_projection = Linear(clip_w / "text_projection", cfg.text_config.hidden_size, P, bias=False)
        self.image_projection = Linear(clip_w / "visual_projection", cfg.vision_config.hidden_size, P, bias=False)
        self.mask_decoder = Decoder(w / "decoder", cfg)

    def conditional_embeddings(self, t: TextInputs) -> Array:
        """-> (B, P), not of length 1."""
        return self.text_projection(self.text_model.forward(t).pooler_output)

    def pooled_output(self, p: ImageInputs) -> Array:
        """-> (B, P), not of length 1."""
        return self.image_projection(self.vision_model.forward(p).pooler_output)

    def image_states(self, p: ImageInputs) -> ImageStates:
        x, found, wanted = self.vision_model.pre_norm(self.vision_model.embeddings(p)), {}, self.config.extract_layers
        for i, layer in enumerate(self.vision_model.layers[: max(wanted) + 1]):
            x = found[i] = layer(x, Context())
        y, (h, w) = self.mask_decoder.reduce([found[i] for i in reversed(wanted)]), p.grid
        return ImageStates(y[:, 0], y[:, 1:].reshape(y.shape[0], h, w, y.shape[2]))

    def logits(self, m: MaskInputs) -> Array:
        return self.mask_decoder(m)
