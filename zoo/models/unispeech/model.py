"""UniSpeech (Wang et al. 2021, https://arxiv.org/abs/2101.07597): wav2vec 2.0's network, trained with
phonemes of some languages.

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
from .config import UniSpeechConfig

# The heads of pretraining.
PRETRAINING = (r"^ctc_proj\.",)


class UniSpeechPretrained(Wav2Vec2Pretrained):
    config_class = UniSpeechConfig
    name_map = NameMap(prefix="unispeech", base=BASE, renames=WEIGHT_NORM, ignored=(*IGNORED_NAMES, *PRETRAINING))


class UniSpeechModel(UniSpeechPretrained, Wav2Vec2Model): ...


class UniSpeechForCTC(UniSpeechPretrained, Wav2Vec2ForCTC):
    base_class = UniSpeechModel


class UniSpeechForSequenceClassification(UniSpeechPretrained, Wav2Vec2ForSequenceClassification):
    base_class = UniSpeechModel
