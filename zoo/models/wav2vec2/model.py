"""wav2vec 2.0 (Baevski et al. 2020, https://arxiv.org/abs/2006.11477): convolutions turn samples into states, 50 for a
second, and BERT's layers read them, with a wide convolution for positions.

Shapes: B recordings, S samples, T states, D hidden_size, F intermediate_size, V vocab_size, C channels of a
convolution, L labels.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

from ... import ops
from ...inputs import Context
from ...inputs.waveform import WaveformInputs, WaveformModel
from ...nn import Dropout, FoldedModule, GroupNorm, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from .config import Wav2Vec2Config

FEATURE_EPS = 1e-5  # the epsilon of the norms between the convolutions
# A weight norm's two tensors in files of transformers since version 4.36, and what the Hub's files call them.
WEIGHT_NORM = {
    r"\.parametrizations\.weight\.original0$": ".weight_g",
    r"\.parametrizations\.weight\.original1$": ".weight_v",
}
BASE = ("feature_extractor", "feature_projection", "encoder", "masked_spec_embed")
# A mask of training, and the heads of pretraining.
IGNORED_NAMES = (r"(^|\.)masked_spec_embed$", r"^(quantizer|project_hid|project_q|lm_head|projector|classifier)\.")
ONLY_SAVED = (r"(^|\.)masked_spec_embed$",)


class Wav2Vec2ModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D)
    extract_features: Array  # (B, T, C)


class FeatureConv(Module):
    """A convolution over time, and a norm over time ("group"), over channels ("layer"), or none."""

    def __init__(self, w: Weights, cfg: Wav2Vec2Config, i: int):
        C, O, k = (cfg.conv_dim[i - 1] if i else 1), cfg.conv_dim[i], cfg.conv_kernel[i]  # noqa: E741
        self.weight = w.get("conv.weight", (O, C, k))
        self.bias = w.get("conv.bias", (O,)) if cfg.conv_bias else None
        self.stride, self.act = cfg.conv_stride[i], ops.activation(cfg.feat_extract_activation)
        self.norm: GroupNorm | LayerNorm | None = None
        if cfg.feat_extract_norm == "layer":
            self.norm = LayerNorm(w / "layer_norm", O, FEATURE_EPS)
        elif i == 0:
            self.norm = GroupNorm(w / "layer_norm", O, O, FEATURE_EPS)

    def __call__(self, x: Array) -> Array:
        """x (B, S, 1, C), an image of one column -> (B, S', 1, C')."""
        act = self.act if self.norm is None else None
        x = ops.conv2d(x, self.weight[..., None], self.bias, stride=(self.stride, 1), act=act)
        return x if self.norm is None else ops.activate(self.norm(x), self.act)


class PositionConv(FoldedModule):
    """A convolution over many states, whose weight is a direction and a length for each of its taps (Salimans and
    Kingma 2016, https://arxiv.org/abs/1602.07868).
    """

    def __init__(self, w: Weights, cfg: Wav2Vec2Config):
        D, k, self.groups = cfg.hidden_size, cfg.num_conv_pos_embeddings, cfg.num_conv_pos_embedding_groups
        self.length, self.direction = w.get("weight_g", (1, 1, k)), w.get("weight_v", (D, D // self.groups, k))
        self.bias, self.act = w.get("bias", (D,)), ops.activation(cfg.feat_extract_activation)
        self._folded = ops.fold_weight_norm(self.length, self.direction), self.bias

    def __call__(self, x: Array) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        weight = ops.fold_weight_norm(self.length, self.direction) if self._folded is None else self._folded[0]
        return ops.grouped_conv1d(x, weight, self.bias, self.groups, self.act)


class Embeddings(Module):
    """States from samples, with their positions."""

    def __init__(self, w: Weights, cfg: Wav2Vec2Config):
        C, D, eps = cfg.conv_dim[-1], cfg.hidden_size, cfg.layer_norm_eps
        convs = w / "feature_extractor.conv_layers"
        self.convs = [FeatureConv(convs / i, cfg, i) for i in range(len(cfg.conv_dim))]
        self.feature_norm = LayerNorm(w / "feature_projection.layer_norm", C, eps) if cfg.has_feature_norm else None
        self.projection = Linear(w / "feature_projection.projection", C, D, dropout=cfg.feat_proj_dropout)
        self.positions = PositionConv(w / "encoder.pos_conv_embed.conv", cfg)
        # Of pre-norm layers the norm comes last.
        self.norm = None if cfg.do_stable_layer_norm else LayerNorm(w / "encoder.layer_norm", D, eps)
        self.dropout = Dropout(cfg.hidden_dropout)

    def features(self, s: WaveformInputs) -> Array:
        """-> (B, T, C), normed."""
        x = s.input_values[:, :, None, None]
        for conv in self.convs:
            x = conv(x)
        x = x[:, :, 0]
        return x if self.feature_norm is None else self.feature_norm(x)

    def __call__(self, features: Array, mask: Array | None) -> Array:
        """features (B, T, C), mask (B, T): false after a recording's end -> (B, T, D)."""
        x = self.projection(features)
        if mask is not None:
            x = ops.where(mask[:, :, None], x, ops.zeros((1,), x))
        x = x + self.positions(x)
        return self.dropout(x if self.norm is None else self.norm(x))


class Adapter(Module):
    """A small bottleneck behind a layer, the only part that differs between the languages of MMS (Pratap et al. 2023,
    https://arxiv.org/abs/2305.13516).
    """

    def __init__(self, w: Weights, D: int, size: int):
        self.norm = LayerNorm(w / "norm", D, FEATURE_EPS)
        self.down, self.up = Linear(w / "linear_1", D, size, act="relu"), Linear(w / "linear_2", size, D)

    def __call__(self, x: Array) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        return self.up(self.down(self.norm(x)), residual=x)


class Layer(Module):
    """A post-norm layer, as BERT's; with do_stable_layer_norm a pre-norm one."""

    def __init__(self, w: Weights, cfg: Wav2Vec2Config):
        D, F, eps = cfg.hidden_size, cfg.intermediate_size, cfg.layer_norm_eps
        self.heads, self.is_pre_norm = cfg.num_attention_heads, cfg.do_stable_layer_norm
        self.qkv = Linear.fuse(w / "attention", ["q_proj", "k_proj", "v_proj"], D, [D, D, D])
        self.out = Linear(w / "attention.out_proj", D, D, dropout=cfg.hidden_dropout)
        self.dropout = Dropout(cfg.attention_dropout)
        self.norm, self.final_norm = LayerNorm(w / "layer_norm", D, eps), LayerNorm(w / "final_layer_norm", D, eps)
        w_up = w / "feed_forward.intermediate_dense"
        self.up = Linear(w_up, D, F, act=cfg.hidden_act, dropout=cfg.activation_dropout)
        self.down = Linear(w / "feed_forward.output_dense", F, D, dropout=cfg.hidden_dropout)
        has_adapter = self.is_pre_norm and cfg.adapter_attn_dim is not None
        self.adapter = Adapter(w / "adapter_layer", D, cfg.adapter_attn_dim or 0) if has_adapter else None

    def attention(self, x: Array, mask: Array | None, bias: Array | None) -> Array:
        """x (B, T, D), mask (B, T), bias as of `ops.attention` -> (B, T, D), before the output's projection."""
        q, k, v = ops.split_heads(self.qkv(x), self.heads)
        return ops.attention(q, k, v, mask=mask, bias=bias, dropout=self.dropout.rate).reshape(x.shape)

    def __call__(self, x: Array, c: Context, bias: Array | None = None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        if not self.is_pre_norm:
            x = self.norm(self.out(self.attention(x, c.mask, bias)), residual=x)
            return self.final_norm(self.down(self.up(x)), residual=x)
        x = self.out(self.attention(self.norm(x), c.mask, bias), residual=x)
        x = self.down(self.up(self.final_norm(x)), residual=x)
        return x if self.adapter is None else self.adapter(x)


class Wav2Vec2Pretrained(WaveformModel):
    config_class = Wav2Vec2Config
    name_map = NameMap(prefix="wav2vec2", base=BASE, renames=WEIGHT_NORM, ignored=IGNORED_NAMES)
    only_saved = ONLY_SAVED


class Wav2Vec2Model(Wav2Vec2Pretrained):
    is_base_model = True
    layer_class: ClassVar[type[Layer]] = Layer

    def __init__(self, w: Weights, cfg: Any):
        self.config = cfg
        self.embeddings = Embeddings(w, cfg)
        self.layers = [self.layer_class(w / "encoder.layers" / i, cfg) for i in range(cfg.num_hidden_layers)]
        has_norm = cfg.do_stable_layer_norm
        self.norm = LayerNorm(w / "encoder.layer_norm", cfg.hidden_size, cfg.layer_norm_eps) if has_norm else None

    def hidden_states(self, features: Array, mask: Array | None) -> Iterator[Array]:
        """Yield the first layer's input, then the output of each layer, all (B, T, D)."""
        x, context = self.embeddings(features, mask), Context(mask)
        bias = self.bias(x)
        for layer in self.layers:
            yield x
            x = layer(x, context, bias)
        yield x

    def bias(self, x: Array) -> Array | None:
        """The bias (1, H, T, T) of attention that all layers share, for their first input x (B, T, D)."""
        return None

    def states(self, s: WaveformInputs) -> tuple[Array, Array]:
        """-> the last layer's (B, T, D), and the convolutions' (B, T, C)."""
        features = self.embeddings.features(s)
        (x,) = deque(self.hidden_states(features, self.state_mask(s, features.shape[1])), maxlen=1)
        return x if self.norm is None else self.norm(x), features

    def forward(self, s: WaveformInputs) -> Wav2Vec2ModelOutput:
        return Wav2Vec2ModelOutput(*self.states(s))


class Wav2Vec2ForCTC(Wav2Vec2Pretrained):
    """The logits of each state's character, for CTC."""

    base_class: ClassVar[type[Wav2Vec2Model]] = Wav2Vec2Model

    def __init__(self, w: Weights, cfg: Any):
        self.config, self.base_model = cfg, self.base_class(w / self.name_map.prefix, cfg)
        self.dropout = Dropout(cfg.final_dropout)
        self.head = Linear(w / "lm_head", cfg.hidden_size, cfg.vocab_size)

    def forward(self, s: WaveformInputs) -> Array:
        """-> logits (B, T, V)."""
        x, _ = self.base_model.states(s)
        return self.head(self.dropout(x))


class Wav2Vec2ForSequenceClassification(Wav2Vec2Pretrained):
    """A head on the mean of the states, of the last layer or weighted over all of them.

    What is weighted is not normed, as in version 5 of transformers: version 4 took the last with its norm.
    """

    base_class: ClassVar[type[Wav2Vec2Model]] = Wav2Vec2Model

    def __init__(self, w: Weights, cfg: Any):
        D, P, self.config = cfg.hidden_size, cfg.classifier_proj_size, cfg
        self.base_model = self.base_class(w / self.name_map.prefix, cfg)
        self.weights = w.get("layer_weights", (cfg.num_hidden_layers + 1,)) if cfg.use_weighted_layer_sum else None
        self.projector, self.classifier = Linear(w / "projector", D, P), Linear(w / "classifier", P, cfg.num_labels)

    def forward(self, s: WaveformInputs) -> Array:
        """-> logits (B, L)."""
        if self.weights is None:
            x, _ = self.base_model.states(s)
            mask = self.state_mask(s, x.shape[1])
        else:
            features, shares = self.base_model.embeddings.features(s), ops.softmax(self.weights[None])[0]
            mask = self.state_mask(s, features.shape[1])
            x, *parts = (x * shares[i] for i, x in enumerate(self.base_model.hidden_states(features, mask)))
            for part in parts:
                x = x + part
        x = self.projector(x)
        if mask is None:
            return self.classifier(ops.mean(x, 1))
        counts = ops.where(mask, ops.zeros((1,), x) + 1, ops.zeros((1,), x))
        return self.classifier(ops.mean(x * counts[:, :, None], 1) / ops.mean(counts, 1)[:, None])
