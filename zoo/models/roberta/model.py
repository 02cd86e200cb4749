"""RoBERTa (Liu et al. 2019, https://arxiv.org/abs/1907.11692) and XLM-R (Conneau et al. 2019,
https://arxiv.org/abs/1911.02116): BERT's stack with other positions and other heads.

The two differ in vocabulary alone: XLM-R has a config of its own, and its models are these classes.

Shapes: B batch, T tokens, D hidden_size, V vocab_size, C labels.
"""

from __future__ import annotations

from ... import ops
from ...inputs import TextInputs
from ...inputs.heads import CausalLM, DenseClassifier, MaskedLM, MaskedLMHead, QuestionAnswering, TokenClassification
from ...nn import LayerNorm, Linear
from ...typing import Array
from ...weights import NameMap, Weights
from ..bert.config import BertConfig
from ..bert.heads import BertForMultipleChoice
from ..bert.model import BertHead, BertModel, Embeddings
from .config import RobertaConfig

NAME_MAP = NameMap(
    prefix="roberta",
    base=("embeddings", "encoder", "pooler"),
    renames={r"LayerNorm\.gamma$": "LayerNorm.weight", r"LayerNorm\.beta$": "LayerNorm.bias"},
    # A buffer that counts up from 0, and a pooler and a head that files keep after another head was trained.
    ignored=(r"(^|\.)embeddings\.position_ids$", r"^(roberta\.)?pooler\.", r"^lm_head\."),
)

TIED_WEIGHTS = {
    "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
    "lm_head.decoder.bias": "lm_head.bias",
}


class RobertaEmbeddings(Embeddings):
    """BERT's, with positions that count from pad_token_id + 1 and skip padding."""

    def __init__(self, w: Weights, cfg: RobertaConfig):
        super().__init__(w, cfg)
        self.pad = self.position_padding = cfg.pad_token_id

    @property
    def max_positions(self) -> int:
        return self.position.shape[0] - self.pad - 1

    def positions(self, t: TextInputs) -> Array:
        """Positions by input_ids, not by the mask: padding inside a text is skipped too.  -> (T,) or (B, T)."""
        if t.input_ids is None:
            return ops.arange(t.shape[1], self.word) + (self.pad + 1 + t.past)
        token = t.ids != self.pad
        return (ops.cumsum(token, 1) + t.past) * token + self.pad


class RobertaModel(BertModel):
    config_class = RobertaConfig
    name_map = NAME_MAP
    embeddings_class = RobertaEmbeddings


class RobertaHead(BertHead):
    config_class = RobertaConfig
    name_map = NAME_MAP
    base_class = RobertaModel


class LMHead(MaskedLMHead):
    """A logit for each word of the vocabulary.  Its GELU is exact, whatever `hidden_act` says."""

    def __init__(self, w: Weights, cfg: BertConfig):
        D, V = cfg.hidden_size, cfg.vocab_size
        self.dense = Linear(w / "dense", D, D, act="gelu")
        self.norm = LayerNorm(w / "layer_norm", D, cfg.layer_norm_eps)
        self.decoder = Linear(w / "decoder", D, V, vocab=True)


class RobertaForMaskedLM(MaskedLM, RobertaHead):
    tied = TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: RobertaConfig):
        super().__init__(w, cfg)
        self.head = LMHead(w / "lm_head", cfg)


class RobertaForCausalLM(CausalLM, RobertaForMaskedLM):
    """The decoder: logits of the next token."""

    inputs = RobertaModel.inputs


class RobertaForSequenceClassification(RobertaHead):
    def __init__(self, w: Weights, cfg: RobertaConfig):
        super().__init__(w, cfg)
        self.classifier = DenseClassifier(w / "classifier", cfg, cfg.head_dropout)

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, C)."""
        return self.classifier(self.base_model.encode(t)[:, 0])


class RobertaForMultipleChoice(RobertaHead, BertForMultipleChoice): ...


class RobertaForTokenClassification(TokenClassification, RobertaHead): ...


class RobertaForQuestionAnswering(QuestionAnswering, RobertaHead): ...
