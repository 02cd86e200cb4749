"""M2M-100 (Fan et al. 2020, https://arxiv.org/abs/2010.11125) and NLLB (NLLB team 2022,
https://arxiv.org/abs/2207.04672), which translate between 100 and 200 languages: mBART's layers, with fairseq's sines
and cosines for positions, which count from the padding's id and tokens alone.

Shapes: B rows, T tokens, D d_model.
"""

from __future__ import annotations

from dataclasses import replace

from ... import ops
from ...inputs import TextInputs
from ...nn import Linear
from ...typing import Array
from ...weights import Weights
from ..mbart import model as mbart
from ..trocr import model as trocr
from .config import M2M100Config

# Old files have the table of positions, which follows from the config.
NAME_MAP = replace(mbart.NAME_MAP, ignored=(*mbart.NAME_MAP.ignored, r"(^|\.)embed_positions\.weights$"))


class Embeddings(trocr.Embeddings):
    """Those of TrOCR's small decoders, for an encoder too."""

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        x = ops.embedding(t.ids, self.word, "input_ids", self.padding) * self.scale
        is_token = t.ids != self.padding
        at = (ops.cumsum(is_token, 1) + t.past) * is_token + self.padding
        return self.dropout(x + ops.embedding(at, self._sinusoids, "positions"))


class Encoder(mbart.Encoder):
    config_class = M2M100Config
    embeddings_class = Embeddings


class Decoder(mbart.Decoder):
    config_class = M2M100Config

    @staticmethod
    def head_of(w: Weights, cfg: M2M100Config) -> Linear:
        return Linear(w / "lm_head", cfg.d_model, cfg.vocab_size, bias=False, vocab=True)


class M2M100ForConditionalGeneration(mbart.MBartForConditionalGeneration):
    config_class = M2M100Config
    name_map = NAME_MAP
    encoder_class = Encoder
    decoder_class = Decoder


class M2M100Model(mbart.MBartModel):
    config_class = M2M100Config
    name_map = NAME_MAP
    encoder_class = Encoder
