"""GPT-2 (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", https://openai.com/index/
better-language-models), and the heads trained on it.

A causal stack of pre-norm layers over learned positions.  Checkpoints have the layers' matrices transposed.

Shapes: B batch, T tokens, S tokens to attend to, D n_embd, F n_inner, H heads, K = D / H, V vocab_size, C labels.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from ... import ops
from ...cache import LayerCache
from ...inputs import Context, TextInputs, TextModel
from ...inputs.heads import CausalLM, LastTokenClassification, QuestionAnswering, TokenClassification
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from .config import GPT2Config

NAME_MAP = NameMap(
    prefix="transformer",
    base=("wte", "wpe", "h", "ln_f"),
    transposed=(r"\.(c_attn|c_proj|c_fc)\.weight$",),
    # Buffers of causal masks, and the heads of other classes.
    ignored=(r"\.attn\.(masked_)?bias$", r"^lm_head\.", r"^score\.", r"^classifier\.", r"^qa_outputs\."),
)
TIED_WEIGHTS = {"lm_head.weight": "transformer.wte.weight"}
# Argument -> the config's field that bounds its ids, or is the width of its vectors.
IDS = {"input_ids": "vocab_size", "position_ids": "n_positions"}
INPUTS = {**IDS, "inputs_embeds": "n_embd"}


class GPT2ModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D)


class Embeddings(Module):
    def __init__(self, w: Weights, cfg: GPT2Config):
        self.word = w.embedding("wte.weight", cfg.vocab_size, cfg.n_embd)
        self.position = w.get("wpe.weight", (cfg.n_positions, cfg.n_embd))
        self.dropout = Dropout(cfg.embd_pdrop)
        self.max_positions = cfg.n_positions

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        x = ops.embedding(t.ids, self.word, "input_ids") if t.inputs_embeds is None else t.inputs_embeds
        at = ops.arange(t.shape[1], self.position) + t.past if t.position_ids is None else t.position_ids
        return self.dropout(x + ops.embedding(at, self.position, "position_ids"))


class Layer(Module):
    def __init__(self, w: Weights, cfg: GPT2Config, layer: int):
        D, F, eps = cfg.n_embd, cfg.n_inner or 4 * cfg.n_embd, cfg.layer_norm_epsilon
        self.heads, self.scale = cfg.n_head, cfg.scale(layer)
        self.attention_norm = LayerNorm(w / "ln_1", D, eps)
        self.qkv = Linear(w / "attn.c_attn", D, 3 * D)
        self.dropout = Dropout(cfg.attn_pdrop)
        self.out = Linear(w / "attn.c_proj", D, D, dropout=cfg.resid_pdrop)
        self.mlp_norm = LayerNorm(w / "ln_2", D, eps)
        self.up = Linear(w / "mlp.c_fc", D, F, act=cfg.activation_function)
        self.down = Linear(w / "mlp.c_proj", F, D, dropout=cfg.resid_pdrop)

    def __call__(self, x: Array, c: Context, cache: LayerCache | None, bias: Array | None) -> Array:
        """x (B, T, D), bias (B, 1, T, T) -> (B, T, D)."""
        q, k, v = ops.split_heads(self.qkv(self.attention_norm(x)), self.heads)
        if cache is not None:
            k, v = cache.extend(k, v, masked=c.mask is not None)
        rate = self.dropout.rate
        a = ops.attention(q, k, v, start=c.start, mask=c.mask, bias=bias, scale=self.scale, dropout=rate)
        y, x = self.mlp_norm.add(self.out(a.reshape(x.shape)), x)
        return self.down(self.up(y), residual=x)


class GPT2Pretrained(TextModel):
    config_class = GPT2Config
    name_map = NAME_MAP
    keep_16bit = is_causal = separates_texts = True
    inputs = INPUTS

    @property
    def like(self) -> Array:
        return self.base_model.norm.weight  # word embeddings may have 16 bits that are widened in use


class GPT2Model(GPT2Pretrained):
    """The layers and a final norm."""

    is_base_model = True
    options = ("cache",)
    layer_class: ClassVar[type[Any]] = Layer  # made of weights, config and its number

    def __init__(self, w: Weights, cfg: GPT2Config):
        self.config = cfg
        self.embeddings = Embeddings(w, cfg)
        self.layers = [self.layer_class(w / "h" / i, cfg, i) for i in range(cfg.n_layer)]
        self.norm = LayerNorm(w / "ln_f", cfg.n_embd, cfg.layer_norm_epsilon)

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token.  Positions count from a row's beginning, padding included."""
        x = self.embeddings(t)
        bias = t.context.other_texts_bias(x)
        for layer, cache in t.with_cache(self.layers):
            x = layer(x, t.context, cache, bias)
        return self.norm(x)

    def forward(self, t: TextInputs) -> GPT2ModelOutput:
        return GPT2ModelOutput(self.encode(t))


class GPT2Head(GPT2Pretrained):
    """The base of the classes with a head: the base model under its name in the checkpoint."""

    base_class: ClassVar[type[Any]] = GPT2Model

    def __init__(self, w: Weights, cfg: GPT2Config):
        self.config = cfg
        self.base_model = self.base_class(w / "transformer", cfg)


class GPT2LMHeadModel(CausalLM, GPT2Head):
    """The decoder: logits of the next token."""

    tied = TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: GPT2Config):
        super().__init__(w, cfg)
        self.head = Linear(w / "lm_head", cfg.n_embd, cfg.vocab_size, bias=False, vocab=True)


class GPT2ForSequenceClassification(LastTokenClassification, GPT2Head):
    inputs = IDS  # the ids show where rows end


class GPT2ForTokenClassification(TokenClassification, GPT2Head):
    def __init__(self, w: Weights, cfg: GPT2Config):
        GPT2Head.__init__(self, w, cfg)
        self.dropout = Dropout(0.1 if cfg.classifier_dropout is None else cfg.classifier_dropout)
        self.classifier = Linear(w / "classifier", cfg.n_embd, cfg.num_labels)


class GPT2ForQuestionAnswering(QuestionAnswering, GPT2Head): ...
