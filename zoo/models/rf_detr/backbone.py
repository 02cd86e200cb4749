"""RF-DETR's backbone (https://arxiv.org/abs/2511.09554): a DINOv2 most of whose layers see windows of the image, and
convolutions that make one map of features of several of its hidden states.

Shapes: B batch, h and w rows and columns of patches, S windows of an image, T tokens of a window: its class token and
its patches; D hidden_size, d d_model, E channels between the projector's convolutions.
"""

from __future__ import annotations

from collections.abc import Iterator

from ... import ops
from ...inputs import ImageInputs
from ...nn import Conv2d, LayerNorm, Module
from ...typing import Array
from ...weights import Weights
from ..dinov2 import model as dinov2
from ..dinov2.registers import Positions
from ..vit.backbone import select_states
from .config import RfDetrConfig, RfDetrDinov2Config


class Embeddings(dinov2.Embeddings):
    """The class token and the patches, with their positions added; in each window there is a class token."""

    def __init__(self, w: Weights, cfg: RfDetrDinov2Config):
        super().__init__(w, cfg, "mask_token" in w)
        self.positions, self.windows = Positions(w, "position_embeddings", cfg, 1), cfg.num_windows

    def __call__(self, p: ImageInputs) -> Array:
        """-> (B S, T, D)."""
        assert self.positions is not None
        of_class, of_patches = self.positions(p.grid)
        patches, prefix = self.patches(p) + of_patches, self.prefix_tokens[0] + of_class
        image = patches.reshape(patches.shape[0], *p.grid, -1)
        patches = ops.windows(image, p.grid[0] // self.windows)
        return self.dropout(ops.cat([prefix + ops.zeros((patches.shape[0], 1, 1), prefix), patches], 1))


class Layer(dinov2.Layer):
    def __init__(self, w: Weights, cfg: RfDetrDinov2Config, number: int):
        super().__init__(w, cfg)
        self.joined = 1 if cfg.sees_windows(number) else cfg.num_windows**2

    def __call__(self, x: Array) -> Array:
        """x (B S, T, D) -> (B S, T, D); the windows of an image are one sequence, where they are joined."""
        S, T, D = x.shape
        return super().__call__(x.reshape(S // self.joined, T * self.joined, D)).reshape(x.shape)


class NormedConv(Module):
    """act(norm(convolution))."""

    def __init__(self, w: Weights, cfg: RfDetrConfig, d_in: int, d_out: int, kernel: int):
        self.conv = Conv2d(w / "conv", d_in, d_out, kernel, padding=kernel // 2, bias=False)
        self.norm, self.act = LayerNorm(w / "bn", d_out, cfg.layer_norm_eps), ops.activation(cfg.activation_function)

    def __call__(self, x: Array) -> Array:
        """x (B, h, w, d_in) -> (B, h, w, d_out)."""
        return ops.activate(self.norm(self.conv(x)), self.act)


class Projector(Module):
    """Hidden states side by side to features; all that is made of them on the way is put side by side, too."""

    def __init__(self, w: Weights, cfg: RfDetrConfig):
        d, E, blocks = cfg.d_model, cfg.inner, cfg.c2f_num_blocks
        d_in, inside = cfg.network.hidden_size * len(cfg.network.outputs), w / "stages.0.0"
        self.first = NormedConv(inside / "cv1", cfg, d_in, 2 * E, 1)
        self.blocks = [[NormedConv(inside / "m" / i / f"cv{j}", cfg, E, E, 3) for j in (1, 2)] for i in range(blocks)]
        self.last = NormedConv(inside / "cv2", cfg, (2 + blocks) * E, d, 1)
        self.norm = LayerNorm(w / "stages.0.1", d, 1e-6)

    def __call__(self, x: Array) -> Array:
        """x (B, h, w, D of each state) -> (B, h, w, d)."""
        parts = [self.first(x)]
        y = parts[0][..., parts[0].shape[3] // 2 :]
        for first, second in self.blocks:
            y = second(first(y))
            parts.append(y)
        return self.norm(self.last(ops.cat(parts, 3)))


class Backbone(Module):
    def __init__(self, w: Weights, cfg: RfDetrConfig):
        own, self.config = w / "encoder.encoder", cfg.network
        self.embeddings = Embeddings(own / "embeddings", cfg.network)
        self.layers = [Layer(own / "encoder.layer" / i, cfg.network, i) for i in range(cfg.network.num_hidden_layers)]
        self.norm = LayerNorm(own / "layernorm", cfg.network.hidden_size, cfg.network.layer_norm_eps)
        self.projector = Projector(w / "projector", cfg)

    def hidden_states(self, p: ImageInputs) -> Iterator[Array]:
        """Yield the first layer's input, then the output of each layer, all (B S, T, D)."""
        x = self.embeddings(p)
        yield x
        for layer in self.layers:
            x = layer(x)
            yield x

    def __call__(self, p: ImageInputs) -> Array:
        """-> (B, h, w, d)."""
        found = []
        for x in select_states(self.hidden_states(p), self.config.outputs):
            x = self.norm(x) if self.config.apply_layernorm else x
            found.append(ops.from_windows(x[:, 1:], p.grid[0] // self.config.num_windows, p.grid))
        return self.projector(ops.cat(found, 3))
