"""CLAP (Wu et al. 2022, https://arxiv.org/abs/2211.06687): a RoBERTa for texts and HTSAT for sounds (Chen et al. 2022,
https://arxiv.org/abs/2202.00874), trained so that a text and a sound that belong together have vectors of the same
direction.  HTSAT is a Swin: the spectrogram's segments, one after the other in time, lie below each other in a square
image.  Of a long sound it may see four views, the whole and three parts of it, which are fused.

Shapes: B texts, T tokens, C sounds, V views, N mel bins, W frames, S spec_size, R = S / N segments, y and x rows and
columns of patches, D width of a stage or of the states of a text, P width of the vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from ... import ops
from ...inputs import TextInputs, TextModel
from ...inputs.audio_text import (
    AudioTextEncoder,
    SoundLogits,
    SoundVectors,
    SpectrogramInputs,
    SpectrogramModel,
)
from ...inputs.dual_encoder import unit_length
from ...nn import BatchNorm, Conv2d, FoldedModule, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..roberta.model import RobertaModel
from ..swin.model import EPS, Stage
from .config import ClapAudioConfig, ClapConfig, ClapTextConfig

# Buffers: counts from 0, zeros, what follows from the sizes, and a counter of training.
BUFFERS = (
    r"(^|\.)embeddings\.(position_ids|token_type_ids)$",
    r"\.relative_position_index$",
    r"\.num_batches_tracked$",
)
# Each encoder alone reads checkpoints of both, too.
_DUAL_ONLY = (r"^logit_scale_[at]$", r"^(text|audio)_projection\.")
TEXT = NameMap(
    prefix="text_model",
    base=("embeddings", "encoder", "pooler"),
    ignored=(*BUFFERS, r"^audio_model\.", *_DUAL_ONLY),
)
AUDIO = NameMap(prefix="audio_model", base=("audio_encoder",), ignored=(*BUFFERS, r"^text_model\.", *_DUAL_ONLY))


class ClapTextModelOutput(NamedTuple):
    text_embeds: Array  # (B, P)
    last_hidden_state: Array  # (B, T, D)


class ClapAudioEncoderOutput(NamedTuple):
    last_hidden_state: Array  # (C, y / R, R x, D): rows of frequencies, columns of time
    pooler_output: Array  # (C, D)


class ClapAudioModelOutput(NamedTuple):
    audio_embeds: Array  # (C, P)
    last_hidden_state: Array  # (C, y / R, R x, D)


class Projection(Module):
    def __init__(self, w: Weights, cfg: ClapTextConfig | ClapAudioConfig):
        P = cfg.projection_dim
        self.up = Linear(w / "linear1", cfg.hidden_size, P, act=cfg.projection_hidden_act)
        self.out = Linear(w / "linear2", P, P)

    def __call__(self, x: Array) -> Array:
        """x (..., D) -> (..., P)."""
        return self.out(self.up(x))


class ClapTextModel(RobertaModel):
    config_class = ClapTextConfig
    name_map, only_saved = TEXT, BUFFERS
    inputs: ClassVar[Mapping[str, str]] = {"input_ids": "vocab_size", "position_ids": "max_position_embeddings"}
    options = ()

    def __init__(self, w: Weights, cfg: ClapTextConfig):
        super().__init__(w, cfg, pooler=True)


class ClapTextModelWithProjection(TextModel):
    config_class = ClapTextConfig
    name_map, only_saved = TEXT, BUFFERS
    inputs = ClapTextModel.inputs
    embeds = "text_embeds"

    def __init__(self, w: Weights, cfg: ClapTextConfig):
        self.config, self.base_model = cfg, ClapTextModel(w / "text_model", cfg)
        self.projection = Projection(w / "text_projection", cfg)

    def forward(self, t: TextInputs) -> ClapTextModelOutput:
        x, pooled = self.base_model.forward(t)
        return ClapTextModelOutput(self.projection(pooled), x)


class MelNorm(FoldedModule):
    """The batch norm of each mel bin, whose statistics training leaves as they are."""

    def __init__(self, w: Weights, d: int):
        self.norm = BatchNorm(w, d, is_frozen=True)
        self._ones = ops.zeros((d,), self.norm.weight) + 1
        self._folded = self.norm.fold(self._ones, None)

    def __call__(self, x: Array) -> Array:
        """x (..., N, W) -> (..., N, W)."""
        scale, shift = self._folded or self.norm.fold(self._ones, None)
        assert shift is not None
        return x * scale[:, None] + shift[:, None]


class Fusion(Module):
    """Attentional feature fusion (Dai et al. 2020, https://arxiv.org/abs/2009.14082) of two maps of features."""

    def __init__(self, w: Weights, cfg: ClapAudioConfig):
        D, d = cfg.embed_dim, cfg.embed_dim // cfg.aff_block_r

        def gate(w: Weights, first: int) -> list[Conv2d]:
            names = [w / (first + i) for i in (0, 1, 3, 4)]
            down = Conv2d(names[0], D, d, 1, norm=BatchNorm(names[1], d), act="relu")
            return [down, Conv2d(names[2], d, D, 1, norm=BatchNorm(names[3], D))]

        self.local, self.whole = gate(w / "local_att", 0), gate(w / "global_att", 1)

    def __call__(self, a: Array, b: Array) -> Array:
        """a, b (C, y, x, D) -> (C, y, x, D)."""
        local, whole = a + b, ops.adaptive_avg_pool2d(a + b, 1)
        for one, other in zip(self.local, self.whole, strict=True):
            local, whole = one(local), other(whole)
        share = ops.activate(local + whole, "sigmoid")
        return 2 * a * share + 2 * b * (1 - share)


class Embeddings(Module):
    """Patches of the image of a spectrogram; a patch of the parts of a long sound is three times as wide."""

    def __init__(self, w: Weights, cfg: ClapAudioConfig):
        D, (py, px), (sy, sx), pad = cfg.embed_dim, cfg.patch, cfg.stride, cfg.padding
        self.columns = cfg.grid[1]
        self.projection = Conv2d(w / "proj", 1, D, cfg.patch, stride=cfg.stride, padding=pad)
        self.norm = LayerNorm(w / "norm", D, EPS) if cfg.enable_patch_layer_norm else None
        self.fusion = None
        if cfg.enable_fusion:
            self.parts = Conv2d(w / "mel_conv2d", 1, D, (py, 3 * px), stride=(sy, 3 * sx), padding=pad)
            self.fusion = Fusion(w / "fusion_model", cfg)

    def __call__(self, images: Array, is_longer: Array | None) -> Array:
        """images (C, V, S, S), is_longer (C,) -> (C, y x, D)."""
        C, V, S, _ = images.shape
        x = self.projection(images[:, 0][..., None])
        if self.fusion is not None:
            parts = self.parts(images[:, 1:].reshape(C * (V - 1), S, S, 1))
            parts = parts.reshape(C, V - 1, *parts.shape[1:])
            row = ops.cat([parts[:, i] for i in range(V - 1)], 2)
            fused = self.fusion(x, ops.pad_images(row, (0, 0), (0, self.columns - row.shape[2])))
            x = fused if is_longer is None else ops.where(is_longer[:, None, None, None], fused, x)
        x = x.reshape(C, -1, x.shape[3])
        return x if self.norm is None else self.norm(x)


class ClapAudioModel(SpectrogramModel):
    is_base_model = True
    config_class = ClapAudioConfig
    name_map, only_saved = AUDIO, BUFFERS

    def __init__(self, w: Weights, cfg: ClapAudioConfig):
        as_swin: Any = cfg  # whose stages read fields that both have
        self.config, w = cfg, w / "audio_encoder"
        self.mel_norm = MelNorm(w / "batch_norm", cfg.num_mel_bins)
        self.embeddings = Embeddings(w / "patch_embed", cfg)
        self.layers = [Stage(w / "layers" / i, as_swin, i) for i in range(len(cfg.depths))]
        self.norm = LayerNorm(w / "norm", cfg.hidden_size, EPS)

    def images(self, x: Array) -> Array:
        """Spectrograms (C, V, N, W) -> (C, V, S, S)."""
        (C, V, N, W), S, frames = x.shape, self.config.spec_size, self.config.max_frames
        x = ops.interpolate(self.mel_norm(x).reshape(C * V, N, W, 1), (N, frames), "bicubic corners")
        segments = [x[:, :, at : at + S] for at in range(0, frames, S)]
        return ops.cat(segments, 1).reshape(C, V, S, S)

    def forward(self, s: SpectrogramInputs) -> ClapAudioEncoderOutput:
        (h, w), R = self.config.grid, self.config.segments
        x = self.embeddings(self.images(s.input_features), s.is_longer)
        for i, stage in enumerate(self.layers):
            x, _ = stage(x, (h >> i, w >> i))
        x = self.norm(x)
        (C, _, D), last = x.shape, len(self.layers) - 1
        rows = x.reshape(C, R, (h >> last) // R, w >> last, D)
        return ClapAudioEncoderOutput(ops.cat([rows[:, i] for i in range(R)], 2), ops.mean(x, 1))


class ClapAudioModelWithProjection(SpectrogramModel):
    config_class = ClapAudioConfig
    name_map, only_saved = AUDIO, BUFFERS

    def __init__(self, w: Weights, cfg: ClapAudioConfig):
        self.config, self.base_model = cfg, ClapAudioModel(w / "audio_model", cfg)
        self.projection = Projection(w / "audio_projection", cfg)

    def forward(self, s: SpectrogramInputs) -> ClapAudioModelOutput:
        x, pooled = self.base_model.forward(s)
        return ClapAudioModelOutput(self.projection(pooled), x)


class ClapModel(AudioTextEncoder):
    """Both encoders, and the similarity of each sound and each text."""

    config_class = ClapConfig
    name_map, only_saved = NameMap(prefix="clap", base=(), ignored=BUFFERS), BUFFERS

    def __init__(self, w: Weights, cfg: ClapConfig):
        self.config = cfg
        self.text_model = ClapTextModel(w / "text_model", cfg.text_config)
        self.audio_model = ClapAudioModel(w / "audio_model", cfg.audio_config)
        self.text_projection = Projection(w / "text_projection", cfg.text_config)
        self.audio_projection = Projection(w / "audio_projection", cfg.audio_config)
        self.audio_scale, self.text_scale = w.get("logit_scale_a", ()), w.get("logit_scale_t", ())

    def text_embeds(self, t: TextInputs) -> Array:
        return unit_length(self.text_projection(self.text_model.forward(t).pooler_output))

    def audio_embeds(self, s: SpectrogramInputs) -> Array:
        return unit_length(self.audio_projection(self.audio_model.forward(s).pooler_output))

    def compare(self, v: SoundVectors) -> SoundLogits:
        audio, text = v
        return SoundLogits(
            ops.linear(audio, text) * ops.exp(self.audio_scale), ops.linear(text, audio) * ops.exp(self.text_scale)
        )
