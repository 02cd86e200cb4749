"""Whisper (https://arxiv.org/abs/2212.04356) without a head, its decoder alone, and a classifier of recordings.

Shapes: C recordings, N mel bins, W frames, M = W / 2 states, D d_model, L labels.
"""

from __future__ import annotations

from ... import ops
from ...inputs.audio import AudioInputs, AudioModel
from ...inputs.encoder_decoder import BareDecoder, Seq2SeqModel
from ...nn import Linear
from ...typing import Array
from ...weights import NameMap, Weights
from .config import WhisperConfig
from .model import NAME_MAP, TIED_WEIGHTS, Decoder, DecoderStack, Encoder


class WhisperModel(Seq2SeqModel):
    """The encoder of half a minute of audio, and the decoder's layers without a head."""

    config_class = WhisperConfig
    name_map = NAME_MAP
    is_base_model = True
    arguments = ("input_features",)

    def __init__(self, w: Weights, cfg: WhisperConfig):
        self.config = cfg
        self.encoder, self.decoder = Encoder(w / "encoder", cfg), BareDecoder(DecoderStack(w / "decoder", cfg), cfg)

    def encoder_inputs(self, input_features: Array) -> AudioInputs:
        """input_features (C, N, W)."""
        return self.encoder.audio(input_features)


class WhisperForCausalLM(Decoder):
    """The decoder in a file of its own, or out of one of both sides; it may be given an encoder's states."""

    name_map = NameMap(prefix="model", base=("decoder",), ignored=(r"^(model\.)?encoder\.", *NAME_MAP.ignored))
    tied = TIED_WEIGHTS


class WhisperForAudioClassification(AudioModel):
    """A head on the mean of the encoder's states, of the last layer or weighted over all of them."""

    config_class = WhisperConfig
    name_map = NameMap(
        prefix="model",
        base=(),
        renames={r"^model\.encoder\.": "encoder."},
        ignored=(r"^(model\.)?decoder\.", r"^proj_out\."),
    )

    def __init__(self, w: Weights, cfg: WhisperConfig):
        D, P, self.config = cfg.d_model, cfg.classifier_proj_size, cfg
        self.base_model = Encoder(w / "encoder", cfg)
        self.weights = w.get("layer_weights", (cfg.encoder_layers + 1,)) if cfg.use_weighted_layer_sum else None
        self.projector, self.classifier = Linear(w / "projector", D, P), Linear(w / "classifier", P, cfg.num_labels)

    def forward(self, s: AudioInputs) -> Array:
        """-> logits (C, L)."""
        if self.weights is None:
            x = self.base_model.encode(s)
        else:
            shares = ops.softmax(self.weights[None])[0]
            x, *parts = (x * shares[i] for i, x in enumerate(self.base_model.hidden_states(s)))
            for part in parts:
                x = x + part
        return self.classifier(ops.mean(self.projector(x), 1))
