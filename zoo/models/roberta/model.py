"""RoBERTa (Liu et al. 2019, https://arxiv.org/abs/1907.11692) and XLM-R (Conneau et al. 2019,
https://arxiv.org/abs/1911.02116): BERT's stack with other positions and other heads.

The two differ in vocabulary alone, and XLM-R's checkpoints name their tensors as RoBERTa's do.

Shapes: B batch, T tokens, D hidden_size, V vocab_size, C labels.  Masks are true for a token and false for padding.
"""

from __future__ import annotations

from ... import ops
from ...cache import KVCache
from ...nn import LayerNorm, Linear, Module
from ...pretrained import Pretrained
from ...typing import Array
from ...weights import Layout, Weights
from ..bert.decoding import Decoding
from ..bert.model import BertModel, Embeddings, QuestionAnsweringOutput
from .config import RobertaConfig, XLMRobertaConfig

LAYOUT = Layout(
    prefix="roberta",
    body=("embeddings", "encoder", "pooler"),
    renames={r"LayerNorm\.gamma$": "LayerNorm.weight", r"LayerNorm\.beta$": "LayerNorm.bias"},
    # A buffer that counts up from 0, and a pooler and a head that stay in files that do not use them.
    ignored=(r"(^|\.)embeddings\.position_ids$", r"^(roberta\.)?pooler\.", r"^lm_head\."),
)

TIED = {
    "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
    "lm_head.decoder.bias": "lm_head.bias",
}


class RobertaEmbeddings(Embeddings):
    """BERT's, with positions that are counted from pad_token_id + 1, over the tokens that are not padding."""

    def __init__(self, w: Weights, cfg: RobertaConfig):
        super().__init__(w, cfg)
        self.pad = cfg.pad_token_id

    @property
    def max_positions(self) -> int:
        return self.position.shape[0] - self.pad - 1

    def positions(self, input_ids: Array | None, T: int, past: Array | int) -> Array:
        """From input_ids, not from the mask: padding in the middle of a text is not counted.  -> (T,) or (B, T)."""
        if input_ids is None:
            return ops.arange(T, self.word) + (self.pad + 1 + past)
        token = input_ids != self.pad
        return (ops.cumsum(token, 1) + past) * token + self.pad


class RobertaPretrained(Pretrained):
    config_class = RobertaConfig
    layout = LAYOUT


class RobertaModel(BertModel):
    """The stack, and of its output a summary: the pooler's tanh(dense(first token)), if the checkpoint has one."""

    config_class = RobertaConfig
    layout = LAYOUT
    embeddings_class = RobertaEmbeddings


class LMHead(Module):
    """A logit for each word of the vocabulary.  Its GELU is exact, whatever `hidden_act` says."""

    def __init__(self, w: Weights, cfg: RobertaConfig):
        D, V = cfg.hidden_size, cfg.vocab_size
        self.dense = Linear(w / "dense", D, D, act="gelu")
        self.norm = LayerNorm(w / "layer_norm", D, cfg.layer_norm_eps)
        self.decoder = Linear(w / "decoder", D, V)

    def __call__(self, x: Array) -> Array:
        """x (..., D) -> (..., V)."""
        return self.decoder(self.norm(self.dense(x)))


class ClassificationHead(Module):
    def __init__(self, w: Weights, cfg: RobertaConfig):
        D = cfg.hidden_size
        self.dense = Linear(w / "dense", D, D, act="tanh")
        self.out_proj = Linear(w / "out_proj", D, cfg.num_labels)

    def __call__(self, x: Array) -> Array:
        """x (B, T, D) -> (B, C), of the first token of each text."""
        return self.out_proj(self.dense(x[:, 0]))


class RobertaForMaskedLM(RobertaPretrained):
    tied = TIED

    def __init__(self, w: Weights, cfg: RobertaConfig):
        self.config = cfg
        self.roberta = RobertaModel(w / "roberta", cfg, pooler=False)
        self.predictions = LMHead(w / "lm_head", cfg)

    def __call__(
        self, input_ids: Array, attention_mask: Array | None = None, token_type_ids: Array | None = None
    ) -> Array:
        """input_ids, attention_mask, token_type_ids (B, T) -> logits (B, T, V)."""
        return self.predictions(self.roberta(input_ids, attention_mask, token_type_ids).last_hidden_state)


class RobertaForCausalLM(Decoding, RobertaPretrained):
    """The decoder: logits of the next token, step by step with a cache from `model.roberta.new_cache(B)`."""

    tied = TIED

    def __init__(self, w: Weights, cfg: RobertaConfig):
        self.config = cfg
        self.roberta = RobertaModel(w / "roberta", cfg, pooler=False)
        self.predictions = LMHead(w / "lm_head", cfg)

    def __call__(
        self,
        input_ids: Array,
        attention_mask: Array | None = None,
        token_type_ids: Array | None = None,
        encoder_hidden_states: Array | None = None,
        encoder_attention_mask: Array | None = None,
        cache: KVCache | None = None,
        logits_to_keep: int = 0,
    ) -> Array:
        """input_ids (B, T) -> logits (B, T, V), or of the last `logits_to_keep` tokens if that is not 0."""
        x = self.roberta(
            input_ids,
            attention_mask,
            token_type_ids,
            encoder_hidden_states=encoder_hidden_states,
            encoder_attention_mask=encoder_attention_mask,
            cache=cache,
        ).last_hidden_state
        return self.predictions(x[:, -logits_to_keep:] if logits_to_keep else x)


class RobertaForSequenceClassification(RobertaPretrained):
    def __init__(self, w: Weights, cfg: RobertaConfig):
        self.config = cfg
        self.roberta = RobertaModel(w / "roberta", cfg, pooler=False)
        self.classifier = ClassificationHead(w / "classifier", cfg)

    def __call__(
        self, input_ids: Array, attention_mask: Array | None = None, token_type_ids: Array | None = None
    ) -> Array:
        """input_ids, attention_mask, token_type_ids (B, T) -> logits (B, C)."""
        return self.classifier(self.roberta(input_ids, attention_mask, token_type_ids).last_hidden_state)


class RobertaForMultipleChoice(RobertaPretrained):
    def __init__(self, w: Weights, cfg: RobertaConfig):
        self.config = cfg
        self.roberta = RobertaModel(w / "roberta", cfg, pooler=True)
        self.classifier = Linear(w / "classifier", cfg.hidden_size, 1)

    def __call__(
        self, input_ids: Array, attention_mask: Array | None = None, token_type_ids: Array | None = None
    ) -> Array:
        """input_ids, attention_mask, token_type_ids (B, choices, T) -> logits (B, choices)."""
        input_ids = ops.as_ids(input_ids, self.roberta.embeddings.word, "input_ids", self.config.vocab_size, ndim=3)
        B, T = input_ids.shape[0], input_ids.shape[-1]
        flat = (a if a is None else a.reshape(-1, T) for a in (input_ids, attention_mask, token_type_ids))
        return self.classifier(self.roberta(*flat).pooler_output).reshape(B, -1)


class RobertaForTokenClassification(RobertaPretrained):
    def __init__(self, w: Weights, cfg: RobertaConfig):
        self.config = cfg
        self.roberta = RobertaModel(w / "roberta", cfg, pooler=False)
        self.classifier = Linear(w / "classifier", cfg.hidden_size, cfg.num_labels)

    def __call__(
        self, input_ids: Array, attention_mask: Array | None = None, token_type_ids: Array | None = None
    ) -> Array:
        """input_ids, attention_mask, token_type_ids (B, T) -> logits (B, T, C)."""
        return self.classifier(self.roberta(input_ids, attention_mask, token_type_ids).last_hidden_state)


class RobertaForQuestionAnswering(RobertaPretrained):
    def __init__(self, w: Weights, cfg: RobertaConfig):
        self.config = cfg
        self.roberta = RobertaModel(w / "roberta", cfg, pooler=False)
        self.qa_outputs = Linear(w / "qa_outputs", cfg.hidden_size, 2)

    def __call__(
        self, input_ids: Array, attention_mask: Array | None = None, token_type_ids: Array | None = None
    ) -> QuestionAnsweringOutput:
        """input_ids, attention_mask, token_type_ids (B, T) -> logits (B, T) of an answer's first and last token."""
        y = self.qa_outputs(self.roberta(input_ids, attention_mask, token_type_ids).last_hidden_state)
        return QuestionAnsweringOutput(y[:, :, 0], y[:, :, 1])


# XLM-R: the same classes under the names that its checkpoints' configs give.


class XLMRobertaModel(RobertaModel):
    config_class = XLMRobertaConfig


class XLMRobertaForMaskedLM(RobertaForMaskedLM):
    config_class = XLMRobertaConfig


class XLMRobertaForCausalLM(RobertaForCausalLM):
    config_class = XLMRobertaConfig


class XLMRobertaForSequenceClassification(RobertaForSequenceClassification):
    config_class = XLMRobertaConfig


class XLMRobertaForMultipleChoice(RobertaForMultipleChoice):
    config_class = XLMRobertaConfig


class XLMRobertaForTokenClassification(RobertaForTokenClassification):
    config_class = XLMRobertaConfig


class XLMRobertaForQuestionAnswering(RobertaForQuestionAnswering):
    config_class = XLMRobertaConfig
