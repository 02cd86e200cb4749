"""HuBERT and WavLM checkpoints."""

from __future__ import annotations

from functools import partial

from .common import Spec, labels
from .wav2vec2 import CONFIG, LARGE_CONFIG, TINY_CONFIG, SpeechSpec

WAVLM_CONFIG = {**CONFIG, "num_buckets": 320, "max_bucket_distance": 800}
TINY_WAVLM_CONFIG = {**TINY_CONFIG, "num_buckets": 16, "max_bucket_distance": 20}

_hubert = partial(SpeechSpec, model_type="hubert", architecture="HubertForCTC", gains={"conv": 8.0})
_wavlm = partial(SpeechSpec, model_type="wavlm", architecture="WavLMForCTC", gains={"conv": 8.0})

SPECS: dict[str, Spec] = {
    "hubert-large-ls960-ft": _hubert(
        like="facebook/hubert-large-ls960-ft", config={**CONFIG, **LARGE_CONFIG}, tiny=TINY_CONFIG, full=True
    ),
    "distilhubert-bare": _hubert(
        like="ntu-spml/distilhubert",
        architecture="HubertModel",
        config={**CONFIG, "feat_proj_layer_norm": False},
        tiny=TINY_CONFIG,
    ),
    "hubert-base-superb-er": _hubert(
        like="superb/hubert-base-superb-er",
        architecture="HubertForSequenceClassification",
        config={**CONFIG, "use_weighted_layer_sum": True, **labels("neu", "hap", "ang", "sad")},
        tiny=TINY_CONFIG,
    ),
    "wavlm-libri-clean-100h": _wavlm(
        like="patrickvonplaten/wavlm-libri-clean-100h-base-plus", config=WAVLM_CONFIG, tiny=TINY_WAVLM_CONFIG, full=True
    ),
    "wavlm-large-bare": _wavlm(
        like="microsoft/wavlm-large",
        architecture="WavLMModel",
        config={**WAVLM_CONFIG, **LARGE_CONFIG},
        tiny=TINY_WAVLM_CONFIG,
        names="new",
    ),
    "wavlm-classifier": _wavlm(
        like="save_pretrained",
        architecture="WavLMForSequenceClassification",
        config={**WAVLM_CONFIG, **labels(count=5)},
        tiny=TINY_WAVLM_CONFIG,
    ),
}
