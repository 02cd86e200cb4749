"""DETR's segmentation (Carion et al. 2020, https://arxiv.org/abs/2005.12872, appendix): each query's attention to the
image, drawn larger by features of earlier and earlier stages of the backbone, is the mask of its object.

Shapes: as in model.py; H heads, y and x height and width of an earlier stage.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ... import ops
from ...errors import UnsupportedError
from ...inputs import ImageInputs
from ...nn import Conv2d, GroupNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from .config import DetrConfig
from .model import EPS, NAME_MAP, DetrForObjectDetection, DetrModel, DetrPretrained, Sight

# Since version 5 transformers has other names for these parts in memory than in its files.
BLOCKS = ("conv1", "conv2", *(rf"fpn_stages\.{i}\.refine" for i in range(3)))
MEMORY_NAMES = {
    **{rf"^mask_head\.{name}\.conv\.": f"mask_head.lay{i}." for i, name in enumerate(BLOCKS, 1)},
    **{rf"^mask_head\.{name}\.norm\.": f"mask_head.gn{i}." for i, name in enumerate(BLOCKS, 1)},
    **{rf"^mask_head\.fpn_stages\.{i}\.fpn_adapter\.": f"mask_head.adapter{i + 1}." for i in range(3)},
    r"^mask_head\.output_conv\.": "mask_head.out_lay.",
    r"^bbox_attention\.([qk])_proj\.": r"bbox_attention.\1_linear.",
}


class DetrSegmentationOutput(NamedTuple):
    logits: Array  # (B, Q, L + 1): the last is that of no object
    pred_boxes: Array  # (B, Q, 4): centre x and y, width and height, as parts of the image without its padding
    pred_masks: Array  # (B, Q, Y / 4, X / 4): logits of the object of each query
    last_hidden_state: Array  # (B, Q, D)
    encoder_last_hidden_state: Array  # (B, N, D)


class AttentionMap(Module):
    """The places that each query attends to: an attention's weights, with one softmax over all heads."""

    def __init__(self, w: Weights, cfg: DetrConfig):
        D = cfg.d_model
        self.heads = cfg.encoder_attention_heads
        self.q, self.k = Linear(w / "q_linear", D, D), Linear(w / "k_linear", D, D)
        self.scale = (D // self.heads) ** -0.5

    def __call__(self, x: Array, seen: Sight) -> Array:
        """x (B, Q, D) -> (B, Q, N, H)."""
        q, k = (y.reshape(*y.shape[:2], self.heads, -1) for y in (self.q(x), self.k(seen.memory)))
        scores = ops.scores(q * self.scale, k)
        if seen.mask is not None:
            scores = ops.where(seen.mask[:, None, :, None], scores, scores - float("inf"))
        B, Q, N, H = scores.shape
        return ops.softmax(scores.reshape(B, Q, N * H)).reshape(B, Q, N, H)


class Block(Module):
    """relu(norm(a convolution that keeps an image's size))."""

    def __init__(self, w: Weights, number: int, c_in: int, c_out: int, act: str):
        self.conv = Conv2d(w / f"lay{number}", c_in, c_out, 3, padding=1)
        self.norm, self.act = GroupNorm(w / f"gn{number}", c_out, min(8, c_out), EPS), ops.activation(act)

    def __call__(self, x: Array) -> Array:
        """x (B Q, y, x, c_in) -> (B Q, y, x, c_out)."""
        return ops.activate(self.norm(self.conv(x)), self.act)


class MaskHead(Module):
    def __init__(self, w: Weights, cfg: DetrConfig):
        D, act, widths = cfg.d_model, cfg.activation_function, cfg.resnet.hidden_sizes
        if len(widths) != 4:
            raise UnsupportedError(f"a segmentation on {len(widths)} stages is not implemented, only on 4")
        inner = [D // 2, D // 4, D // 8, D // 16]
        self.first = Block(w, 1, D + cfg.encoder_attention_heads, D + cfg.encoder_attention_heads, act)
        self.second = Block(w, 2, D + cfg.encoder_attention_heads, inner[0], act)
        self.adapters = [Conv2d(w / f"adapter{i + 1}", widths[-2 - i], inner[i], 1) for i in range(3)]
        self.blocks = [Block(w, 3 + i, inner[i], inner[i + 1], act) for i in range(3)]
        self.out = Conv2d(w / "out_lay", inner[3], 1, 3, padding=1)

    def __call__(self, maps: Array, seen: Sight) -> Array:
        """maps (B, Q, N, H) -> (B, Q, y, x), as large as the first stage."""
        (B, Q, _, H), (_, h, w, D) = maps.shape, seen.features.shape
        features = seen.features[:, None] + ops.zeros((1, Q, 1, 1, 1), maps)
        x = ops.cat([features.reshape(B * Q, h, w, D), maps.reshape(B * Q, h, w, H)], -1)
        x = self.second(self.first(x))
        for adapter, block, stage in zip(self.adapters, self.blocks, seen.stages[-2::-1], strict=True):
            stage = adapter(stage)[:, None]
            _, _, y, x_, C = stage.shape
            x = ops.interpolate(x, (y, x_), "nearest").reshape(B, Q, y, x_, C)
            x = block((x + stage).reshape(B * Q, y, x_, C))
        x = self.out(x)
        return x.reshape(B, Q, *x.shape[1:3])


class DetrForSegmentation(DetrPretrained):
    name_map = replace(NAME_MAP, prefix="detr.model", renames={**NAME_MAP.renames, **MEMORY_NAMES})

    def __init__(self, w: Weights, cfg: DetrConfig):
        self.config = cfg
        self.detr = DetrForObjectDetection(w / "detr", cfg)
        self.bbox_attention = AttentionMap(w / "bbox_attention", cfg)
        self.mask_head = MaskHead(w / "mask_head", cfg)

    @property
    def base_model(self) -> DetrModel:
        return self.detr.base_model

    def forward(self, p: ImageInputs) -> DetrSegmentationOutput:
        """-> one object and its mask for each query."""
        found, seen = self.base_model.look(p)
        x = found.last_hidden_state
        masks = self.mask_head(self.bbox_attention(x, seen), seen)
        return DetrSegmentationOutput(*self.detr.objects(x), masks, x, seen.memory)
