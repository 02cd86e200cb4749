"""LUKE (Yamada et al. 2020, https://arxiv.org/abs/2010.01057): RoBERTa over a text's tokens and its entities, where a
query depends on whether it looks from a word or an entity at a word or an entity.

Shapes: B batch, T tokens, E entities, S = T + E, M places of an entity, D hidden_size, H heads, K = D / H,
V vocab_size, U entity_vocab_size, C labels.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from ... import ops
from ...inputs import TextInputs
from ...inputs.entities import EntityInputs, EntityTextModel
from ...inputs.heads import MaskedLMHead, QuestionAnswering, QuestionAnsweringOutput, TokenClassification, split_spans
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..bert.heads import BertForSequenceClassification
from ..bert.model import INPUTS, Attention, BertHead, BertModel
from ..roberta.model import LMHead, RobertaEmbeddings
from .config import LukeConfig

NAME_MAP = NameMap(
    prefix="luke",
    base=("embeddings", "entity_embeddings", "encoder", "pooler"),
    # A buffer that counts up from 0, and a pooler and heads that files keep after another head was trained.
    ignored=(r"(^|\.)embeddings\.position_ids$", r"^(luke\.)?pooler\.", r"^(lm_head|entity_predictions)\."),
)
# As in transformers 5: the matrix of words is not tied, and files have it.
TIED_WEIGHTS = {
    "lm_head.decoder.bias": "lm_head.bias",
    "entity_predictions.decoder.weight": "luke.entity_embeddings.entity_embeddings.weight",
}
POOLER = (r"^luke\.pooler\.",)  # transformers' classes have it, and compute without it


class LukeModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D)
    pooler_output: Array | None  # (B, D), None if the checkpoint has no pooler
    entity_last_hidden_state: Array | None  # (B, E, D), None if the text has no entities


class LukeMaskedLMOutput(NamedTuple):
    logits: Array  # (B, T, V)
    entity_logits: Array | None  # (B, E, U), None if the text has no entities


class EntityEmbeddings(Module):
    """The embedding of an entity, its segment's, and the mean of those of its tokens' positions."""

    def __init__(self, w: Weights, cfg: LukeConfig):
        D, width = cfg.hidden_size, cfg.entity_emb_size
        self.entity = w.embedding("entity_embeddings.weight", cfg.entity_vocab_size, width)
        self.dense = Linear(w / "entity_embedding_dense", width, D, bias=False) if width != D else None
        self.position = w.get("position_embeddings.weight", (cfg.max_position_embeddings, D))
        self.token_type = w.get("token_type_embeddings.weight", (cfg.type_vocab_size, D))
        self.norm = LayerNorm(w / "LayerNorm", D, cfg.layer_norm_eps)
        self.dropout = Dropout(cfg.hidden_dropout_prob)

    def __call__(self, e: EntityInputs) -> Array:
        """-> (B, E, D)."""
        x = ops.embedding(e.ids, self.entity, "entity_ids", 0)
        if self.dense is not None:
            x = self.dense(x)
        known, zero = (e.positions > 0)[..., None], ops.zeros((1,), x)
        places = ops.embedding(
            (e.positions - 1) * (e.positions > 0), self.position, "entity_position_ids"
        )  # (B, E, M, D)
        share = ops.clip(ops.mean(ops.where(known, zero + 1, zero), 2), 1e-7, None)
        x = x + ops.mean(ops.where(known, places, zero), 2) / share
        return self.dropout(self.norm(x + ops.embedding(e.token_type_ids, self.token_type, "entity_token_type_ids")))


class EntityAttention(Attention):
    """Self-attention of words and entities, with a query for each pair of kinds."""

    def __init__(self, w: Weights, cfg: LukeConfig):
        super().__init__(w, cfg)
        names = ("w2e", "e2w", "e2e") if cfg.use_entity_aware_attention else ()
        self.queries = [Linear(w / f"self.{name}_query", cfg.hidden_size, cfg.hidden_size) for name in names]

    def of_both(self, words: Array, entities: Array | None, mask: Array | None) -> Array:
        """words (B, T, D), entities (B, E, D), mask (B, S) -> (B, S, D)."""
        x = words if entities is None else ops.cat([words, entities], 1)
        q, k, v = ops.split_heads(self.qkv(x), self.heads)
        K = q.shape[3]
        if entities is not None and self.queries:
            # A key has one half for queries of words and one for those of entities, of which the other is 0.
            T, (to_entity, to_word, among) = words.shape[1], self.queries
            one, other, nothing = q[:, :T].shape, q[:, T:].shape, k * 0
            at_words = ops.cat([q[:, :T], to_word(entities).reshape(other)], 1)
            q = ops.cat([at_words, ops.cat([to_entity(words).reshape(one), among(entities).reshape(other)], 1)], 3)
            k = ops.cat([ops.cat([k[:, :T], nothing[:, T:]], 1), ops.cat([nothing[:, :T], k[:, T:]], 1)], 3)
            v = ops.cat([v, nothing], 3)
        a = ops.attention(q, k, v, mask=mask, scale=K**-0.5, dropout=self.dropout.rate)
        return self.norm(self.out(a[..., :K].reshape(x.shape)), residual=x)


class Layer(Module):
    def __init__(self, w: Weights, cfg: LukeConfig):
        D, F = cfg.hidden_size, cfg.intermediate_size
        self.attention = EntityAttention(w / "attention", cfg)
        self.up = Linear(w / "intermediate.dense", D, F, act=cfg.hidden_act)
        self.down = Linear(w / "output.dense", F, D, dropout=cfg.hidden_dropout_prob)
        self.norm = LayerNorm(w / "output.LayerNorm", D, cfg.layer_norm_eps)

    def __call__(self, words: Array, entities: Array | None, mask: Array | None) -> tuple[Array, Array | None]:
        """words (B, T, D), entities (B, E, D), mask (B, S) -> words and entities."""
        x, T = self.attention.of_both(words, entities, mask), words.shape[1]
        x = self.norm(self.down(self.up(x)), residual=x)
        return (x, None) if entities is None else (x[:, :T], x[:, T:])


class LukeModel(EntityTextModel, BertModel):
    config_class, name_map, inputs, options = LukeConfig, NAME_MAP, INPUTS, ()

    def __init__(self, w: Weights, cfg: LukeConfig, pooler: bool | None = None):
        self.config, D = cfg, cfg.hidden_size
        self.embeddings = RobertaEmbeddings(w / "embeddings", cfg)
        self.entity_embeddings = EntityEmbeddings(w / "entity_embeddings", cfg)
        self.layers = [Layer(w / "encoder.layer" / i, cfg) for i in range(cfg.num_hidden_layers)]
        pooler = "pooler" in w if pooler is None else pooler
        self.pooler = Linear(w / "pooler.dense", D, D, act="tanh") if pooler else None

    def encode(self, t: TextInputs, e: EntityInputs | None = None) -> Any:
        """-> (B, T, D) of every token, and (B, E, D) of every entity."""
        words, entities = self.embeddings(t), None if e is None else self.entity_embeddings(e)
        mask = t.context.mask if e is None else e.mask_with(t)
        for layer in self.layers:
            words, entities = layer(words, entities, mask)
        return words, entities

    def forward(self, t: TextInputs, entities: EntityInputs | None = None) -> LukeModelOutput:  # pyright: ignore
        words, found = self.encode(t, entities)
        return LukeModelOutput(words, None if self.pooler is None else self.pooler(words[:, 0]), found)


class LukeHead(EntityTextModel, BertHead):
    config_class, name_map, inputs, base_class = LukeConfig, NAME_MAP, INPUTS, LukeModel


class EntityPredictions(MaskedLMHead):
    """A logit for each entity."""

    def __init__(self, w: Weights, cfg: LukeConfig):
        width, U = cfg.entity_emb_size, cfg.entity_vocab_size
        self.dense = Linear(w / "transform.dense", cfg.hidden_size, width, act=cfg.hidden_act)
        self.norm = LayerNorm(w / "transform.LayerNorm", width, cfg.layer_norm_eps)
        self.decoder = Linear(w / "decoder", width, U, bias=False, vocab=True)
        self.bias = w.get("bias", (U,))

    def __call__(self, x: Array) -> Array:
        """x (..., D) -> (..., U)."""
        return super().__call__(x) + self.bias


class LukeForMaskedLM(LukeHead):
    tied, only_saved = TIED_WEIGHTS, POOLER

    def __init__(self, w: Weights, cfg: LukeConfig):
        super().__init__(w, cfg)
        self.head, self.entity_head = LMHead(w / "lm_head", cfg), EntityPredictions(w / "entity_predictions", cfg)

    def forward(self, t: TextInputs, entities: EntityInputs | None = None) -> LukeMaskedLMOutput:
        words, found = self.base_model.encode(t, entities)
        return LukeMaskedLMOutput(self.head(words), None if found is None else self.entity_head(found))


class LukeForSequenceClassification(LukeHead, BertForSequenceClassification):
    def forward(self, t: TextInputs, entities: EntityInputs | None = None) -> Array:
        """-> logits (B, C)."""
        return self.classifier(self.dropout(self.base_model.forward(t, entities).pooler_output))


class LukeForTokenClassification(TokenClassification, LukeHead):
    def forward(self, t: TextInputs, entities: EntityInputs | None = None) -> Array:
        """-> logits (B, T, C)."""
        return self.classifier(self.dropout(self.base_model.encode(t, entities)[0]))


class LukeForQuestionAnswering(QuestionAnswering, LukeHead):
    def forward(self, t: TextInputs, entities: EntityInputs | None = None) -> QuestionAnsweringOutput:
        """-> logits (B, T) of an answer's first and last token."""
        return split_spans(self.qa_outputs(self.base_model.encode(t, entities)[0]))


class LukeForEntityClassification(LukeHead):
    """A classifier of the first entity, such as its type."""

    least_entities, only_saved = 1, POOLER
    states_read: ClassVar[int] = 1  # the number of states that the classifier reads
    has_bias: ClassVar[bool] = True

    def __init__(self, w: Weights, cfg: LukeConfig):
        super().__init__(w, cfg)
        self.dropout, width = Dropout(cfg.hidden_dropout_prob), self.states_read * cfg.hidden_size
        self.classifier = Linear(w / "classifier", width, cfg.num_labels, bias=self.has_bias)

    def read(self, words: Array, entities: Array, e: EntityInputs) -> Array:
        """words (B, T, D), entities (B, E, D) -> what is classified, (B, states_read D) or (B, E, states_read D)."""
        return entities[:, 0]

    def forward(self, t: TextInputs, entities: EntityInputs) -> Array:  # pyright: ignore[reportIncompatibleMethodOverride]
        """-> logits (B, C), or (B, E, C)."""
        words, found = self.base_model.encode(t, entities)
        return self.classifier(self.dropout(self.read(words, found, entities)))


class LukeForEntityPairClassification(LukeForEntityClassification):
    """A classifier of the first two entities, such as the relation between them."""

    least_entities, states_read, has_bias = 2, 2, False

    def read(self, words: Array, entities: Array, e: EntityInputs) -> Array:
        return ops.cat([entities[:, 0], entities[:, 1]], 1)


class LukeForEntitySpanClassification(LukeForEntityClassification):
    """A classifier of each entity, by its state and those of its first and last token: named entities."""

    states_read, needs_spans = 3, True

    def read(self, words: Array, entities: Array, e: EntityInputs) -> Array:
        starts, ends = (ops.take_rows(words, at) for at in (e.starts, e.ends) if at is not None)
        return ops.cat([starts, ends, entities], 2)
