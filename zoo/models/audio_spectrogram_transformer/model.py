"""AST, the Audio Spectrogram Transformer (Gong et al. 2021, https://arxiv.org/abs/2104.01778): DeiT's layers on
overlapping patches of a spectrogram.

Shapes: C recordings, N mel bins, W frames, P patches, T = P + 2 tokens, D hidden_size, L labels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import ops
from ...inputs.audio import AudioInputs, AudioModel
from ...nn import Conv2d, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..vit import model as vit
from .config import ASTConfig

NAME_MAP = NameMap(
    prefix="audio_spectrogram_transformer",
    base=("embeddings", "encoder", "layernorm"),
    renames=vit.LAYER_NAMES,
    ignored=(r"^classifier\.",),
)


class ASTModelOutput(NamedTuple):
    last_hidden_state: Array  # (C, T, D)
    pooler_output: Array  # (C, D): the mean of the first two tokens


class Embeddings(Module):
    """The class token and the distillation token, then the patches frequency by frequency, with their positions."""

    def __init__(self, w: Weights, cfg: ASTConfig):
        D, p, (rows, columns) = cfg.hidden_size, cfg.patch_size, cfg.grid
        self.tokens = [w.get(name, (1, 1, D)) for name in ("cls_token", "distillation_token")]
        stride = cfg.frequency_stride, cfg.time_stride
        self.projection = Conv2d(w / "patch_embeddings.projection", 1, D, p, stride=stride)
        self.positions = w.get("position_embeddings", (1, rows * columns + 2, D))
        self.dropout = Dropout(cfg.hidden_dropout_prob)

    def __call__(self, spectrogram: Array) -> Array:
        """spectrogram (C, N, W) -> (C, T, D)."""
        x = self.projection(spectrogram[:, :, :, None])
        C, _, _, D = x.shape
        tokens = [ops.cat([token] * C, 0) for token in self.tokens]
        return self.dropout(ops.cat([*tokens, x.reshape(C, -1, D)], 1) + self.positions)


class ASTModel(AudioModel):
    config_class = ASTConfig
    name_map = NAME_MAP
    is_base_model = True

    def __init__(self, w: Weights, cfg: ASTConfig):
        as_vit: Any = cfg  # whose layers read fields that both have
        self.config = cfg
        self.embeddings = Embeddings(w / "embeddings", cfg)
        self.layers = [vit.Layer(w / "encoder.layer" / i, as_vit) for i in range(cfg.num_hidden_layers)]
        self.norm = LayerNorm(w / "layernorm", cfg.hidden_size, cfg.layer_norm_eps)

    def forward(self, s: AudioInputs) -> ASTModelOutput:
        x = self.embeddings(s.input_features)
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        return ASTModelOutput(x, (x[:, 0] + x[:, 1]) / 2)


class ASTForAudioClassification(AudioModel):
    config_class = ASTConfig
    name_map = NAME_MAP

    def __init__(self, w: Weights, cfg: ASTConfig):
        self.config = cfg
        self.base_model = ASTModel(w / "audio_spectrogram_transformer", cfg)
        self.norm = LayerNorm(w / "classifier.layernorm", cfg.hidden_size, cfg.layer_norm_eps)
        self.classifier = Linear(w / "classifier.dense", cfg.hidden_size, cfg.num_labels)

    def forward(self, s: AudioInputs) -> Array:
        """-> logits (C, L)."""
        return self.classifier(self.norm(self.base_model.forward(s).pooler_output))
