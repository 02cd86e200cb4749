"""ModernBERT's decoder (Ettin: Weller et al. 2025, https://arxiv.org/abs/2507.11412): its layers, in which a token
attends to itself and those before it, in most layers to the nearest.

Shapes: B batch, T tokens, D hidden_size, F intermediate_size, H heads, K head size, V vocab_size, C labels.
"""

from __future__ import annotations

from typing import NamedTuple

from ... import ops
from ...cache import LayerCache
from ...inputs import TextInputs, TextModel
from ...inputs.heads import CausalLM, LastTokenClassification
from ...nn import Dropout, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..llama3 import model as llama
from ..modernbert import model as modernbert
from .config import ModernBertDecoderConfig

NAME_MAP = NameMap(
    prefix="model",
    base=("embeddings", "layers", "final_norm"),
    ignored=(r"^lm_head\.", r"^decoder\.", r"^head\.", r"^classifier\."),  # other heads, which stay in files
)


class RopeContext(NamedTuple):
    """The arguments of global and of local layers besides their input."""

    everywhere: llama.RopeContext
    nearby: llama.RopeContext


class Attention(llama.Attention):
    def __init__(self, w: Weights, cfg: ModernBertDecoderConfig, layer: int):
        D, bias = cfg.hidden_size, cfg.attention_bias
        self.heads = self.groups = cfg.num_attention_heads
        self.qkv = Linear.fuse(w, ["q_proj", "k_proj", "v_proj"], D, [D, D, D], bias)
        self.dropout = Dropout(cfg.attention_dropout)
        self.out = Linear(w / "Wo", D, D, bias, dropout=cfg.attention_dropout)
        self.window, self.rotates = cfg.window(layer), True


class Layer(Module):
    """The first layer has no norm before its attention: it reads the embeddings' norm."""

    def __init__(self, w: Weights, cfg: ModernBertDecoderConfig, layer: int):
        D, F = cfg.hidden_size, cfg.intermediate_size
        self.is_local = cfg.is_local(layer)
        self.attention_norm = modernbert.norm(w / "attn_norm", cfg) if layer else None
        self.attention = Attention(w / "attn", cfg, layer)
        self.mlp_norm = modernbert.norm(w / "mlp_norm", cfg)
        self.gate_up = Linear(w / "mlp.Wi", D, 2 * F, bias=cfg.mlp_bias)
        self.act = ops.activation(cfg.hidden_activation)
        self.mlp_dropout = Dropout(cfg.mlp_dropout)
        self.down = Linear(w / "mlp.Wo", F, D, bias=cfg.mlp_bias)

    def __call__(self, x: Array, c: RopeContext, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        y = x if self.attention_norm is None else self.attention_norm(x)
        y, x = self.mlp_norm.add(self.attention(y, c[self.is_local], cache), x)
        return self.down(self.mlp_dropout(ops.glu(self.gate_up(y), self.act)), residual=x)


class ModernBertDecoderPretrained(TextModel):
    config_class = ModernBertDecoderConfig
    name_map = NAME_MAP
    is_causal = separates_texts = True
    inputs = modernbert.INPUTS

    @property
    def windows(self) -> list[int | None]:
        return [self.config.window(layer) for layer in range(self.config.num_hidden_layers)]


class ModernBertDecoderModel(ModernBertDecoderPretrained):
    """The layers and a final norm."""

    is_base_model = True
    options = ("cache",)

    def __init__(self, w: Weights, cfg: ModernBertDecoderConfig):
        self.config = cfg
        self.embeddings = modernbert.Embeddings(w / "embeddings", cfg)
        self.layers = [Layer(w / "layers" / i, cfg, i) for i in range(cfg.num_hidden_layers)]
        self.norm = modernbert.norm(w / "final_norm", cfg)
        self.ropes = cfg.rope(local=False), cfg.rope(local=True)

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x = self.embeddings(t)
        at = t.start[:, None] + ops.arange(t.shape[1], x) if t.position_ids is None else t.position_ids
        mask, bias = t.context.mask, t.context.other_texts_bias(x)
        turns = (ops.rotary(at, rope.frequencies(t.length), rope.scale, x) for rope in self.ropes)
        c = RopeContext(*(llama.RopeContext(mask, t.start, cos_sin, bias) for cos_sin in turns))
        for layer, cache in t.with_cache(self.layers):
            x = layer(x, c, cache)
        return self.norm(x)

    def forward(self, t: TextInputs) -> modernbert.ModernBertModelOutput:
        return modernbert.ModernBertModelOutput(self.encode(t))


class Predictions(Module):
    def __init__(self, w: Weights, cfg: ModernBertDecoderConfig):
        self.transform = modernbert.Head(w / "lm_head", cfg)
        self.decoder = Linear(w / "decoder", cfg.hidden_size, cfg.vocab_size, bias=cfg.decoder_bias, vocab=True)

    def __call__(self, x: Array) -> Array:
        """x (..., D) -> logits (..., V)."""
        return self.decoder(self.transform(x))


class ModernBertDecoderForCausalLM(CausalLM, ModernBertDecoderPretrained):
    tied = modernbert.TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: ModernBertDecoderConfig):
        self.config = cfg
        self.base_model = ModernBertDecoderModel(w / "model", cfg)
        self.head = Predictions(w, cfg)


class Classifier(Module):
    def __init__(self, w: Weights, cfg: ModernBertDecoderConfig):
        self.transform = modernbert.Head(w / "head", cfg)
        self.dropout = Dropout(cfg.classifier_dropout)
        self.classifier = Linear(w / "classifier", cfg.hidden_size, cfg.num_labels, bias=cfg.classifier_bias)

    def __call__(self, x: Array) -> Array:
        """x (..., D) -> logits (..., C)."""
        return self.classifier(self.dropout(self.transform(x)))


class ModernBertDecoderForSequenceClassification(LastTokenClassification, ModernBertDecoderPretrained):
    inputs = {name: field for name, field in modernbert.INPUTS.items() if name != "inputs_embeds"}  # noqa: RUF012

    def __init__(self, w: Weights, cfg: ModernBertDecoderConfig):
        self.config = cfg
        self.base_model = ModernBertDecoderModel(w / "model", cfg)
        self.score: Module = Classifier(w, cfg)
