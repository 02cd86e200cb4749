"""Sounds, as several spectrograms each, and an encoder of them and one of texts whose vectors are compared.

Shapes: B texts, T tokens, C sounds, V views of each, N mel bins, W frames, P width of the vectors.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from .. import ops
from ..errors import InputError
from ..pretrained import Pretrained
from ..typing import Array, GraphMethod, RecordField
from .texts import TextInputs, TextModel


class SpectrogramInputs(NamedTuple):
    """A batch of sounds whose spectrograms have one length."""

    input_features: Array  # (C, V, N, W)
    is_longer: Array | None = None  # (C,): true for a sound whose views are fused

    fields = (
        RecordField("input_features", "input_features", ("C", "views", "mels", "W"), "float32"),
        RecordField("is_longer", "is_longer", ("C",), "bool"),
    )


class SpectrogramModel(Pretrained):
    """A model of sounds.  Its config has num_mel_bins, max_frames and `views`, the spectrograms of each sound."""

    record = SpectrogramInputs

    def __call__(self, input_features: Array, is_longer: Array | None = None) -> Any:
        """The output of `forward` for input_features (C, V, N, W), from `zoo.audio.clap`.

        is_longer (C,), of a model that fuses views: true for a sound whose views are fused, all by default.
        """
        return self.runner.run(self.forward, self.sounds(input_features, is_longer))

    def forward(self, s: SpectrogramInputs) -> Any:
        """The class's output for checked inputs."""
        raise NotImplementedError

    def records(self, *args: Any, **given: Any) -> tuple[SpectrogramInputs]:
        return (self.sounds(*args, **given),)

    def example(self, seed: int = 0, *, rows: int = 2, **sizes: Any) -> dict[str, Any]:
        """Spectrograms of noise, in the decibels of real ones and a little shorter than the longest."""
        cfg, rng = self.config, np.random.default_rng(seed)
        shape = rows, cfg.views, cfg.num_mel_bins, cfg.max_frames - cfg.max_frames // 44
        found: dict[str, Any] = {"input_features": rng.normal(-30, 12, shape).astype(np.float32)}
        if cfg.views > 1:
            found["is_longer"] = np.arange(rows) % 2 == 0
        return found

    def sounds(self, input_features: Any, is_longer: Any = None) -> SpectrogramInputs:
        """The inputs, checked and placed beside the weights; arguments as for a call."""
        cfg, shape = self.config, tuple[int, ...](getattr(input_features, "shape", ()))
        if len(shape) != 4 or shape[1:3] != (cfg.views, cfg.num_mel_bins) or not 1 <= shape[3] <= cfg.max_frames:
            most = f"(sounds, {cfg.views}, {cfg.num_mel_bins}, 1 ... {cfg.max_frames})"
            raise InputError(f"input_features have shape {shape}, expected views of mel bins and frames, {most}")
        (C, V, N, W), longer = shape, None
        x = ops.as_hidden_states(input_features.reshape(C * V, N, W), self.like, "input_features", W)
        if V > 1:
            longer = np.ones(C, bool) if is_longer is None else is_longer
            longer = longer.reshape(C) if getattr(longer, "shape", ()) == (C, 1) else longer
            longer = ops.as_mask(longer, self.like, "is_longer", (C,))
        elif is_longer is not None:
            self.refuse("is_longer", ("input_features",))
        return SpectrogramInputs(x.reshape(shape), longer)


class SoundVectors(NamedTuple):
    """The vectors to compare."""

    audio_embeds: Array  # (C, P)
    text_embeds: Array  # (B, P)

    fields = (
        RecordField("audio_embeds", "audio_embeds", ("C", "P"), "float32"),
        RecordField("text_embeds", "text_embeds", ("B", "P"), "float32"),
    )


class SoundLogits(NamedTuple):
    logits_per_audio: Array  # (C, B)
    logits_per_text: Array  # (B, C)


class SoundTextOutput(NamedTuple):
    logits_per_audio: Array  # (C, B)
    logits_per_text: Array  # (B, C)
    text_embeds: Array  # (B, P), of length 1
    audio_embeds: Array  # (C, P), of length 1


class AudioTextEncoder(Pretrained):
    """A model of texts and sounds, any number of each, which compares the vectors of every sound and every text.

    Its parts may be called by themselves.  Its maths are `audio_embeds`, `text_embeds` and `compare`, which an engine
    runs one by one, so that vectors are computed once.
    """

    is_base_model = True
    parts = ("audio_model", "text_model")
    record = SoundVectors  # the record of `compare`
    taken: ClassVar[tuple[str, ...]] = ("input_ids", "input_features", "is_longer", "attention_mask")
    text_model: TextModel
    audio_model: SpectrogramModel

    def __call__(
        self,
        input_ids: Array,
        input_features: Array,
        is_longer: Array | None = None,
        attention_mask: Array | None = None,
        **unknown: Any,
    ) -> SoundTextOutput:
        """input_ids and attention_mask (B, T), sounds as of `SpectrogramModel` -> logits (C, B) and vectors."""
        s, t = self.records(input_ids, input_features, is_longer, attention_mask, **unknown)
        run = self.runner.run
        audio, text = run(self.audio_embeds, s), run(self.text_embeds, t)
        return SoundTextOutput(*run(self.compare, SoundVectors(audio, text)), text, audio)

    def records(
        self,
        input_ids: Array,
        input_features: Array,
        is_longer: Array | None = None,
        attention_mask: Array | None = None,
        **unknown: Any,
    ) -> tuple[SpectrogramInputs, TextInputs]:
        if unknown:
            self.refuse(next(iter(unknown)), self.taken, is_known=False)
        s = self.audio_model.sounds(input_features, is_longer)
        return s, self.text_model.tokens(input_ids, attention_mask)

    def example(self, seed: int = 0, **sizes: Any) -> dict[str, Any]:
        return {**self.text_model.example(seed, **sizes), **self.audio_model.example(seed, **sizes)}

    def graph_methods(self, seed: int = 0, **sizes: Any) -> list[GraphMethod]:
        s, t = self.records(**self.example(seed, **sizes))
        vectors = self.vectors(self.audio_embeds(s), self.text_embeds(t))
        return [
            GraphMethod("audio", self.audio_embeds, (s,), "audio_embeds"),
            GraphMethod("text", self.text_embeds, (t,), "text_embeds"),
            GraphMethod("model", self.compare, (vectors,)),
        ]

    def forward(self, s: SpectrogramInputs, t: TextInputs) -> SoundTextOutput:
        audio, text = self.audio_embeds(s), self.text_embeds(t)
        return SoundTextOutput(*self.compare(SoundVectors(audio, text)), text, audio)

    def vectors(self, audio_embeds: Array, text_embeds: Array) -> SoundVectors:
        """Vectors (C, P) and (B, P), checked and placed beside the weights."""
        given, width = {"audio_embeds": audio_embeds, "text_embeds": text_embeds}, audio_embeds.shape[-1]
        placed = (ops.as_hidden_states(x[None], self.like, name, width)[0] for name, x in given.items())
        return SoundVectors(*placed)

    def audio_embeds(self, s: SpectrogramInputs) -> Array:
        """-> (C, P), of length 1."""
        raise NotImplementedError

    def text_embeds(self, t: TextInputs) -> Array:
        """-> (B, P), of length 1."""
        raise NotImplementedError

    def compare(self, v: SoundVectors) -> SoundLogits:
        raise NotImplementedError
