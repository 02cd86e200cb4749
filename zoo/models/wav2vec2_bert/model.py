"""Wav2Vec2-BERT (Seamless Communication et al. 2023, https://arxiv.org/abs/2312.05187): a Conformer (Gulati et al.
2020, https://arxiv.org/abs/2005.08100) over frames of a spectrogram, whose convolutions see only what was before.

Shapes: B recordings, W frames, N numbers of a frame, T states, D hidden_size, V vocab_size, L labels.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from ... import ops
from ...inputs.frames import FrameInputs, FrameModel
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from .config import Wav2Vec2BertConfig
from .layers import Attention, FeedForward, Layer, gate, silence

NAME_MAP = NameMap(
    prefix="wav2vec2_bert",
    base=("feature_projection", "encoder", "adapter", "intermediate_ffn", "masked_spec_embed"),
    ignored=(r"(^|\.)masked_spec_embed$", r"^(lm_head|projector|classifier|layer_weights)"),  # of training; the heads
)


class Wav2Vec2BertModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D)
    extract_features: Array  # (B, W, N)


class Embeddings(Module):
    def __init__(self, w: Weights, cfg: Wav2Vec2BertConfig):
        N, D = cfg.frame_size, cfg.hidden_size
        self.norm = LayerNorm(w / "layer_norm", N, cfg.layer_norm_eps)
        self.projection = Linear(w / "projection", N, D, dropout=cfg.feat_proj_dropout)
        self.dropout = Dropout(cfg.hidden_dropout)

    def __call__(self, features: Array, mask: Array | None) -> Array:
        """features (B, W, N), normed, mask (B, W): false after a recording's end -> (B, W, D)."""
        return self.dropout(silence(self.projection(features), mask))


class Halving(Module):
    """A convolution over time, gated, that halves the number of states."""

    def __init__(self, w: Weights, cfg: Wav2Vec2BertConfig, D: int):
        self.weight, self.bias = w.get("weight", (2 * D, D, cfg.adapter_kernel_size)), w.get("bias", (2 * D,))
        self.stride = cfg.adapter_stride

    def __call__(self, x: Array) -> Array:
        """x (B, T, D) -> (B, T / 2 rounded up, D)."""
        size = (self.stride, 1), (self.stride // 2, 0)
        return gate(ops.conv2d(x[:, :, None], self.weight[..., None], self.bias, *size)[:, :, 0])


class AdapterLayer(Module):
    def __init__(self, w: Weights, cfg: Wav2Vec2BertConfig):
        D, eps = cfg.output_width, cfg.layer_norm_eps
        names = ("residual", "self_attn", "ffn")
        self.norms = [LayerNorm(w / f"{name}_layer_norm", D, eps) for name in names]
        self.residual, self.halve = Halving(w / "residual_conv", cfg, D), Halving(w / "self_attn_conv", cfg, D)
        self.attention = Attention(w / "self_attn", cfg, D, False)
        self.dropout, self.feed = Dropout(cfg.conformer_conv_dropout), FeedForward(w / "ffn", cfg, D, cfg.adapter_act)

    def __call__(self, x: Array, mask: Array | None) -> Array:
        """x (B, T, D), mask (B, T / 2) -> (B, T / 2, D), rounded up."""
        y = self.dropout(self.attention(self.halve(self.norms[1](x)), mask))
        x = y + self.residual(self.norms[0](x))
        return x + self.feed(self.norms[2](x))


class Adapter(Module):
    """Layers after the last, each of which halves the number of states."""

    def __init__(self, w: Weights, cfg: Wav2Vec2BertConfig):
        D, d = cfg.output_width, cfg.hidden_size
        self.projection = None if d == D else Linear(w / "proj", d, D)
        self.norm = None if d == D else LayerNorm(w / "proj_layer_norm", D, cfg.layer_norm_eps)
        self.layers = [AdapterLayer(w / "layers" / i, cfg) for i in range(cfg.num_adapter_layers)]

    def __call__(self, x: Array, lengths: Array | None) -> Array:
        """x (B, T, d), lengths (B,): the states of each recording -> (B, T', D)."""
        if self.projection is not None and self.norm is not None:
            x = self.norm(self.projection(x))
        for layer in self.layers:
            lengths = None if lengths is None else (lengths + 1) // 2
            x = layer(x, None if lengths is None else ops.arange((x.shape[1] + 1) // 2, x) < lengths[:, None])
        return x


class Wav2Vec2BertPretrained(FrameModel):
    config_class = Wav2Vec2BertConfig
    name_map = NAME_MAP
    only_saved = (r"(^|\.)masked_spec_embed$",)

    def count_states(self, frames):
        for _ in range(self.config.num_adapter_layers if self.config.add_adapter else 0):
            frames = (frames + 1) // 2
        return frames


class Wav2Vec2BertModel(Wav2Vec2BertPretrained):
    is_base_model = True

    def __init__(self, w: Weights, cfg: Wav2Vec2BertConfig):
        self.config, self.embeddings = cfg, Embeddings(w / "feature_projection", cfg)
        self.layers = [Layer(w / "encoder.layers" / i, cfg) for i in range(cfg.num_hidden_layers)]
        has_feed = cfg.use_intermediate_ffn_before_adapter
        self.feed = FeedForward(w / "intermediate_ffn", cfg, cfg.hidden_size, "relu") if has_feed else None
        self.adapter = Adapter(w / "adapter", cfg) if cfg.add_adapter else None

    def hidden_states(self, features: Array, mask: Array | None) -> Iterator[Array]:
        """Yield the first layer's input, then the output of each layer, all (B, W, D)."""
        x = self.embeddings(features, mask)
        for layer in self.layers:
            yield x
            x = layer(x, mask)
        yield x

    def forward(self, s: FrameInputs) -> Wav2Vec2BertModelOutput:
        features = self.embeddings.norm(s.input_features)
        (x,) = deque(self.hidden_states(features, s.mask), maxlen=1)
        if self.feed is not None:
            x = x + self.feed(x) * 0.5
        if self.adapter is not None:
            x = self.adapter(x, None if s.mask is None else ops.cumsum(s.mask, 1)[:, -1])
        return Wav2Vec2BertModelOutput(x, features)


class Wav2Vec2BertForCTC(Wav2Vec2BertPretrained):
    """The logits of each state's character, for CTC."""

    def __init__(self, w: Weights, cfg: Wav2Vec2BertConfig):
        cfg.positive("vocab_size")
        self.config, self.base_model = cfg, Wav2Vec2BertModel(w / "wav2vec2_bert", cfg)
        self.dropout = Dropout(cfg.final_dropout)
        D = cfg.output_width if cfg.add_adapter else cfg.hidden_size
        self.head = Linear(w / "lm_head", D, cfg.vocab_size or 0)

    def forward(self, s: FrameInputs) -> Array:
        """-> logits (B, T, V)."""
        return self.head(self.dropout(self.base_model.forward(s).last_hidden_state))


class Wav2Vec2BertForSequenceClassification(Wav2Vec2BertPretrained):
    """A head on the mean of the states, of the last layer or weighted over all of them."""

    def __init__(self, w: Weights, cfg: Wav2Vec2BertConfig):
        D, P, self.config = cfg.hidden_size, cfg.classifier_proj_size, cfg
        cfg.require(add_adapter=False)
        self.base_model = Wav2Vec2BertModel(w / "wav2vec2_bert", cfg)
        self.weights = w.get("layer_weights", (cfg.num_hidden_layers + 1,)) if cfg.use_weighted_layer_sum else None
        self.projector, self.classifier = Linear(w / "projector", D, P), Linear(w / "classifier", P, cfg.num_labels)

    def forward(self, s: FrameInputs) -> Array:
        """-> logits (B, L)."""
        states = self.base_model.hidden_states(self.base_model.embeddings.norm(s.input_features), s.mask)
        if self.weights is None:
            (x,) = deque(states, maxlen=1)
        else:
            shares = ops.softmax(self.weights[None])[0]
            x, *parts = (x * shares[i] for i, x in enumerate(states))
            for part in parts:
                x = x + part
        x = self.projector(x)
        if s.mask is None:
            return self.classifier(ops.mean(x, 1))
        counts = ops.where(s.mask, ops.zeros((1,), x) + 1, ops.zeros((1,), x))
        return self.classifier(ops.mean(x * counts[:, :, None], 1) / ops.mean(counts, 1)[:, None])
