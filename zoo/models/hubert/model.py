"""HuBERT (Hsu et al. 2021, https://arxiv.org/abs/2106.07447): wav2vec 2.0's network, trained to find hidden units.

Shapes: B recordings, T states, D hidden_size.
"""

from __future__ import annotations

from typing import NamedTuple

from ...inputs.waveform import WaveformInputs
from ...typing import Array
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
from .config import HubertConfig


class HubertModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D)


class HubertPretrained(Wav2Vec2Pretrained):
    config_class = HubertConfig
    name_map = NameMap(prefix="hubert", base=BASE, renames=WEIGHT_NORM, ignored=IGNORED_NAMES)


class HubertModel(HubertPretrained, Wav2Vec2Model):
    def forward(self, s: WaveformInputs) -> HubertModelOutput:  # type: ignore[override]
        return HubertModelOutput(self.states(s)[0])


class HubertForCTC(HubertPretrained, Wav2Vec2ForCTC):
    base_class = HubertModel


class HubertForSequenceClassification(HubertPretrained, Wav2Vec2ForSequenceClassification):
    base_class = HubertModel
