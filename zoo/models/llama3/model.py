"""Llama 3 (Grattafiori et al. 2024, https://arxiv.org/abs/2407.21783), 1 and 2 alike, and the heads trained on it.

A causal stack of pre-norm layers: grouped-query attention (Ainslie et al. 2023, https://arxiv.org/abs/2305.13245) over
rotary positions, and a gated MLP.

Shapes: B batch, T tokens, S tokens that can be looked at, D hidden_size, F intermediate_size, H heads, G heads of keys,
K head size, V vocab_size, C labels.  Masks are true for a token and false for padding.
"""

from __future__ import annotations

from typing import NamedTuple

from ... import ops
from ...cache import KVCache
from ...errors import InputError
from ...nn import Linear, Module, RMSNorm
from ...pretrained import Pretrained
from ...typing import Array
from ...weights import Layout, Weights
from .config import LlamaConfig

BODY = ("embed_tokens", "layers", "norm")
# Rotary frequencies in files of 2023, which follow from the config, and heads that a class without them leaves alone.
IGNORED = (r"(^|\.)rotary_emb\.inv_freq$", r"^lm_head\.", r"^score\.", r"^qa_outputs\.")
LAYOUT = Layout(prefix="model", body=BODY, ignored=IGNORED)

TIED = {"lm_head.weight": "model.embed_tokens.weight"}

CHUNK = 512  # tokens of a prompt that pass through the layers at a time: bounds memory, and fills a matrix product


class QuestionAnsweringOutput(NamedTuple):
    start_logits: Array  # (B, T)
    end_logits: Array  # (B, T)


class Embeddings(Module):
    def __init__(self, w: Weights, cfg: LlamaConfig):
        # Read as a matrix, since the output projection may share it.
        self.word = w.matrix(["weight"], [cfg.vocab_size], cfg.hidden_size)
        self.max_positions = cfg.max_positions

    def __call__(self, input_ids: Array) -> Array:
        """input_ids (B, T) -> (B, T, D)."""
        return ops.embedding(input_ids, self.word, "input_ids")


class Attention(Module):
    def __init__(self, w: Weights, cfg: LlamaConfig):
        D, K = cfg.hidden_size, cfg.head_size
        self.heads, self.groups = cfg.num_attention_heads, cfg.key_heads
        H, G = self.heads, self.groups
        self.qkv = Linear.fused(w, ["q_proj", "k_proj", "v_proj"], D, [H * K, G * K, G * K], cfg.attention_bias)
        self.out = Linear(w / "o_proj", H * K, D, cfg.attention_bias)

    def __call__(
        self,
        x: Array,
        cos_sin: tuple[Array, Array],
        mask: Array | None,
        start: Array,
        cache: KVCache | None,
        layer: int,
    ) -> Array:
        """x (B, T, D), cos_sin two of (B or 1, T, K / 2), mask (B, S), start (B,) -> (B, T, D)."""
        q, k, v = ops.split_heads(self.qkv(x), self.heads, self.groups)
        if cache is None:
            q, k = ops.rope(q, *cos_sin), ops.rope(k, *cos_sin)
        else:
            q, k, v = cache.extend_rotated(layer, q, k, v, cos_sin, masked=mask is not None)
        a = ops.attention(q, k, v, mask=mask, start=start)
        return self.out(a.reshape(*x.shape[:2], -1))


class MLP(Module):
    def __init__(self, w: Weights, cfg: LlamaConfig):
        D, F = cfg.hidden_size, cfg.intermediate_size
        self.gate_up = Linear.fused(w, ["gate_proj", "up_proj"], D, [F, F], cfg.mlp_bias)
        self.down = Linear(w / "down_proj", F, D, cfg.mlp_bias)
        self.act = ops.activation(cfg.hidden_act)

    def __call__(self, x: Array, residual: Array) -> Array:
        """x, residual (B, T, D) -> (B, T, D)."""
        return self.down(ops.glu(self.gate_up(x), self.act), residual)


class Layer(Module):
    def __init__(self, w: Weights, cfg: LlamaConfig):
        D, eps = cfg.hidden_size, cfg.rms_norm_eps
        self.before = RMSNorm(w / "input_layernorm", D, eps)
        self.attention = Attention(w / "self_attn", cfg)
        self.between = RMSNorm(w / "post_attention_layernorm", D, eps)
        self.mlp = MLP(w / "mlp", cfg)

    def __call__(
        self,
        x: Array,
        cos_sin: tuple[Array, Array],
        mask: Array | None,
        start: Array,
        cache: KVCache | None,
        layer: int,
    ) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        y, x = self.between.add(self.attention(self.before(x), cos_sin, mask, start, cache, layer), x)
        return self.mlp(y, x)


class LlamaPretrained(Pretrained):
    config_class = LlamaConfig
    layout = LAYOUT
    keeps_halves = True

    @property
    def depends_on_length(self) -> bool:
        return self.config.rope().kind == "dynamic"


class LlamaModel(LlamaPretrained):
    """The stack, with the norm at its end."""

    is_body = True

    def __init__(self, w: Weights, cfg: LlamaConfig):
        self.config = cfg
        self.embeddings = Embeddings(w / "embed_tokens", cfg)
        self.layers = [Layer(w / "layers" / i, cfg) for i in range(cfg.num_hidden_layers)]
        self.norm = RMSNorm(w / "norm", cfg.hidden_size, cfg.rms_norm_eps)
        self.rope = cfg.rope()

    def __call__(
        self,
        input_ids: Array | None = None,
        attention_mask: Array | None = None,
        position_ids: Array | None = None,
        inputs_embeds: Array | None = None,
        cache: KVCache | None = None,
    ) -> Array:
        """Ids (B, T) -> states (B, T, D) of every token; with a cache, attention_mask is (B, length + T).

        position_ids (B, T): from each row's `start` on if not given, also where padding comes first.
        """
        cfg, like = self.config, self.norm.weight
        if input_ids is not None and inputs_embeds is None:
            x = self.embeddings(ops.as_ids(input_ids, like, "input_ids", cfg.vocab_size))
        elif inputs_embeds is not None and input_ids is None:
            x = ops.as_states(inputs_embeds, like, "inputs_embeds", None, cfg.hidden_size)
        else:
            raise InputError("give either input_ids or inputs_embeds")
        B, T = x.shape[:2]
        past = 0 if cache is None else cache.length
        if attention_mask is not None:
            attention_mask = ops.as_key_mask(attention_mask, like, "attention_mask", (B, past + T))
        at = None
        if position_ids is not None:
            at = ops.as_ids(position_ids, like, "position_ids", cfg.max_positions)
            if tuple(at.shape) not in ((B, T), (1, T)):
                raise InputError(f"position_ids has shape {tuple(at.shape)}, expected {(B, T)}")
        x = self.states(x, cache, past + T, at, attention_mask)
        if cache is not None:
            cache.advance(T)
        return self.norm(x)

    def states(
        self,
        x: Array,
        cache: KVCache | None,
        length: int,
        position_ids: Array | None = None,
        mask: Array | None = None,
    ) -> Array:
        """Embedded tokens (B, T, D) through the layers -> (B, T, D), not normed; the cache is left to be advanced.

        length: of the longest row when all of its prompt has passed, on which the frequencies of `dynamic` depend.
        """
        B, T = x.shape[:2]
        if length > self.config.max_positions:
            raise InputError(f"{length} tokens, but the checkpoint has positions for {self.config.max_positions}")
        start = ops.arange(B, self.norm.weight) * 0 if cache is None else cache.start
        if position_ids is None:
            position_ids = start[:, None] + ops.arange(T, self.norm.weight)
        cos_sin = ops.rotary(position_ids, self.rope.frequencies(length), self.rope.scale, self.norm.weight)
        for i, layer in enumerate(self.layers):
            x = layer(x, cos_sin, mask, start, cache, i)
        return x

    @property
    def max_positions(self) -> int:
        """The length of the longest text that the positions are meant for."""
        return self.config.max_positions

    def new_cache(self, batch: int, capacity: int | None = None) -> KVCache:
        """An empty cache; capacity in tokens, all positions of the checkpoint if not given."""
        cfg = self.config
        S = self.max_positions if capacity is None else capacity
        return KVCache(cfg.num_hidden_layers, batch, S, cfg.key_heads, cfg.head_size, like=self.norm.weight)


class LlamaForCausalLM(LlamaPretrained):
    tied = TIED

    def __init__(self, w: Weights, cfg: LlamaConfig):
        self.config = cfg
        self.model = LlamaModel(w / "model", cfg)
        self.head = Linear(w / "lm_head", cfg.hidden_size, cfg.vocab_size, bias=False)

    def __call__(
        self,
        input_ids: Array | None = None,
        attention_mask: Array | None = None,
        position_ids: Array | None = None,
        inputs_embeds: Array | None = None,
        cache: KVCache | None = None,
        logits_to_keep: int = 0,
    ) -> Array:
        """input_ids (B, T) -> logits (B, T, V), or of the last `logits_to_keep` tokens if that is not 0."""
        x = self.model(input_ids, attention_mask, position_ids, inputs_embeds, cache)
        return self.head(x[:, -logits_to_keep:] if logits_to_keep else x)

    @property
    def max_positions(self) -> int:
        return self.model.max_positions

    def new_cache(self, batch: int, capacity: int | None = None) -> KVCache:
        """An empty cache; capacity in tokens, all positions of the checkpoint if not given."""
        return self.model.new_cache(batch, capacity)

    def next_logits(self, input_ids: Array, lengths: Array | None, cache: KVCache) -> Array:
        """Logits (B, V) of the token after each row's first `lengths` (B,) of the T given, which go into the cache.

        lengths: None if all count, the others are padding on the right.  A long prompt passes in chunks.
        """
        body, like = self.model, self.model.norm.weight
        ids = ops.as_ids(input_ids, like, "input_ids", self.config.vocab_size)
        B, T = ids.shape
        length, last = cache.length + T, None
        chunk = 8 * CHUNK if ops.is_cuda(like) else CHUNK  # a GPU wants larger products, and has the memory
        if lengths is not None:
            lengths = cache.checked(lengths, T)
        for a in range(0, T, chunk):
            x = body.states(body.embeddings(ids[:, a : a + chunk]), cache, length)
            width, D = x.shape[1:]
            if lengths is None:
                cache.advance(width)
                last = x[:, -1]
                continue
            count = ops.where(lengths > a + width, width, lengths - a)
            count = ops.where(count < 0, 0, count)  # of each row's tokens, in this chunk
            cache.advance(count)
            at = ops.as_ids(ops.where(count > 0, count - 1, count), like, "lengths", width, ndim=1)
            x = ops.embedding(ops.arange(B, like) * width + at, x.reshape(B * width, D), "lengths")
            inside = ops.as_ids(count, like, "lengths", width + 1, ndim=1)[:, None] > 0
            last = x if last is None else ops.where(inside, x, last)
        return self.head(body.norm(last))


class LlamaForSequenceClassification(LlamaPretrained):
    """Reads the state of each row's last token that is not the padding token."""

    def __init__(self, w: Weights, cfg: LlamaConfig):
        self.config = cfg
        self.model = LlamaModel(w / "model", cfg)
        self.score = Linear(w / "score", cfg.hidden_size, cfg.num_labels, bias=False)

    def __call__(
        self, input_ids: Array, attention_mask: Array | None = None, position_ids: Array | None = None
    ) -> Array:
        """input_ids, attention_mask (B, T) -> logits (B, C)."""
        x = self.model(input_ids, attention_mask, position_ids)
        (B, T, D), pad = x.shape, self.config.pad_token_id
        if pad is None:
            if B > 1:
                raise InputError(
                    f"a batch of {B}, and the config has no pad_token_id to tell where rows end: pass one at a time"
                )
            return self.score(x[:, -1])
        ids = ops.as_ids(input_ids, x, "input_ids", self.config.vocab_size)
        seen = ops.cumsum(ids != pad, 1)
        last = ops.cumsum(seen < seen[:, -1:], 1)[:, -1]  # as many as come before the last one that counts
        return self.score(ops.embedding(ops.arange(B, x) * T + last, x.reshape(B * T, D), "positions"))


class LlamaForTokenClassification(LlamaPretrained):
    def __init__(self, w: Weights, cfg: LlamaConfig):
        self.config = cfg
        self.model = LlamaModel(w / "model", cfg)
        self.score = Linear(w / "score", cfg.hidden_size, cfg.num_labels)

    def __call__(
        self, input_ids: Array, attention_mask: Array | None = None, position_ids: Array | None = None
    ) -> Array:
        """input_ids, attention_mask (B, T) -> logits (B, T, C)."""
        return self.score(self.model(input_ids, attention_mask, position_ids))


class LlamaForQuestionAnswering(LlamaPretrained):
    layout = Layout(prefix="transformer", body=BODY, ignored=IGNORED)

    def __init__(self, w: Weights, cfg: LlamaConfig):
        self.config = cfg
        self.transformer = LlamaModel(w / "transformer", cfg)
        self.qa_outputs = Linear(w / "qa_outputs", cfg.hidden_size, 2)

    def __call__(
        self, input_ids: Array, attention_mask: Array | None = None, position_ids: Array | None = None
    ) -> QuestionAnsweringOutput:
        """input_ids, attention_mask (B, T) -> logits (B, T) of an answer's first and last token."""
        y = self.qa_outputs(self.transformer(input_ids, attention_mask, position_ids))
        return QuestionAnsweringOutput(y[:, :, 0], y[:, :, 1])
