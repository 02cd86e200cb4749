"""EuroBERT (Boizard et al. 2025, https://arxiv.org/abs/2503.05500): Llama's layers, whose tokens attend to those after
them too, and the heads of an encoder.

Shapes: B batch, T tokens, D hidden_size, V vocab_size, C labels.
"""

from __future__ import annotations

from ... import ops
from ...inputs import TextInputs
from ...inputs.heads import MaskedLM
from ...nn import Linear
from ...typing import Array
from ...weights import NameMap, Weights
from ..llama3 import model as llama
from .config import EuroBertConfig

NAME_MAP = NameMap(prefix="model", base=llama.BASE, ignored=(*llama.IGNORED_WEIGHTS, r"^dense\.", r"^classifier\."))


class EuroBertPretrained(llama.LlamaPretrained):
    config_class = EuroBertConfig
    name_map = NAME_MAP
    is_causal = separates_texts = False


class EuroBertModel(EuroBertPretrained, llama.LlamaModel):
    options = ()

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x = self.embeddings(t)
        at = ops.arange(x.shape[1], self.like)[None] if t.position_ids is None else t.position_ids
        cos_sin = ops.rotary(at, self.rope.frequencies(t.length), self.rope.scale, self.like)
        c = llama.RopeContext(t.context.mask, None, cos_sin)
        for layer in self.layers:
            x = layer(x, c, None)
        return self.norm(x)


class EuroBertHead(EuroBertPretrained, llama.LlamaHead):
    base_class = EuroBertModel


class EuroBertForMaskedLM(MaskedLM, EuroBertHead):
    tied = llama.TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: EuroBertConfig):
        super().__init__(w, cfg)
        self.head = Linear(w / "lm_head", cfg.hidden_size, cfg.vocab_size, bias=cfg.feedforward_bias, vocab=True)


class EuroBertForSequenceClassification(EuroBertHead):
    def __init__(self, w: Weights, cfg: EuroBertConfig):
        super().__init__(w, cfg)
        self.dense = Linear(w / "dense", cfg.hidden_size, cfg.hidden_size, act="gelu")
        self.classifier = Linear(w / "classifier", cfg.hidden_size, cfg.num_labels)

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, C)."""
        x, mask, pooling = self.base_model.encode(t), t.context.mask, self.config.classifier_pooling
        if pooling == "bos":
            return self.classifier(self.dense(x[:, 0]))
        if pooling == "mean":
            return self.classifier(self.dense(mean_of_tokens(x, mask)))
        return mean_of_tokens(self.classifier(self.dense(x)), mask)


class EuroBertForTokenClassification(EuroBertHead):
    def __init__(self, w: Weights, cfg: EuroBertConfig):
        super().__init__(w, cfg)
        self.classifier = Linear(w / "classifier", cfg.hidden_size, cfg.num_labels)

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, T, C)."""
        return self.classifier(self.base_model.encode(t))


def mean_of_tokens(x: Array, mask: Array | None) -> Array:
    """x (B, T, D), mask (B, T) -> the mean of the tokens that are no padding (B, D)."""
    if mask is None:
        return ops.mean(x, 1)
    zeros = x[:, :, :1] * 0
    shown = ops.where(mask[:, :, None], zeros + 1, zeros)
    return ops.mean(x * shown, 1) / ops.mean(shown, 1)
