"""The config of a Qwen2-VL checkpoint: of an encoder of images, and of a Qwen2 whose positions have three axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, TypeVar

from ...config import Config
from ...errors import ConfigError
from ...inputs.image_text_config import ImageTextConfig
from ...rope import Rope, axial_rope_of
from ..llama3.config import LlamaConfig
from ..qwen2.config import Qwen2Config

C = TypeVar("C", bound="Qwen2VLConfig")


@dataclass(frozen=True, kw_only=True)
class AxesConfig(LlamaConfig):
    """The last base of decoders whose positions have three axes: rope_scaling or rope_parameters may have
    mrope_section, how many frequencies are those of time, of height and of width.
    """

    default_sections: ClassVar[tuple[int, ...]] = (16, 24, 24)

    def __post_init__(self) -> None:
        super().__post_init__()
        sections: Any = self.mrope_section
        if not isinstance(sections, list) or not all(type(n) is int and n >= 0 for n in sections):
            raise ConfigError(f"mrope_section = {sections!r}, expected a list of numbers")
        if sum(sections) != (count := self.rope().size // 2):
            raise ConfigError(f"mrope_section = {sections}, expected numbers whose sum is {count}")

    @property
    def mrope_section(self) -> list[int]:
        return (self.rope_scaling or self.rope_parameters or {}).get("mrope_section", [*self.default_sections])

    @property
    def axes(self) -> list[int]:
        """Of each frequency the axis whose positions it turns by: 0 time, 1 height, 2 width."""
        return [i % 3 for i, count in enumerate(self.mrope_section) for _ in range(count)]

    def rope(self) -> Rope:
        """That of one axis: "mrope" is the name of the plain frequencies here."""
        given = {name: value for name in ("rope_scaling", "rope_parameters") if (value := getattr(self, name))}
        if not any(value.get("rope_type", value.get("type")) == "mrope" for value in given.values()):
            return super().rope()
        return replace(self, **{name: {**value, "rope_type": "default"} for name, value in given.items()}).rope()


@dataclass(frozen=True, kw_only=True)
class Qwen2VLTextConfig(Qwen2Config, AxesConfig):
    model_type: str = "qwen2_vl_text"
    vocab_size: int = 152064
    hidden_size: int = 8192
    intermediate_size: int = 29568
    num_hidden_layers: int = 80
    num_attention_heads: int = 64
    num_key_value_heads: int | None = 8
    max_window_layers: int = 80
    rms_norm_eps: float = 1e-5
    rope_theta: float = 1000000.0
    bos_token_id: int | None = 151643
    eos_token_id: int | list[int] | None = 151645


@dataclass(frozen=True, kw_only=True)
class QwenVisionConfig(Config):
    """The fields that the encoders of images share."""

    aliases: ClassVar[Mapping[str, str]] = {"num_attention_heads": "num_heads", "num_hidden_layers": "depth"}
    depth: int = 32
    num_heads: int = 16
    in_channels: int = 3
    patch_size: int = 14
    spatial_merge_size: int = 2
    temporal_patch_size: int = 2
    rope_theta: float = 10000.0
    rope_parameters: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.positive("depth", "width", "output_width", "num_heads", "in_channels", "spatial_merge_size")
        self.positive("patch_size", "temporal_patch_size")
        self.divides("num_heads", "width")
        if self.head_size % 4:
            raise ConfigError(f"heads of {self.head_size} features: positions in a plane need a multiple of 4")
        self.frequencies  # noqa: B018  (whose numbers are checked)

    @property
    def width(self) -> int:
        raise NotImplementedError

    @property
    def output_width(self) -> int:
        """The width of an image's vectors, which is that of the decoder."""
        raise NotImplementedError

    @property
    def mlp_width(self) -> int:
        raise NotImplementedError

    @property
    def head_size(self) -> int:
        return self.width // self.num_heads

    @property
    def num_channels(self) -> int:
        return self.in_channels

    @property
    def patch(self) -> tuple[int, int]:
        return self.patch_size, self.patch_size

    @property
    def factor(self) -> int:
        """Pixels along a side of the square that becomes one token."""
        return self.patch_size * self.spatial_merge_size

    @property
    def image(self) -> tuple[int, int]:
        """A small image; any of whole tokens will do."""
        return 3 * self.factor, 4 * self.factor

    @property
    def frequencies(self) -> tuple[float, ...]:
        """Of positions in height, and of those in width."""
        given = {"rope_theta": self.rope_theta, **(self.rope_parameters or {})}
        return axial_rope_of(given, self.head_size // 2).frequencies(1)


@dataclass(frozen=True, kw_only=True)
class Qwen2VLVisionConfig(QwenVisionConfig):
    """embed_dim: the width; hidden_size: that of the decoder, which the patches are brought to."""

    model_type: str = "qwen2_vl_vision"
    embed_dim: int = 1280
    hidden_size: int = 3584
    hidden_act: str = "quick_gelu"
    mlp_ratio: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("mlp_ratio")

    @property
    def width(self) -> int:
        return self.embed_dim

    @property
    def output_width(self) -> int:
        return self.hidden_size

    @property
    def mlp_width(self) -> int:
        return self.embed_dim * self.mlp_ratio


@dataclass(frozen=True, kw_only=True)
class Qwen2VLConfig(ImageTextConfig):
    """In files of 2024 the text model's fields are among those of the whole."""

    is_flat: ClassVar[bool] = True  # where the file has no text_config
    ties_text: ClassVar[bool] = False  # where the decoder's part of the file does not say
    part_classes: ClassVar[Mapping[str, type[Config]]] = {
        "text_config": Qwen2VLTextConfig,
        "vision_config": Qwen2VLVisionConfig,
    }
    model_type: str = "qwen2_vl"
    image_token_id: int = 151655
    video_token_id: int = 151656
    tie_word_embeddings: bool = False
    text_config: AxesConfig
    vision_config: QwenVisionConfig

    def __post_init__(self) -> None:
        self.check_image_token()
        if (found := self.vision_config.output_width) != (wanted := self.text_config.hidden_size):
            raise ConfigError(f"vision_config has vectors of {found} features, and the decoder has the width {wanted}")

    @classmethod
    def from_dict(cls: type[C], raw: dict[str, Any]) -> C:
        if cls.is_flat and raw.get("text_config") is None:
            kind: Any = cls.part_classes["text_config"]
            own = {f.name for f in fields(kind)} - {f.name for f in fields(Config)}
            raw = {**raw, "text_config": {k: v for k, v in raw.items() if k in own}}
        config = super().from_dict(raw)
        return replace(config, tie_word_embeddings=config.tie_word_embeddings or config.text_config.tie_word_embeddings)

    @classmethod
    def _part(cls, name: str, part: Any) -> Config:
        if name == "text_config" and isinstance(part, dict):
            part = {"tie_word_embeddings": cls.ties_text, **part}
        if isinstance(part, dict) and part.get("model_type") == cls.model_type:  # files name the whole's
            part = {**part, "model_type": cls.part_classes[name].model_type}
        return super()._part(name, part)
