"""CANINE (Clark et al. 2021, https://arxiv.org/abs/2103.06874): BERT over a text's characters, without a vocabulary.
A layer over blocks of characters, a strided convolution to a molecule for every few of them, BERT's layers over these,
and a last layer over characters beside their molecules.

Shapes: B batch, T characters, R downsampling_rate, M = T // R molecules, D hidden_size, H heads, K = D / H, C labels.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

from ... import ops
from ...errors import InputError
from ...inputs import ChoiceModel, TextInputs, TextModel
from ...inputs.heads import QuestionAnswering, TokenClassification
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from .config import PRIMES, CanineConfig

NAME_MAP = NameMap(
    prefix="canine",
    base=(
        *("char_embeddings", "initial_char_encoder", "chars_to_molecules"),
        *("encoder", "projection", "final_char_encoder", "pooler"),
    ),
    # A buffer that counts up from 0, and a pooler and pretraining's head that files keep for other heads.
    ignored=(r"(^|\.)char_embeddings\.char_position_ids$", r"(^|\.)position_ids$", r"^(canine\.)?pooler\.", r"^cls\."),
)
INPUTS = {
    "input_ids": "vocab_size",
    "token_type_ids": "type_vocab_size",
    "position_ids": "num_hash_buckets",
    "inputs_embeds": "hidden_size",
}
POOLER = (r"^canine\.pooler\.",)  # transformers' classes have it, and compute without it
HIDDEN_BIAS = -1e30  # beside a hidden key's score


class CanineModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D)
    pooler_output: Array | None  # (B, D), None if the checkpoint has no pooler


class Characters(Module):
    """The embedding of a character: a part from each of several tables, at a hash of its code point."""

    def __init__(self, w: Weights, cfg: CanineConfig):
        D, buckets, count = cfg.hidden_size, cfg.num_hash_buckets, cfg.num_hash_functions
        names = [f"HashBucketCodepointEmbedder_{i}.weight" for i in range(count)]
        self.tables = [w.get(name, (buckets, D // count)) for name in names]
        self.position = w.get("char_position_embeddings.weight", (buckets, D))
        self.token_type = w.get("token_type_embeddings.weight", (cfg.type_vocab_size, D))
        self.max_positions = min(cfg.max_position_embeddings, buckets)
        self.norm, self.dropout = LayerNorm(w / "LayerNorm", D, cfg.layer_norm_eps), Dropout(cfg.hidden_dropout_prob)

    @property
    def word(self) -> Array:
        """An array of the kind of hidden states; there is no table of words."""
        return self.position

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        x, buckets = t.inputs_embeds, self.position.shape[0]
        if x is None:
            hashes = ((t.ids + 1) * prime % buckets for prime in PRIMES)
            x = ops.cat([ops.embedding(at, table, "hashes") for at, table in zip(hashes, self.tables, strict=False)], 2)
        types = ops.arange(1, x)[None] * 0 if t.token_type_ids is None else t.token_type_ids
        at = ops.arange(t.shape[1], x) if t.position_ids is None else t.position_ids
        x = x + ops.embedding(types, self.token_type, "token_type_ids")
        return self.dropout(self.norm(x + ops.embedding(at, self.position, "position_ids")))


class Layer(Module):
    """BERT's layer, with a bias of attention."""

    def __init__(self, w: Weights, cfg: CanineConfig):
        D, F, eps, rate = cfg.hidden_size, cfg.intermediate_size, cfg.layer_norm_eps, cfg.hidden_dropout_prob
        self.heads, self.dropout = cfg.num_attention_heads, Dropout(cfg.attention_probs_dropout_prob)
        self.qkv = Linear.fuse(w / "attention.self", ["query", "key", "value"], D, [D, D, D])
        self.out = Linear(w / "attention.output.dense", D, D, dropout=rate)
        self.attention_norm = LayerNorm(w / "attention.output.LayerNorm", D, eps)
        self.up = Linear(w / "intermediate.dense", D, F, act=cfg.hidden_act)
        self.down = Linear(w / "output.dense", F, D, dropout=rate)
        self.norm = LayerNorm(w / "output.LayerNorm", D, eps)

    def __call__(self, x: Array, bias: Array | None, sees: Array | None = None) -> Array:
        """x (B, T, D), bias broadcasts to (B, H, T, T), sees (B, T), false where attention is even -> (B, T, D)."""
        q, k, v = ops.split_heads(self.qkv(x), self.heads)
        if sees is not None:
            q = ops.where(sees[:, :, None, None], q, ops.zeros((1,), q))
        a = ops.attention(q, k, v, bias=bias, dropout=self.dropout.rate).reshape(x.shape)
        x = self.attention_norm(self.out(a), residual=x)
        return self.norm(self.down(self.up(x)), residual=x)


class Convolution(Module):
    """The base of norm(act(convolution along the text))."""

    def __init__(self, w: Weights, cfg: CanineConfig, d_in: int, kernel: int, stride: int = 1):
        D, self.kernel, self.stride, self.act = cfg.hidden_size, kernel, stride, ops.activation(cfg.hidden_act)
        self.weight, self.bias = w.get("conv.weight", (D, d_in, kernel)), w.get("conv.bias", (D,))
        self.norm = LayerNorm(w / "LayerNorm", D, cfg.layer_norm_eps)

    def convolve(self, x: Array) -> Array:
        """x (B, T, d_in) -> (B, T', D)."""
        return ops.conv2d(x[:, None], self.weight[:, :, None], self.bias, (1, self.stride), act=self.act)[:, 0]


class ToMolecules(Convolution):
    def __call__(self, x: Array) -> Array:
        """x (B, T, D) -> (B, M, D): the first character, and all molecules but the last."""
        return self.norm(ops.cat([x[:, :1], self.convolve(x)[:, :-1]], 1))


class ToCharacters(Convolution):
    def __call__(self, x: Array) -> Array:
        """x (B, T, 2 D) -> (B, T, D), with zeros around the text."""
        before, nothing = (self.kernel - 1) // 2, x[:, :1] * 0
        after = self.kernel - 1 - before
        return self.norm(self.convolve(ops.cat([*[nothing] * before, x, *[nothing] * after], 1)))


class CaninePretrained(TextModel):
    config_class, name_map, inputs = CanineConfig, NAME_MAP, INPUTS

    def tokens(self, *args: Any, **given: Any) -> TextInputs:
        t, least = super().tokens(*args, **given), self.config.downsampling_rate
        if t.shape[1] < least:
            raise InputError(f"{t.shape[1]} characters, and the model needs {least}, a molecule: pad the text")
        return t

    def example(self, seed: int = 0, *, length: int = 7, **sizes: Any) -> dict[str, Any]:
        """As for other texts, of two molecules or more."""
        return super().example(seed, length=max(length, 2 * self.config.downsampling_rate), **sizes)


class CanineModel(CaninePretrained):
    """pooler: True if it is required, False to leave it out, None to take it if it is there."""

    is_base_model = True

    def __init__(self, w: Weights, cfg: CanineConfig, pooler: bool | None = None):
        self.config, D, rate = cfg, cfg.hidden_size, cfg.downsampling_rate
        self.embeddings = Characters(w / "char_embeddings", cfg)
        self.first = Layer(w / "initial_char_encoder.layer.0", cfg)
        self.down = ToMolecules(w / "chars_to_molecules", cfg, D, rate, rate)
        self.layers = [Layer(w / "encoder.layer" / i, cfg) for i in range(cfg.num_hidden_layers)]
        self.up = ToCharacters(w / "projection", cfg, 2 * D, cfg.upsampling_kernel_size)
        self.dropout, self.last = Dropout(cfg.hidden_dropout_prob), Layer(w / "final_char_encoder.layer.0", cfg)
        pooler = "pooler" in w if pooler is None else pooler
        self.pooler = Linear(w / "pooler.dense", D, D, act="tanh") if pooler else None

    def molecules(self, t: TextInputs) -> tuple[Array, Array, Array | None]:
        """-> characters (B, T, D), molecules (B, M, D), the first character's before them, and the bias of padding."""
        x, T, R, mask = self.embeddings(t), t.shape[1], self.config.downsampling_rate, t.context.mask
        zero, at, M, hidden, of_molecules, sees = ops.zeros((1,), x), ops.arange(T, x), T // R, None, None, None
        block = at // self.config.local_transformer_stride
        is_near = block[:, None] == block[None]
        local = ops.where(is_near, zero, zero - math.inf)[None, None]
        if mask is not None:
            # A block of padding sees all of itself alike, as in transformers.
            sees = ops.linear(ops.where(mask, zero + 1, zero), ops.where(is_near, zero + 1, zero), None) > 0
            local = local + ops.where(mask | ~sees, zero, zero + HIDDEN_BIAS)[:, None, None]
            hidden = ops.where(mask, zero, zero + HIDDEN_BIAS)[:, None, None]
            seen = ops.cumsum(mask[:, : M * R].reshape(-1, M, R) * 1, 2)[:, :, -1] > 0
            of_molecules = ops.where(seen, zero, zero + HIDDEN_BIAS)[:, None, None]
        x = self.first(x, local, sees)
        y = self.down(x)
        for layer in self.layers:
            y = layer(y, of_molecules)
        return x, y, hidden

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every character."""
        return self.characters(t, *self.molecules(t))

    def characters(self, t: TextInputs, x: Array, y: Array, hidden: Array | None) -> Array:
        """What `molecules` returns -> (B, T, D)."""
        (B, T), M = t.shape, y.shape[1]
        after = ops.arange(T, x) // self.config.downsampling_rate + 1  # the molecule after that of the first character
        own = after - (after - (M - 1)) * (after > M - 1)
        both = ops.cat([x, ops.take_rows(y, own[None] + (ops.arange(B, x) * 0)[:, None])], 2)
        return self.last(self.dropout(self.up(both)), hidden)

    def pool(self, y: Array) -> Array | None:
        """y (B, M, D) -> (B, D); None if the checkpoint has no pooler."""
        return None if self.pooler is None else self.pooler(y[:, 0])

    def forward(self, t: TextInputs) -> CanineModelOutput:
        x, y, hidden = self.molecules(t)
        return CanineModelOutput(self.characters(t, x, y, hidden), self.pool(y))


class CanineHead(CaninePretrained):
    """The base of the classes with a head: the base model under its name in the checkpoint."""

    def __init__(self, w: Weights, cfg: CanineConfig, pooler: bool = False):
        self.config, self.base_model = cfg, CanineModel(w / "canine", cfg, pooler)


class CanineForSequenceClassification(CanineHead):
    labels: ClassVar[int | None] = None  # their number, if not the config's

    def __init__(self, w: Weights, cfg: CanineConfig):
        super().__init__(w, cfg, pooler=True)
        self.dropout = Dropout(cfg.head_dropout)
        self.classifier = Linear(w / "classifier", cfg.hidden_size, self.labels or cfg.num_labels)

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, C)."""
        return self.classifier(self.dropout(self.base_model.pool(self.base_model.molecules(t)[1])))


class CanineForMultipleChoice(ChoiceModel, CanineForSequenceClassification):
    """A classifier with one logit, which `forward` gives for each choice by itself."""

    labels = 1


class CanineForTokenClassification(TokenClassification, CanineHead):
    only_saved = POOLER


class CanineForQuestionAnswering(QuestionAnswering, CanineHead):
    only_saved = POOLER
