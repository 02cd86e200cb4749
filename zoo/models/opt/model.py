"""OPT (Zhang et al. 2022, https://arxiv.org/abs/2205.01068), and the heads trained on it.

A causal stack of pre-norm layers over learned positions, which count the tokens that the mask shows; opt-350m has
post-norm layers, and embeddings narrower than its states.

Shapes: B batch, T tokens, S tokens to attend to, D hidden_size, E embedding_size, F ffn_dim, V vocab_size, C labels.
"""

from __future__ import annotations

from typing import NamedTuple

from ... import ops
from ...cache import LayerCache
from ...errors import InputError
from ...inputs import Context, TextInputs, TextModel
from ...inputs.heads import CausalLM, LastTokenClassification, QuestionAnswering
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from .config import OPTConfig

NAME_MAP = NameMap(prefix="model", base=("decoder",), ignored=(r"^lm_head\.", r"^score\.", r"^qa_outputs\."))
TIED_WEIGHTS = {"lm_head.weight": "model.decoder.embed_tokens.weight"}
IDS = {"input_ids": "vocab_size", "position_ids": "max_position_embeddings"}
INPUTS = {**IDS, "inputs_embeds": "embedding_size"}

POSITION_OFFSET = 2  # rows of the table of positions that come before that of the first token
EPS = 1e-5


class OPTModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, E)


class Embeddings(Module):
    def __init__(self, w: Weights, cfg: OPTConfig):
        D, E, self.padding = cfg.hidden_size, cfg.embedding_size, cfg.pad_token_id
        self.word = w.embedding("embed_tokens.weight", cfg.vocab_size, E)
        self.position = w.get("embed_positions.weight", (cfg.max_position_embeddings + POSITION_OFFSET, D))
        self.projection = None if E == D else Linear(w / "project_in", E, D, bias=False)
        self.max_positions = cfg.max_position_embeddings

    def positions(self, t: TextInputs) -> Array:
        """-> (T,), (B, T) or (1, T)."""
        if t.position_ids is not None:
            return t.position_ids
        if t.context.mask is None:
            return ops.arange(t.shape[1], self.position) + t.past
        if t.cache is not None:
            raise InputError("positions count the tokens that attention_mask shows: with a cache pass none")
        return ops.cumsum(t.context.mask, 1) * t.context.mask - 1

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        x = t.inputs_embeds
        if x is None:
            x = ops.embedding(t.ids, self.word, "input_ids", self.padding)
        if self.projection is not None:
            x = self.projection(x)
        return x + ops.embedding(self.positions(t) + POSITION_OFFSET, self.position, "position_ids")


class Layer(Module):
    def __init__(self, w: Weights, cfg: OPTConfig):
        D, F, bias, a = cfg.hidden_size, cfg.ffn_dim, cfg.enable_bias, w / "self_attn"
        self.heads, self.norms_before = cfg.num_attention_heads, cfg.do_layer_norm_before
        self.norm = LayerNorm(w / "self_attn_layer_norm", D, EPS)
        self.qkv = Linear.fuse(a, ["q_proj", "k_proj", "v_proj"], D, [D, D, D], bias)
        self.dropout = Dropout(cfg.attention_dropout)
        self.out = Linear(a / "out_proj", D, D, bias, dropout=cfg.dropout)
        self.final_norm = LayerNorm(w / "final_layer_norm", D, EPS)
        self.up = Linear(w / "fc1", D, F, bias, act=cfg.activation_function)
        self.down = Linear(w / "fc2", F, D, bias, dropout=cfg.dropout)

    def attention(self, x: Array, c: Context, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        q, k, v = ops.split_heads(self.qkv(x), self.heads)
        if cache is not None:
            k, v = cache.extend(k, v, masked=c.mask is not None)
        a = ops.attention(q, k, v, mask=c.mask, start=c.start, dropout=self.dropout.rate)
        return self.out(a.reshape(x.shape))

    def __call__(self, x: Array, c: Context, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        if self.norms_before:
            y, x = self.final_norm.add(self.attention(self.norm(x), c, cache), x)
            return self.down(self.up(y), residual=x)
        x = self.norm(self.attention(x, c, cache), residual=x)
        return self.final_norm(self.down(self.up(x)), residual=x)


class OPTPretrained(TextModel):
    config_class = OPTConfig
    name_map = NAME_MAP
    keep_16bit = is_causal = True
    inputs = INPUTS

    @property
    def like(self) -> Array:
        return self.base_model.layers[0].norm.weight  # word embeddings may have 16 bits that are widened in use


class OPTModel(OPTPretrained):
    """The layers, with a final norm or a projection."""

    is_base_model = True
    options = ("cache",)

    def __init__(self, w: Weights, cfg: OPTConfig):
        self.config, D, E, w = cfg, cfg.hidden_size, cfg.embedding_size, w / "decoder"
        self.embeddings = Embeddings(w, cfg)
        self.layers = [Layer(w / "layers" / i, cfg) for i in range(cfg.num_hidden_layers)]
        self.norm = LayerNorm(w / "final_layer_norm", D, EPS) if cfg.do_layer_norm_before else None
        self.projection = None if E == D else Linear(w / "project_out", D, E, bias=False)

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, E) of every token."""
        x = self.embeddings(t)
        for layer, cache in t.with_cache(self.layers):
            x = layer(x, t.context, cache)
        if self.norm is not None:
            x = self.norm(x)
        return x if self.projection is None else self.projection(x)

    def forward(self, t: TextInputs) -> OPTModelOutput:
        return OPTModelOutput(self.encode(t))


class OPTHead(OPTPretrained):
    """The base of the classes with a head: the base model under its name in the checkpoint."""

    def __init__(self, w: Weights, cfg: OPTConfig):
        self.config = cfg
        self.base_model = OPTModel(w / "model", cfg)


class OPTForCausalLM(CausalLM, OPTHead):
    """The decoder: logits of the next token."""

    tied = TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: OPTConfig):
        super().__init__(w, cfg)
        self.head = Linear(w / "lm_head", cfg.embedding_size, cfg.vocab_size, bias=False, vocab=True)


class OPTForSequenceClassification(LastTokenClassification, OPTHead):
    inputs = IDS  # the ids show where rows end

    def __init__(self, w: Weights, cfg: OPTConfig):
        OPTHead.__init__(self, w, cfg)
        self.score = Linear(w / "score", cfg.embedding_size, cfg.num_labels, bias=False)


class OPTForQuestionAnswering(QuestionAnswering, OPTHead):
    def __init__(self, w: Weights, cfg: OPTConfig):
        OPTHead.__init__(self, w, cfg)
        self.qa_outputs = Linear(w / "qa_outputs", cfg.embedding_size, 2)
