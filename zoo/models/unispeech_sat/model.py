"""UniSpeech-SAT (Chen et al. 2021, https://arxiv.org/abs/2110.05752): wav2vec 2.0's network, trained to tell
speakers apart.

Shapes: as in wav2vec 2.0's models.
"""

from __future__ import annotations

from ...weights import NameMap
from ..wav2vec2.model import (
    BASE,
    IGNORED_NAMES,
    WEIGHT_NORM,
    Wav2Vec2ForCTC,
    Wav2Vec2ForSequenceClassification,
    Wav2Vec2Model,
    Wav2Vec2Pretrained,
)
from .config import UniSpeechSatConfig

# The heads of pretraining.
PRETRAINING = (r"^(speaker_proj|label_embeddings_concat|layer_norm_for_extract)(\.|$)",)


class UniSpeechSatPretrained(Wav2Vec2Pretrained):
    config_class = UniSpeechSatConfig
    name_map = NameMap(prefix="unispeech_sat", base=BASE, renames=WEIGHT_NORM, ignored=(*IGNORED_NAMES, *PRETRAINING))


class UniSpeechSatModel(UniSpeechSatPretrained, Wav2Vec2Model): ...


class UniSpeechSatForCTC(UniSpeechSatPretrained, Wav2Vec2ForCTC):
    base_class = UniSpeechSatModel


class UniSpeechSatForSequenceClassification(UniSpeechSatPretrained, Wav2Vec2ForSequenceClassification):
    base_class = UniSpeechSatModel
