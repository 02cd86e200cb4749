"""Switch Transformers (Fedus et al. 2021, https://arxiv.org/abs/2101.03961): T5's encoder and decoder, in some layers
of which a router chooses one of several MLPs for each token; tokens that come when it is full pass none.

Shapes: B rows, T tokens, N = B T, D d_model, F d_ff, E experts.
"""

from __future__ import annotations

from ... import ops
from ...inputs.encoder_decoder import BareDecoder, Seq2SeqModel, TextToText
from ...nn import Dropout, Linear, Module, RMSNorm
from ...typing import Array
from ...weights import Weights
from ..t5 import model as t5
from .config import SwitchTransformersConfig


class Expert(Module):
    def __init__(self, w: Weights, cfg: SwitchTransformersConfig):
        D, F = cfg.d_model, cfg.d_ff
        self.up = Linear(w / "wi", D, F, bias=False, act=cfg.activation, dropout=cfg.dropout_rate)
        self.down = Linear(w / "wo", F, D, bias=False)

    def __call__(self, x: Array) -> Array:
        """x (..., D) -> (..., D)."""
        return self.down(self.up(x))


class Experts(Module):
    def __init__(self, w: Weights, cfg: SwitchTransformersConfig):
        self.capacity = cfg.expert_capacity
        self.router = Linear(w / "router.classifier", cfg.d_model, cfg.num_experts, bias=cfg.router_bias)
        self.experts = [Expert(w / "experts" / f"expert_{i}", cfg) for i in range(cfg.num_experts)]

    def __call__(self, x: Array) -> Array:
        """x (B, T, D) -> (B, T, D), of which the first `capacity` tokens of a row that choose an expert are not 0."""
        rows = x.reshape(-1, x.shape[2])
        gates = ops.top_k_gates(self.router(rows), 1, normalise=False)
        gates = gates.reshape(*x.shape[:2], -1)
        gates = ops.where(ops.cumsum(gates > 0, 1) <= self.capacity, gates, gates * 0)
        return ops.combine_experts(rows, gates.reshape(rows.shape[0], -1), self.experts).reshape(x.shape)


class MLP(Module):
    def __init__(self, w: Weights, cfg: SwitchTransformersConfig, has_experts: bool):
        self.norm = RMSNorm(w / "layer_norm", cfg.d_model, cfg.layer_norm_epsilon)
        self.mlp = Experts(w / "mlp", cfg) if has_experts else Expert(w / "mlp", cfg)
        self.dropout = Dropout(cfg.dropout_rate)

    def __call__(self, x: Array) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        return x + self.dropout(self.mlp(self.norm(x)))


class EncoderLayer(t5.EncoderLayer):
    def __init__(self, w: Weights, cfg: SwitchTransformersConfig, layer: int):
        self.attention = t5.SelfAttention(w / "layer.0", cfg, True, biased=layer == 0)
        self.mlp = MLP(w / "layer.1", cfg, cfg.has_experts(layer, in_decoder=False))


class DecoderLayer(t5.DecoderLayer):
    def __init__(self, w: Weights, cfg: SwitchTransformersConfig, layer: int):
        self.attention = t5.SelfAttention(w / "layer.0", cfg, False, biased=layer == 0)
        self.cross = t5.CrossAttention(w / "layer.1", cfg)
        self.mlp = MLP(w / "layer.2", cfg, cfg.has_experts(layer, in_decoder=True))


class SwitchTransformersEncoderModel(t5.T5EncoderModel):
    """The encoder alone, or of a model of both."""

    config_class = SwitchTransformersConfig

    def __init__(self, w: Weights, cfg: SwitchTransformersConfig):
        w, self.config = w / "encoder", cfg
        self.embeddings = t5.Embeddings(w, cfg)
        self.layers = [EncoderLayer(w / "block" / i, cfg, i) for i in range(cfg.num_layers)]
        self.norm = RMSNorm(w / "final_layer_norm", cfg.d_model, cfg.layer_norm_epsilon)
        self.dropout = Dropout(cfg.dropout_rate)


class Stack(t5.T5Stack):
    """The decoder's layers."""

    def __init__(self, w: Weights, cfg: SwitchTransformersConfig):
        w = w / "decoder"
        self.embeddings = t5.Embeddings(w, cfg)
        self.layers = [DecoderLayer(w / "block" / i, cfg, i) for i in range(cfg.decoder_layers)]
        self.norm = RMSNorm(w / "final_layer_norm", cfg.d_model, cfg.layer_norm_epsilon)
        self.dropout = Dropout(cfg.dropout_rate)


class Decoder(t5.T5Decoder):
    config_class = SwitchTransformersConfig

    def __init__(self, w: Weights, cfg: SwitchTransformersConfig):
        self.config = cfg
        self.base_model = Stack(w, cfg)
        self.head = t5.LanguageHead(w / "lm_head", cfg)


class SwitchTransformersForConditionalGeneration(TextToText):
    """The encoder of a text, and the decoder that writes another."""

    config_class = SwitchTransformersConfig
    name_map = t5.T5ForConditionalGeneration.name_map
    tied = t5.TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: SwitchTransformersConfig):
        self.config = cfg
        self.encoder = SwitchTransformersEncoderModel(w, cfg)
        self.decoder = Decoder(w, cfg)


class SwitchTransformersModel(Seq2SeqModel):
    """The encoder of a text, and the decoder's layers without a head."""

    config_class = SwitchTransformersConfig
    name_map = t5.T5Model.name_map
    tied = t5.TIED_SIDES
    is_base_model = True

    def __init__(self, w: Weights, cfg: SwitchTransformersConfig):
        self.config = cfg
        self.encoder, self.decoder = SwitchTransformersEncoderModel(w, cfg), BareDecoder(Stack(w, cfg), cfg)
