"""Parakeet (Rekesh et al. 2023, https://arxiv.org/abs/2305.05084): a Conformer over spectrograms of which convolutions
have made an eighth of the frames, that writes pieces of words by CTC.

Shapes: B recordings, W frames, N mel bins, T states, C channels, D hidden_size, V vocab_size.
"""

from __future__ import annotations

from typing import NamedTuple

from ... import ops
from ...inputs.frames import FrameInputs, FrameModel
from ...nn import Conv2d, DepthwiseConv2d, Dropout, Module
from ...typing import Array
from ...weights import NameMap, Weights
from .config import ParakeetCTCConfig, ParakeetEncoderConfig
from .layers import Layer

NAME_MAP = NameMap(
    prefix="encoder",
    base=("subsampling", "layers", "encode_positions"),
    ignored=(r"\.num_batches_tracked$", r"^ctc_head\."),  # a counter of training; the head
)


class ParakeetEncoderOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D)


def halve(count):
    """The frames, or bins, after a convolution that halves them: a number, or an array of them."""
    return (count + 1) // 2


def silence_ends(x: Array, lengths: Array | None) -> Array:
    """x (B, W, N, C), lengths (B,): the frames of each recording -> x with zeros after them."""
    if lengths is None:
        return x
    is_heard = ops.arange(x.shape[1], x) < lengths[:, None]
    return ops.where(is_heard[:, :, None, None], x, ops.zeros((1,), x))


class Embeddings(Module):
    """Convolutions, each of which halves the number of frames and of bins, and a projection of all that is left of a
    frame.
    """

    def __init__(self, w: Weights, cfg: ParakeetEncoderConfig):
        C, D, N = cfg.subsampling_conv_channels, cfg.hidden_size, cfg.num_mel_bins // cfg.subsampling_factor
        self.first = Conv2d(w / "layers.0", 1, C, 3, 2, 1, act="relu")
        at = range(2, 3 * cfg.halvings - 1, 3)  # an activation, which has no weights, is counted too
        self.depthwise = [DepthwiseConv2d(w / "layers" / i, C, 3, 2, padding=1) for i in at]
        self.pointwise = [Conv2d(w / "layers" / (i + 1), C, C, 1, act="relu") for i in at]
        self.weight, self.bias = w.get("linear.weight", (D, C * N)), w.get("linear.bias", (D,))
        self.scale, self.dropout = D**0.5 if cfg.scale_input else 1.0, Dropout(cfg.dropout)

    def __call__(self, features: Array, lengths: Array | None) -> Array:
        """features (B, W, N), lengths (B,): the frames of each recording -> (B, T, D)."""
        x, lengths = self.first(features[..., None]), None if lengths is None else halve(lengths)
        x = silence_ends(x, lengths)
        for over_images, over_channels in zip(self.depthwise, self.pointwise, strict=True):
            lengths = None if lengths is None else halve(lengths)
            x = silence_ends(over_channels(over_images(x)), lengths)
        # A row of weights has the bins of one channel after those of another.
        weight = self.weight.reshape(self.weight.shape[0], x.shape[3], 1, x.shape[2])
        return self.dropout(ops.conv2d(x, weight, self.bias)[:, :, 0] * self.scale)


class ParakeetPretrained(FrameModel):
    name_map = NAME_MAP
    only_saved = (r"\.num_batches_tracked$",)

    def count_states(self, frames):
        for _ in range(self.config.halvings):
            frames = halve(frames)
        return frames


class ParakeetEncoder(ParakeetPretrained):
    config_class = ParakeetEncoderConfig
    is_base_model = True

    def __init__(self, w: Weights, cfg: ParakeetEncoderConfig):
        self.config, self.embeddings = cfg, Embeddings(w / "subsampling", cfg)
        self.layers = [Layer(w / "layers" / i, cfg) for i in range(cfg.num_hidden_layers)]
        self.position_dropout = Dropout(cfg.dropout_positions)

    def encode(self, s: FrameInputs) -> Array:
        """-> (B, T, D)."""
        x = self.embeddings(s.input_features, None if s.mask is None else ops.cumsum(s.mask, 1)[:, -1])
        T, mask = x.shape[1], self.state_mask(s, x.shape[1])
        # A query's position less a key's, since the sines are of how far a key was before.
        positions = self.position_dropout(ops.sinusoids(T - ops.arange(2 * T, x), x.shape[2], x))
        for layer in self.layers:
            x = layer(x, positions, mask)
        return x

    def forward(self, s: FrameInputs) -> ParakeetEncoderOutput:
        return ParakeetEncoderOutput(self.encode(s))


class ParakeetForCTC(ParakeetPretrained):
    """The logits of each state's piece, for CTC."""

    config_class = ParakeetCTCConfig

    def __init__(self, w: Weights, cfg: ParakeetCTCConfig):
        self.config, self.base_model = cfg, ParakeetEncoder(w / "encoder", cfg.encoder_config)
        self.weight = w.get("ctc_head.weight", (cfg.vocab_size, cfg.hidden_size, 1))
        self.bias = w.get("ctc_head.bias", (cfg.vocab_size,))

    def forward(self, s: FrameInputs) -> Array:
        """-> logits (B, T, V)."""
        return ops.linear(self.base_model.encode(s), self.weight.reshape(*self.weight.shape[:2]), self.bias)
