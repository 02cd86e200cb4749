"""BERT (Devlin et al. 2018, https://arxiv.org/abs/1810.04805), and the heads trained on top of it.

A stack of post-norm layers over the sum of word, segment and position embeddings.  With `is_decoder` in the config the
same stack is a causal decoder, with `add_cross_attention` one that looks at an encoder's states.

Shapes: B batch, T tokens, S tokens that can be looked at, D hidden_size, F intermediate_size, H heads, K = D / H,
V vocab_size, C labels.  Masks are true for a token and false for padding.
"""

from __future__ import annotations

from typing import NamedTuple

from ... import ops
from ...cache import KVCache
from ...errors import InputError
from ...nn import LayerNorm, Linear, Module
from ...pretrained import Pretrained
from ...typing import Array
from ...weights import Layout, Weights
from .config import BertConfig
from .decoding import Decoding

LAYOUT = Layout(
    prefix="bert",
    body=("embeddings", "encoder", "pooler"),
    # The first checkpoints came from TensorFlow, where a norm has a gamma and a beta.
    renames={r"LayerNorm\.gamma$": "LayerNorm.weight", r"LayerNorm\.beta$": "LayerNorm.bias"},
    # A buffer that counts up from 0, and the heads of pretraining, which stay in files that no longer use them.
    ignored=(r"(^|\.)embeddings\.position_ids$", r"^(bert\.)?pooler\.", r"^cls\."),
)

# The output projections share the word embeddings unless the checkpoint says, or shows, otherwise.
TIED = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}


class BertModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D)
    pooler_output: Array | None  # (B, D), None if the checkpoint has no pooler


class BertForPreTrainingOutput(NamedTuple):
    prediction_logits: Array  # (B, T, V)
    seq_relationship_logits: Array  # (B, 2)


class QuestionAnsweringOutput(NamedTuple):
    start_logits: Array  # (B, T)
    end_logits: Array  # (B, T)


class Embeddings(Module):
    def __init__(self, w: Weights, cfg: BertConfig):
        D = cfg.hidden_size
        self.word = w.get("word_embeddings.weight", (cfg.vocab_size, D))
        self.position = w.get("position_embeddings.weight", (cfg.max_position_embeddings, D))
        self.segment = w.get("token_type_embeddings.weight", (cfg.type_vocab_size, D))
        self.norm = LayerNorm(w / "LayerNorm", D, cfg.layer_norm_eps)

    @property
    def max_positions(self) -> int:
        """The length of the longest text that there are positions for."""
        return self.position.shape[0]

    def positions(self, input_ids: Array | None, T: int, past: Array | int) -> Array:
        """past: the tokens before these, 0 or (B, 1) -> (T,) or (B, T)."""
        return ops.arange(T, self.word) + past

    def __call__(
        self,
        input_ids: Array | None,
        token_type_ids: Array | None,
        position_ids: Array | None,
        inputs_embeds: Array | None,
        cache: KVCache | None,
    ) -> Array:
        """ids (B, T) or inputs_embeds (B, T, D) -> (B, T, D)."""
        x = ops.embedding(input_ids, self.word, "input_ids") if inputs_embeds is None else inputs_embeds
        if position_ids is None:
            total = x.shape[1] + (0 if cache is None else cache.length)
            if total > self.max_positions:
                raise InputError(f"{total} tokens, but the checkpoint has positions for {self.max_positions}")
            past = 0 if cache is None else cache.start.reshape(-1, 1)
            position_ids = self.positions(input_ids, x.shape[1], past)
        position = ops.embedding(position_ids, self.position, "position_ids")
        if token_type_ids is None:
            return self.norm(x + (position + self.segment[0]))
        return self.norm(x + position + ops.embedding(token_type_ids, self.segment, "token_type_ids"))


class Attention(Module):
    """Self-attention, output projection, and norm of the sum with the input."""

    def __init__(self, w: Weights, cfg: BertConfig):
        D = cfg.hidden_size
        self.heads = cfg.num_attention_heads
        self.causal = cfg.is_decoder
        self.qkv = Linear.fused(w / "self", ["query", "key", "value"], D, [D, D, D])
        self.out = Linear(w / "output.dense", D, D)
        self.norm = LayerNorm(w / "output.LayerNorm", D, cfg.layer_norm_eps)

    def __call__(self, x: Array, mask: Array | None, start: Array | None, cache: KVCache | None, layer: int) -> Array:
        """x (B, T, D), mask (B, S), start (B,) -> (B, T, D)."""
        q, k, v = ops.split_heads(self.qkv(x), self.heads)
        if cache is not None:
            k, v = cache.extend(layer, k, v, masked=mask is not None)
        a = ops.attention(q, k, v, mask=mask, start=start)
        return self.norm(self.out(a.reshape(x.shape)), residual=x)


class CrossAttention(Module):
    """Attention to an encoder's states, which are projected once for all steps of a decoder."""

    def __init__(self, w: Weights, cfg: BertConfig):
        D = cfg.hidden_size
        self.heads = cfg.num_attention_heads
        self.query = Linear(w / "self.query", D, D)
        self.key, self.value = Linear(w / "self.key", D, D), Linear(w / "self.value", D, D)
        self.out = Linear(w / "output.dense", D, D)
        self.norm = LayerNorm(w / "output.LayerNorm", D, cfg.layer_norm_eps)

    def __call__(self, x: Array, states: Array | None, mask: Array | None, cache: KVCache | None, layer: int) -> Array:
        """x (B, T, D), mask (B, S), states (B, S, D), not needed once the cache has them -> (B, T, D)."""
        if cache is not None and layer in cache.cross:
            k, v, mask = cache.cross[layer]
        elif states is not None:
            split = (*states.shape[:2], self.heads, -1)
            k, v = self.key(states).reshape(split), self.value(states).reshape(split)
            if cache is not None:
                cache.cross[layer] = k, v, mask
        else:
            raise InputError("cross-attention needs encoder_hidden_states")
        # Rows that share an encoder's states stand one after the other: their queries are those of one row.
        q = self.query(x).reshape(k.shape[0], -1, *k.shape[2:])
        return self.norm(self.out(ops.attention(q, k, v, mask=mask).reshape(x.shape)), residual=x)


class Layer(Module):
    def __init__(self, w: Weights, cfg: BertConfig):
        D, F = cfg.hidden_size, cfg.intermediate_size
        self.attention = Attention(w / "attention", cfg)
        self.cross = CrossAttention(w / "crossattention", cfg) if cfg.add_cross_attention else None
        self.up = Linear(w / "intermediate.dense", D, F, act=cfg.hidden_act)
        self.down = Linear(w / "output.dense", F, D)
        self.norm = LayerNorm(w / "output.LayerNorm", D, cfg.layer_norm_eps)

    def __call__(
        self,
        x: Array,
        mask: Array | None,
        start: Array | None,
        cache: KVCache | None,
        layer: int,
        states: Array | None,
        states_mask: Array | None,
    ) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        x = self.attention(x, mask, start, cache, layer)
        if self.cross is not None and (states is not None or (cache is not None and layer in cache.cross)):
            x = self.cross(x, states, states_mask, cache, layer)
        return self.norm(self.down(self.up(x)), residual=x)


class BertPretrained(Pretrained):
    config_class = BertConfig
    layout = LAYOUT


class BertModel(BertPretrained):
    """The stack, and of its output a summary: the pooler's tanh(dense(first token)), if the checkpoint has one.

    pooler: whether it must be there (True), is left out (False), or is taken if it is there (None).
    """

    is_body = True
    embeddings_class = Embeddings

    def __init__(self, w: Weights, cfg: BertConfig, pooler: bool | None = None):
        D = cfg.hidden_size
        self.config = cfg
        self.embeddings = self.embeddings_class(w / "embeddings", cfg)
        self.layers = [Layer(w / "encoder.layer" / i, cfg) for i in range(cfg.num_hidden_layers)]
        if pooler is None:
            pooler = "pooler" in w
        self.pooler = Linear(w / "pooler.dense", D, D, act="tanh") if pooler else None

    def __call__(
        self,
        input_ids: Array | None = None,
        attention_mask: Array | None = None,
        token_type_ids: Array | None = None,
        position_ids: Array | None = None,
        inputs_embeds: Array | None = None,
        encoder_hidden_states: Array | None = None,
        encoder_attention_mask: Array | None = None,
        cache: KVCache | None = None,
    ) -> BertModelOutput:
        """Ids and attention_mask (B, T) -> states of every token; with a cache, attention_mask (B, length + T)."""
        cfg, like = self.config, self.embeddings.word
        ids = embeds = None
        if input_ids is not None and inputs_embeds is None:
            ids = ops.as_ids(input_ids, like, "input_ids", cfg.vocab_size)
            B, T = ids.shape
        elif inputs_embeds is not None and input_ids is None:
            embeds = ops.as_states(inputs_embeds, like, "inputs_embeds", None, cfg.hidden_size)
            B, T = embeds.shape[:2]
        else:
            raise InputError("give either input_ids or inputs_embeds")
        past = 0 if cache is None else cache.length
        if cache is not None:
            cache.check(B)
            if not cfg.is_decoder:
                raise InputError("a cache needs a decoder: the config says is_decoder = False")
        token_type_ids = self._ids(token_type_ids, "token_type_ids", cfg.type_vocab_size, (B, T))
        position_ids = self._ids(position_ids, "position_ids", cfg.max_position_embeddings, (B, T))
        if attention_mask is not None:
            attention_mask = ops.as_key_mask(attention_mask, like, "attention_mask", (B, past + T))
        states, states_mask = encoder_hidden_states, encoder_attention_mask
        if states is not None and not cfg.add_cross_attention:
            raise InputError("encoder_hidden_states need cross-attention: the config says add_cross_attention = False")
        if states is not None:
            states = ops.as_states(states, like, "encoder_hidden_states", B, cfg.hidden_size)
        if states_mask is not None:
            if states is None:
                raise InputError("encoder_attention_mask needs encoder_hidden_states")
            states_mask = ops.as_key_mask(states_mask, like, "encoder_attention_mask", tuple(states.shape[:2]))
        start = None
        if cfg.is_decoder:
            start = ops.arange(B, like) * 0 if cache is None else cache.start

        x = self.embeddings(ids, token_type_ids, position_ids, embeds, cache)
        for i, layer in enumerate(self.layers):
            x = layer(x, attention_mask, start, cache, i, states, states_mask)
        if cache is not None:
            cache.advance(T)
        return BertModelOutput(x, None if self.pooler is None else self.pooler(x[:, 0]))

    def new_cache(self, batch: int, capacity: int | None = None) -> KVCache:
        """An empty cache for a decoder; capacity in tokens, all positions of the checkpoint if not given."""
        cfg = self.config
        H, K = cfg.num_attention_heads, cfg.hidden_size // cfg.num_attention_heads
        S = self.embeddings.max_positions if capacity is None else capacity
        return KVCache(cfg.num_hidden_layers, batch, S, H, K, like=self.embeddings.word)

    def _ids(self, given: Array | None, name: str, below: int, shape: tuple[int, int]) -> Array | None:
        if given is None:
            return None
        ids = ops.as_ids(given, self.embeddings.word, name, below)
        if tuple(ids.shape) not in (shape, (1, shape[1])):
            raise InputError(f"{name} has shape {tuple(ids.shape)}, expected {shape}")
        return ids


class Predictions(Module):
    """The masked language modelling head: a logit for each word of the vocabulary."""

    def __init__(self, w: Weights, cfg: BertConfig):
        D, V = cfg.hidden_size, cfg.vocab_size
        self.transform = Linear(w / "transform.dense", D, D, act=cfg.hidden_act)
        self.norm = LayerNorm(w / "transform.LayerNorm", D, cfg.layer_norm_eps)
        self.decoder = Linear(w / "decoder", D, V)

    def __call__(self, x: Array) -> Array:
        """x (..., D) -> (..., V)."""
        return self.decoder(self.norm(self.transform(x)))


class BertForPreTraining(BertPretrained):
    tied = TIED

    def __init__(self, w: Weights, cfg: BertConfig):
        self.config = cfg
        self.bert = BertModel(w / "bert", cfg, pooler=True)
        self.predictions = Predictions(w / "cls.predictions", cfg)
        self.seq_relationship = Linear(w / "cls.seq_relationship", cfg.hidden_size, 2)

    def __call__(
        self, input_ids: Array, attention_mask: Array | None = None, token_type_ids: Array | None = None
    ) -> BertForPreTrainingOutput:
        """input_ids, attention_mask, token_type_ids (B, T) -> logits (B, T, V) and (B, 2), where 0 means is next."""
        x, pooled = self.bert(input_ids, attention_mask, token_type_ids)
        return BertForPreTrainingOutput(self.predictions(x), self.seq_relationship(pooled))


class BertForMaskedLM(BertPretrained):
    tied = TIED

    def __init__(self, w: Weights, cfg: BertConfig):
        self.config = cfg
        self.bert = BertModel(w / "bert", cfg, pooler=False)
        self.predictions = Predictions(w / "cls.predictions", cfg)

    def __call__(
        self, input_ids: Array, attention_mask: Array | None = None, token_type_ids: Array | None = None
    ) -> Array:
        """input_ids, attention_mask, token_type_ids (B, T) -> logits (B, T, V)."""
        return self.predictions(self.bert(input_ids, attention_mask, token_type_ids).last_hidden_state)


class BertLMHeadModel(Decoding, BertPretrained):
    """The decoder: logits of the next token, step by step with a cache from `model.bert.new_cache(B)`."""

    tied = TIED

    def __init__(self, w: Weights, cfg: BertConfig):
        self.config = cfg
        self.bert = BertModel(w / "bert", cfg, pooler=False)
        self.predictions = Predictions(w / "cls.predictions", cfg)

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
        x = self.bert(
            input_ids,
            attention_mask,
            token_type_ids,
            encoder_hidden_states=encoder_hidden_states,
            encoder_attention_mask=encoder_attention_mask,
            cache=cache,
        ).last_hidden_state
        return self.predictions(x[:, -logits_to_keep:] if logits_to_keep else x)


class BertForNextSentencePrediction(BertPretrained):
    def __init__(self, w: Weights, cfg: BertConfig):
        self.config = cfg
        self.bert = BertModel(w / "bert", cfg, pooler=True)
        self.seq_relationship = Linear(w / "cls.seq_relationship", cfg.hidden_size, 2)

    def __call__(
        self, input_ids: Array, attention_mask: Array | None = None, token_type_ids: Array | None = None
    ) -> Array:
        """input_ids, attention_mask, token_type_ids (B, T) -> logits (B, 2), where 0 means is next."""
        return self.seq_relationship(self.bert(input_ids, attention_mask, token_type_ids).pooler_output)


class BertForSequenceClassification(BertPretrained):
    def __init__(self, w: Weights, cfg: BertConfig):
        self.config = cfg
        self.bert = BertModel(w / "bert", cfg, pooler=True)
        self.classifier = Linear(w / "classifier", cfg.hidden_size, cfg.num_labels)

    def __call__(
        self, input_ids: Array, attention_mask: Array | None = None, token_type_ids: Array | None = None
    ) -> Array:
        """input_ids, attention_mask, token_type_ids (B, T) -> logits (B, C)."""
        return self.classifier(self.bert(input_ids, attention_mask, token_type_ids).pooler_output)


class BertForMultipleChoice(BertPretrained):
    def __init__(self, w: Weights, cfg: BertConfig):
        self.config = cfg
        self.bert = BertModel(w / "bert", cfg, pooler=True)
        self.classifier = Linear(w / "classifier", cfg.hidden_size, 1)

    def __call__(
        self, input_ids: Array, attention_mask: Array | None = None, token_type_ids: Array | None = None
    ) -> Array:
        """input_ids, attention_mask, token_type_ids (B, choices, T) -> logits (B, choices)."""
        input_ids = ops.as_ids(input_ids, self.bert.embeddings.word, "input_ids", self.config.vocab_size, ndim=3)
        B, T = input_ids.shape[0], input_ids.shape[-1]
        flat = (a if a is None else a.reshape(-1, T) for a in (input_ids, attention_mask, token_type_ids))
        return self.classifier(self.bert(*flat).pooler_output).reshape(B, -1)


class BertForTokenClassification(BertPretrained):
    def __init__(self, w: Weights, cfg: BertConfig):
        self.config = cfg
        self.bert = BertModel(w / "bert", cfg, pooler=False)
        self.classifier = Linear(w / "classifier", cfg.hidden_size, cfg.num_labels)

    def __call__(
        self, input_ids: Array, attention_mask: Array | None = None, token_type_ids: Array | None = None
    ) -> Array:
        """input_ids, attention_mask, token_type_ids (B, T) -> logits (B, T, C)."""
        return self.classifier(self.bert(input_ids, attention_mask, token_type_ids).last_hidden_state)


class BertForQuestionAnswering(BertPretrained):
    def __init__(self, w: Weights, cfg: BertConfig):
        self.config = cfg
        self.bert = BertModel(w / "bert", cfg, pooler=False)
        self.qa_outputs = Linear(w / "qa_outputs", cfg.hidden_size, 2)

    def __call__(
        self, input_ids: Array, attention_mask: Array | None = None, token_type_ids: Array | None = None
    ) -> QuestionAnsweringOutput:
        """input_ids, attention_mask, token_type_ids (B, T) -> logits (B, T) of an answer's first and last token."""
        y = self.qa_outputs(self.bert(input_ids, attention_mask, token_type_ids).last_hidden_state)
        return QuestionAnsweringOutput(y[:, :, 0], y[:, :, 1])
