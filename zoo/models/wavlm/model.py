"""WavLM (Chen et al. 2021, https://arxiv.org/abs/2110.13900): wav2vec 2.0's network with T5's bias for distances, which
each state scales by gates of its own.

Shapes: B recordings, T states, H heads, K = D / H, D hidden_size.
"""

from __future__ import annotations

from typing import Any

from ... import ops
from ...nn import DistanceBias, Linear
from ...typing import Array
from ...weights import NameMap, Weights
from ..wav2vec2.model import (
    BASE,
    IGNORED_NAMES,
    WEIGHT_NORM,
    Layer,
    Wav2Vec2ForCTC,
    Wav2Vec2ForSequenceClassification,
    Wav2Vec2Model,
    Wav2Vec2Pretrained,
)
from .config import WavLMConfig

PARTS = 4  # numbers that are added up to a gate, of which there are two


class WavLMLayer(Layer):
    def __init__(self, w: Weights, cfg: WavLMConfig):
        super().__init__(w, cfg)
        self.gates = Linear(w / "attention.gru_rel_pos_linear", cfg.hidden_size // self.heads, 2 * PARTS)
        self.reset_scale = w.get("attention.gru_rel_pos_const", (1, self.heads, 1, 1))

    def attention(self, x: Array, mask: Array | None, bias: Array | None) -> Array:
        assert bias is not None
        y = self.gates(x.reshape(*x.shape[:2], self.heads, -1)).reshape(*x.shape[:2], self.heads, 2, PARTS)
        y = ops.activate(ops.mean(y, 4) * PARTS, "sigmoid")  # (B, T, H, 2)
        gates = y[..., 0] * (y[..., 1] * self.reset_scale.reshape(1, 1, -1) - 1.0) + 2.0
        return super().attention(x, mask, ops.scale_bias(bias, gates))


class WavLMPretrained(Wav2Vec2Pretrained):
    config_class = WavLMConfig
    name_map = NameMap(prefix="wavlm", base=BASE, renames=WEIGHT_NORM, ignored=IGNORED_NAMES)


class WavLMModel(WavLMPretrained, Wav2Vec2Model):
    layer_class = WavLMLayer

    def __init__(self, w: Weights, cfg: Any):
        super().__init__(w, cfg)
        table = w / "encoder.layers.0.attention.rel_attn_embed"
        self.distances = DistanceBias(table, cfg.num_buckets, cfg.num_attention_heads, cfg.max_bucket_distance)

    def bias(self, x: Array) -> Array:
        return self.distances(ops.arange(x.shape[1], x)[None])


class WavLMForCTC(WavLMPretrained, Wav2Vec2ForCTC):
    base_class = WavLMModel


class WavLMForSequenceClassification(WavLMPretrained, Wav2Vec2ForSequenceClassification):
    base_class = WavLMModel
