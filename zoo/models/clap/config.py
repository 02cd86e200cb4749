"""The configs of a CLAP checkpoint: RoBERTa's of the encoder of texts, HTSAT's of that of sounds, and of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from ...config import MAX_INTEGER, Config, read_part
from ...errors import ConfigError
from ..roberta.config import RobertaConfig

C = TypeVar("C", bound="ClapConfig")


@dataclass(frozen=True, kw_only=True)
class ClapTextConfig(RobertaConfig):
    model_type: str = "clap_text_model"
    max_position_embeddings: int = 514
    type_vocab_size: int = 1
    projection_dim: int = 512
    projection_hidden_act: str = "relu"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("projection_dim")
        self.require(is_decoder=False, add_cross_attention=False)


@dataclass(frozen=True, kw_only=True)
class ClapAudioConfig(Config):
    """Of a Swin (https://arxiv.org/abs/2103.14030) whose image is a spectrogram cut into `segments`."""

    model_type: str = "clap_audio_model"
    window_size: int = 8
    num_mel_bins: int = 64
    spec_size: int = 256
    hidden_act: str = "gelu"
    patch_size: int | list[int] | tuple[int, ...] = 4
    patch_stride: int | list[int] | tuple[int, ...] = (4, 4)
    hidden_size: int = 768
    projection_dim: int = 512
    depths: list[int] | tuple[int, ...] = (2, 2, 6, 2)
    num_attention_heads: list[int] | tuple[int, ...] = (4, 8, 16, 32)
    enable_fusion: bool = False
    fusion_type: str | None = None
    hidden_dropout_prob: float = 0.1
    patch_embeds_hidden_size: int = 96
    enable_patch_layer_norm: bool = True
    drop_path_rate: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    qkv_bias: bool = True
    mlp_ratio: float = 4.0
    aff_block_r: int = 4
    projection_hidden_act: str = "relu"
    layer_norm_eps: float = 1e-5

    def __post_init__(self) -> None:
        self.positive("window_size", "num_mel_bins", "spec_size", "hidden_size", "projection_dim", "aff_block_r")
        self.positive("patch_embeds_hidden_size")
        self.fractions("hidden_dropout_prob", "attention_probs_dropout_prob", "drop_path_rate")
        self.above_zero("layer_norm_eps", "mlp_ratio")
        self.divides("num_mel_bins", "spec_size")
        self.require(patch_embed_input_channels=1, flatten_patch_embeds=True)
        if self.enable_fusion and self.fusion_type == "channel_map":  # of which transformers makes no working model
            self.require(fusion_type=None)
        for name in ("depths", "num_attention_heads"):
            value = getattr(self, name)
            if not 1 <= len(value) <= 16 or not all(type(n) is int and 1 <= n <= 10_000 for n in value):
                raise ConfigError(f"{name} = {value!r} is not a list of 1 to 16 numbers from 1 to 10000")
        if len(self.depths) != len(self.num_attention_heads):
            raise ConfigError(f"depths = {self.depths!r} and num_attention_heads = {self.num_attention_heads!r} differ")
        width = self.embed_dim
        for i, heads in enumerate(self.num_attention_heads):
            if width * 2**i % heads:
                raise ConfigError(
                    f"num_attention_heads[{i}] = {heads} does not divide patch_embeds_hidden_size = {width} x {2**i}"
                )
        if (last := width * 2 ** (len(self.depths) - 1)) != self.hidden_size:
            raise ConfigError(f"hidden_size = {self.hidden_size}, but the last stage has a width of {last}")
        if self.mlp_ratio > 100_000 or int(self.mlp_ratio * width) < 1 or self.aff_block_r > width:
            raise ConfigError(
                f"mlp_ratio = {self.mlp_ratio}, aff_block_r = {self.aff_block_r} leave no features of {width}, or "
                "too many"
            )
        self._check_grid()

    def _check_grid(self) -> None:
        """Refuse patches that do not fill the image, and stages that are smaller than a window or cannot be halved."""
        if any(p < s for p, s in zip(self.patch, self.stride, strict=True)):
            raise ConfigError(f"patch_size = {self.patch_size} is smaller than patch_stride = {self.patch_stride}")
        convolved = tuple(
            (self.spec_size + 2 * pad - p) // s + 1
            for pad, p, s in zip(self.padding, self.patch, self.stride, strict=True)
        )
        halvings = 2 ** (len(self.depths) - 1)
        last = tuple(n // halvings for n in self.grid)
        if convolved != self.grid or any(n % halvings for n in self.grid) or last[0] % self.segments:
            raise ConfigError(
                f"spec_size = {self.spec_size}: patches of {self.patch}, {self.stride} apart, do not fill it, or "
                f"cannot be merged {len(self.depths) - 1} times and cut into {self.segments}"
            )
        if min(last) < self.window_size:
            raise ConfigError(f"the last stage has {last} patches, less than window_size = {self.window_size}")

    def _pair(self, name: str) -> tuple[int, int]:
        value = getattr(self, name)
        sizes = (value, value) if isinstance(value, int) else tuple(value)
        if len(sizes) != 2 or not all(type(s) is int and 1 <= s <= MAX_INTEGER for s in sizes):
            raise ConfigError(f"{name} = {value!r} is neither a size nor a pair of them (vertical, horizontal)")
        return sizes

    patch = property(lambda self: self._pair("patch_size"))
    stride = property(lambda self: self._pair("patch_stride"))
    padding = property(lambda self: tuple((p - s) // 2 for p, s in zip(self.patch, self.stride, strict=True)))
    grid = property(lambda self: tuple(self.spec_size // s for s in self.stride))  # rows and columns of patches

    @property
    def segments(self) -> int:
        """The parts of a spectrogram, one after the other in time, that lie below each other in the image."""
        return self.spec_size // self.num_mel_bins

    @property
    def max_frames(self) -> int:
        """The frames of the longest spectrogram, to which all are stretched."""
        return self.spec_size * self.segments

    @property
    def views(self) -> int:
        """Spectrograms of a sound: the whole and three parts of it if they are fused, else one."""
        return 4 if self.enable_fusion else 1

    # As Swin's stages call them.
    embed_dim = property(lambda self: self.patch_embeds_hidden_size)
    num_heads = property(lambda self: self.num_attention_heads)


@dataclass(frozen=True, kw_only=True)
class ClapConfig(Config):
    """`text_config` and `audio_config` are configs of their own, in which the fields of the projections are these."""

    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "text_config": ClapTextConfig,
        "audio_config": ClapAudioConfig,
    }
    model_type: str = "clap"
    projection_dim: int = 512
    projection_hidden_act: str = "relu"
    text_config: ClapTextConfig
    audio_config: ClapAudioConfig

    def __post_init__(self) -> None:
        self.positive("projection_dim")

    @classmethod
    def from_dict(cls: type[C], raw: dict[str, Any]) -> C:
        both = {name: raw.get(name, getattr(cls, name)) for name in ("projection_dim", "projection_hidden_act")}
        parts = {}
        for name, kind in cls.part_classes.items():
            found = raw.get(name) or {}
            parts[name] = read_part(name, {**found, **both} if isinstance(found, dict) else found, kind)
        return super().from_dict({**raw, **parts})
