"""PP-LCNetV3, the network of PP-OCRv5's mobile models: PP-LCNet (https://arxiv.org/abs/2109.15099), whose convolutions
are sums of several in training, and one after it (Ding et al. 2021, https://arxiv.org/abs/2101.03697).

Images may have any size.  Channels come last.

Shapes: B batch, Y and X height and width in pixels, y and x those of a stage, d and D channels before and after.
"""

from __future__ import annotations

from ... import ops
from ...nn import BatchNorm, FoldedModule, Module
from ...typing import Array
from ...weights import Weights
from ..pp_lcnet.config import BlockSizes
from ..pp_lcnet.model import PPLCNet, PPLCNetBackbone, Squeeze
from .config import PPLCNetV3Config


class Affine(Module):
    """A factor and a summand for all of an array."""

    def __init__(self, w: Weights):
        self.scale, self.bias = w.get("scale", (1,)), w.get("bias", (1,))

    def __call__(self, x: Array) -> Array:
        return x * self.scale + self.bias


class RepLayer(FoldedModule):
    """The sum of convolutions of an image and, where it has the result's shape, of the image, each with its norm."""

    def __init__(self, w: Weights, cfg: PPLCNetV3Config, size: BlockSizes, of_channels: bool):
        """of_channels: each channel is convolved by itself; else each pixel is."""
        self.of_channels, self.stride, d, D = of_channels, size.stride, size.d_in, size.d_out
        kernel = size.kernel if of_channels else 1
        places = [(w / "conv_symmetric" / i, kernel) for i in range(cfg.conv_symmetric_num)]
        places += [(w / "conv_small_symmetric", 1)] if kernel > 1 else []
        self.weights = [(at / "convolution").get("weight", (D, 1 if of_channels else d, k, k)) for at, k in places]
        self.norms = [BatchNorm(at / "normalization", D) for at, _ in places]
        self.identity = BatchNorm(w / "identity", d) if size.keeps_shape else None
        self.affine = Affine(w / "lab")
        # Its weights are there behind a stride of 2 too, which has no activation.
        self.act, self.last_affine = ops.activation(cfg.hidden_act), Affine(w / "act.lab")
        self.has_act = size.stride != 2
        parts = [norm.fold(weight, None) for norm, weight in zip(self.norms, self.weights, strict=True)]
        if self.identity is not None:
            parts.append(self.identity.fold(ops.zeros((d,), self.identity.weight) + 1, None))
        weight, bias = ops.merge_convs([weight for weight, _ in parts], [bias for _, bias in parts])
        self._folded = weight * self.affine.scale, self.affine(bias)

    def convolve(self, x: Array, weight: Array, bias: Array | None = None) -> Array:
        """x (B, Y, X, d) -> (B, y, x, D)."""
        if self.of_channels:
            return ops.depthwise_conv2d(x, weight, bias, stride=self.stride)
        return ops.conv2d(x, weight, bias)

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d) -> (B, y, x, D)."""
        if self._folded is None:
            parts = [] if self.identity is None else [self.identity(x)]
            parts += [norm(self.convolve(x, weight)) for norm, weight in zip(self.norms, self.weights, strict=True)]
            y = self.affine(sum(parts[1:], parts[0]))
        else:
            y = self.convolve(x, *self._folded)
        return self.last_affine(ops.activate(y, self.act)) if self.has_act else y


class Block(Module):
    """Pixels are mixed in each channel by itself, then channels in each pixel."""

    def __init__(self, w: Weights, cfg: PPLCNetV3Config, size: BlockSizes):
        inner, outer = size._replace(d_out=size.d_in), size._replace(stride=1)
        self.depthwise = RepLayer(w / "depthwise_convolution", cfg, inner, of_channels=True)
        gate = w / "squeeze_excitation_module"
        self.gate = Squeeze(gate, size.d_in, cfg.reduction) if size.squeezes else None
        self.pointwise = RepLayer(w / "pointwise_convolution", cfg, outer, of_channels=False)

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d) -> (B, y, x, D)."""
        x = self.depthwise(x)
        return self.pointwise(x if self.gate is None else self.gate(x))


class PPLCNetV3(PPLCNet):
    """The network, which readers and detectors look through too."""

    block_class = Block
    stem_has_act = False


class PPLCNetV3Backbone(PPLCNetBackbone):
    config_class = PPLCNetV3Config
    net_class = PPLCNetV3
