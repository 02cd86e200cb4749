"""Moonshine (Jeffries et al. 2024, https://arxiv.org/abs/2410.15608): three convolutions turn samples into states, 41
for a second, and a pre-norm encoder and decoder with rotary positions write what is said, without times.

Shapes: B rows, C recordings, S samples, M states, T tokens, D hidden_size, F intermediate_size, V vocab_size, H heads,
K head size, R features of a head that positions rotate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import ops
from ...cache import LayerCache
from ...errors import UnsupportedError
from ...inputs import Context, TextInputs
from ...inputs.encoder_decoder import BareDecoder, EncoderDecoder, Seq2SeqDecoder, Seq2SeqModel, cross_attention
from ...inputs.waveform import WaveformInputs, WaveformModel
from ...nn import Dropout, GroupNorm, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from .config import MoonshineConfig

EPS = 1e-5
NAME_MAP = NameMap(prefix="model", base=("encoder", "decoder"), ignored=(r"^proj_out\.", r"rotary_emb\.inv_freq$"))
TIED_WEIGHTS = {"proj_out.weight": "model.decoder.embed_tokens.weight"}


class Embeddings(Module):
    """Convolutions over samples, with a norm of the whole recording after the first."""

    def __init__(self, w: Weights, cfg: MoonshineConfig):
        D, (first, second, third) = cfg.hidden_size, cfg.conv_kernel
        self.conv1, self.strides = w.get("conv1.weight", (D, 1, first)), cfg.conv_stride
        self.conv2, self.bias2 = w.get("conv2.weight", (2 * D, D, second)), w.get("conv2.bias", (2 * D,))
        self.conv3, self.bias3 = w.get("conv3.weight", (D, 2 * D, third)), w.get("conv3.bias", (D,))
        self.norm = GroupNorm(w / "groupnorm", D, 1, EPS)

    def __call__(self, s: WaveformInputs) -> Array:
        """-> (C, M, D)."""
        first, second, third = ((stride, 1) for stride in self.strides)
        x = ops.conv2d(s.input_values[:, :, None, None], self.conv1[..., None], None, first, act="tanh")
        x = ops.conv2d(self.norm(x), self.conv2[..., None], self.bias2, second, act="gelu")
        return ops.conv2d(x, self.conv3[..., None], self.bias3, third, act="gelu")[:, :, 0]


class Attention(Module):
    def __init__(self, w: Weights, cfg: MoonshineConfig):
        D, self.heads = cfg.hidden_size, cfg.decoder_num_attention_heads
        self.qkv = Linear.fuse(w, ["q_proj", "k_proj", "v_proj"], D, [D, D, D], cfg.attention_bias)
        self.out, self.dropout = Linear(w / "o_proj", D, D, bias=False), Dropout(cfg.attention_dropout)

    def __call__(self, x: Array, cos_sin: tuple[Array, Array], c: Context, cache: LayerCache | None) -> Array:
        """x (B, T, D), cos_sin two of (B or 1, T, R / 2) -> (B, T, D)."""
        q, k, v = ops.split_heads(self.qkv(x), self.heads)
        visible: dict[str, Any] = {"start": c.start, "mask": c.mask}
        if cache is None:
            q, k = (ops.rope(one, *cos_sin, interleaved=True) for one in (q, k))
        else:
            q, k, v = cache.rotate_and_extend(q, k, v, cos_sin, masked=c.mask is not None, interleaved=True)
            visible = cache.attention_arguments(visible)
        return self.out(ops.attention(q, k, v, **visible, dropout=self.dropout.rate).reshape(x.shape))


class CrossAttention(Module):
    def __init__(self, w: Weights, cfg: MoonshineConfig):
        D, self.heads = cfg.hidden_size, cfg.decoder_num_attention_heads
        self.query = Linear(w / "q_proj", D, D, cfg.attention_bias)
        self.key_value = Linear.fuse(w, ["k_proj", "v_proj"], D, [D, D], cfg.attention_bias)
        self.out, self.dropout = Linear(w / "o_proj", D, D, bias=False), Dropout(cfg.attention_dropout)

    def __call__(self, x: Array, residual: Array, c: Context, cache: LayerCache | None) -> Array:
        """x, residual (B, T, D) -> (B, T, D)."""
        q = self.query(x).reshape(*x.shape[:2], self.heads, -1)
        a = cross_attention(q, self.key_value, c, cache, dropout=self.dropout.rate)
        return residual if a is None else self.out(a, residual)


class EncoderLayer(Module):
    def __init__(self, w: Weights, cfg: MoonshineConfig):
        D, F = cfg.hidden_size, cfg.intermediate_size
        self.input_norm = LayerNorm(w / "input_layernorm", D, EPS, bias=False)
        self.attention = Attention(w / "self_attn", cfg)
        self.norm = LayerNorm(w / "post_attention_layernorm", D, EPS, bias=False)
        self.up, self.down = Linear(w / "mlp.fc1", D, F, act=cfg.encoder_hidden_act), Linear(w / "mlp.fc2", F, D)

    def __call__(self, x: Array, cos_sin: tuple[Array, Array]) -> Array:
        """x (C, M, D), cos_sin two of (1, M, R / 2) -> (C, M, D)."""
        x = x + self.attention(self.input_norm(x), cos_sin, Context(), None)
        return self.down(self.up(self.norm(x)), x)


class DecoderLayer(Module):
    def __init__(self, w: Weights, cfg: MoonshineConfig):
        D, F = cfg.hidden_size, cfg.intermediate_size
        names = ("input_layernorm", "post_attention_layernorm", "final_layernorm")
        self.norms = [LayerNorm(w / name, D, EPS, bias=False) for name in names]
        self.attention, self.cross = Attention(w / "self_attn", cfg), CrossAttention(w / "encoder_attn", cfg)
        self.up, self.down = Linear(w / "mlp.fc1", D, 2 * F), Linear(w / "mlp.fc2", F, D)
        self.size, self.act = F, ops.activation(cfg.decoder_hidden_act)

    def __call__(self, x: Array, cos_sin: tuple[Array, Array], c: Context, cache: LayerCache | None) -> Array:
        """x (B, T, D), cos_sin two of (B or 1, T, R / 2) -> (B, T, D)."""
        x = x + self.attention(self.norms[0](x), cos_sin, c, cache)
        x = self.cross(self.norms[1](x), x, c, cache)
        y = self.up(self.norms[2](x))
        return self.down(y[..., : self.size] * ops.activate(y[..., self.size :], self.act), x)


class EncoderOutput(NamedTuple):
    last_hidden_state: Array  # (C, M, D)


class Encoder(WaveformModel):
    config_class = MoonshineConfig
    name_map = NAME_MAP
    inputs = ()

    def __init__(self, w: Weights, cfg: MoonshineConfig):
        self.config, self.embeddings, self.rope = cfg, Embeddings(w, cfg), cfg.rope()
        self.layers = [EncoderLayer(w / "layers" / i, cfg) for i in range(cfg.encoder_num_hidden_layers)]
        self.norm = LayerNorm(w / "layer_norm", cfg.hidden_size, EPS, bias=False)

    def encode(self, s: WaveformInputs) -> Array:
        """-> (C, M, D)."""
        x = self.embeddings(s)
        at, M = ops.arange(x.shape[1], x)[None], x.shape[1]
        cos_sin = ops.rotary(at, self.rope.frequencies(M), self.rope.scale, x)
        for layer in self.layers:
            x = layer(x, cos_sin)
        return self.norm(x)

    def forward(self, s: WaveformInputs) -> EncoderOutput:
        return EncoderOutput(self.encode(s))

    def example(self, seed: int = 0, **sizes: Any) -> dict[str, Any]:
        return {"input_values": super().example(seed, **sizes)["input_values"]}

    def waveform(self, input_values: Any, attention_mask: Any = None) -> WaveformInputs:
        if attention_mask is not None:
            raise UnsupportedError("moonshine: attention_mask is not implemented, since a norm is of whole recordings")
        return super().waveform(input_values)


class WordEmbeddings(Module):
    def __init__(self, w: Weights, cfg: MoonshineConfig):
        self.word = w.embedding("embed_tokens.weight", cfg.vocab_size, cfg.hidden_size)
        self.padding, self.max_positions = cfg.pad_token_id, cfg.rope().max_positions

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        return ops.embedding(t.ids, self.word, "input_ids", self.padding)


class DecoderStack(Module):
    """The decoder's layers."""

    def __init__(self, w: Weights, cfg: MoonshineConfig):
        self.embeddings, self.rope = WordEmbeddings(w, cfg), cfg.rope()
        self.layers = [DecoderLayer(w / "layers" / i, cfg) for i in range(cfg.decoder_num_hidden_layers)]
        self.norm = LayerNorm(w / "norm", cfg.hidden_size, EPS, bias=False)

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x, like = self.embeddings(t), self.norm.weight
        at = t.start[:, None] + ops.arange(t.shape[1], like)
        cos_sin = ops.rotary(at, self.rope.frequencies(t.length), self.rope.scale, like)
        for layer, cache in t.with_cache(self.layers):
            x = layer(x, cos_sin, t.context, cache)
        return self.norm(x)


class Decoder(Seq2SeqDecoder):
    config_class = MoonshineConfig

    def __init__(self, w: Weights, cfg: MoonshineConfig):
        self.config, self.base_model = cfg, DecoderStack(w / "model.decoder", cfg)
        self.head = Linear(w / "proj_out", cfg.hidden_size, cfg.vocab_size, bias=False, vocab=True)


class MoonshineForConditionalGeneration(EncoderDecoder):
    """The encoder of a recording, and the decoder that writes what is said."""

    config_class = MoonshineConfig
    name_map = NAME_MAP
    tied = TIED_WEIGHTS
    arguments = ("input_values",)

    def __init__(self, w: Weights, cfg: MoonshineConfig):
        self.config, self.encoder, self.decoder = cfg, Encoder(w / "model.encoder", cfg), Decoder(w, cfg)

    def encoder_inputs(self, input_values: Array) -> WaveformInputs:
        """input_values (C, S)."""
        return self.encoder.waveform(input_values)


class MoonshineModel(Seq2SeqModel):
    """The encoder of a recording, and the decoder's layers without a head."""

    config_class = MoonshineConfig
    name_map = NAME_MAP
    is_base_model = True
    arguments = ("input_values",)

    def __init__(self, w: Weights, cfg: MoonshineConfig):
        self.config, self.encoder = cfg, Encoder(w / "encoder", cfg)
        self.decoder = BareDecoder(DecoderStack(w / "decoder", cfg), cfg)

    def encoder_inputs(self, input_values: Array) -> WaveformInputs:
        """input_values (C, S)."""
        return self.encoder.waveform(input_values)
