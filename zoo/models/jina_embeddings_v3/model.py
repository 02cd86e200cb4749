"""Jina embeddings v3 (Sturua et al. 2024, https://arxiv.org/abs/2409.10173): XLM-R's vocabulary and heads, and its
layers with rotary positions, for texts of up to 8,192 tokens.

Shapes: B batch, T tokens, D hidden_size, F intermediate_size, C labels.
"""

from __future__ import annotations

from ...inputs import TextInputs
from ...inputs.heads import DenseClassifier, MaskedLM, QuestionAnswering, TokenClassification
from ...nn import LayerNorm, Linear
from ...typing import Array
from ...weights import NameMap, Weights
from ..bert.model import BertHead
from ..nomic_bert import model as nomic
from ..roberta.model import TIED_WEIGHTS, LMHead
from .config import JinaEmbeddingsV3Config

NAME_MAP = NameMap(
    prefix="roberta",
    base=("embeddings", "emb_ln", "encoder", "pooler"),
    ignored=(r"inv_freq$", r"^(roberta\.)?pooler\.", r"^lm_head\.", r"^classifier\."),
)


class Layer(nomic.Layer):
    """Nomic BERT's, with biases and an MLP without gates."""

    def read(self, w: Weights, D: int, F: int, eps: float, rate: float) -> None:
        self.qkv = Linear(w / "mixer.Wqkv", D, 3 * D)
        self.out = Linear(w / "mixer.out_proj", D, D, dropout=rate)
        self.attention_norm = LayerNorm(w / "norm1", D, eps)
        self.up = Linear(w / "mlp.fc1", D, F, act=self.act)
        self.down = Linear(w / "mlp.fc2", F, D, dropout=rate)
        self.norm = LayerNorm(w / "norm2", D, eps)

    def glu(self, x: Array) -> Array:
        return self.up(x)


class JinaEmbeddingsV3Model(nomic.NomicBertModel):
    config_class, name_map, layer_class = JinaEmbeddingsV3Config, NAME_MAP, Layer


class JinaEmbeddingsV3Head(BertHead):
    config_class, name_map, inputs = JinaEmbeddingsV3Config, NAME_MAP, nomic.INPUTS
    base_class = JinaEmbeddingsV3Model


class JinaEmbeddingsV3ForMaskedLM(MaskedLM, JinaEmbeddingsV3Head):
    tied = TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: JinaEmbeddingsV3Config):
        super().__init__(w, cfg)
        self.head = LMHead(w / "lm_head", cfg)


class JinaEmbeddingsV3ForSequenceClassification(JinaEmbeddingsV3Head):
    def __init__(self, w: Weights, cfg: JinaEmbeddingsV3Config):
        super().__init__(w, cfg)
        self.classifier = DenseClassifier(w / "classifier", cfg, cfg.head_dropout)

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, C)."""
        return self.classifier(self.base_model.encode(t)[:, 0])


class JinaEmbeddingsV3ForTokenClassification(TokenClassification, JinaEmbeddingsV3Head): ...


class JinaEmbeddingsV3ForQuestionAnswering(QuestionAnswering, JinaEmbeddingsV3Head): ...
