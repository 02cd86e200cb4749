"""The base of the configs of models that read images and texts, each part of which has a config of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from ..config import Config, read_part
from ..errors import ConfigError, UnsupportedError

C = TypeVar("C", bound="ImageTextConfig")


@dataclass(frozen=True, kw_only=True)
class ImageTextConfig(Config):
    """A class names its parts in `part_classes`, and has the token of images in the field `image_token_id`."""

    image_token_field: ClassVar[str] = "image_token_id"
    # False: vision_config's model_type, which has a dozen names in files, changes nothing.
    names_vision: ClassVar[bool] = True

    @classmethod
    def from_dict(cls: type[C], raw: dict[str, Any]) -> C:
        return super().from_dict({**raw, **{name: cls._part(name, raw.get(name)) for name in cls.part_classes}})

    @classmethod
    def _part(cls, name: str, part: Any) -> Config:
        kind = cls.part_classes[name]
        if isinstance(part, dict):
            found = part.get("model_type", kind.model_type)
            if found != kind.model_type and (cls.names_vision or name != "vision_config"):
                raise UnsupportedError(f"{name} is of the model_type {found!r}, expected {kind.model_type!r}")
            part = {**part, "model_type": kind.model_type}
        return read_part(name, part, kind)

    def check_image_token(self) -> None:
        """ConfigError if the token of images is none of the vocabulary's."""
        found, most = getattr(self, self.image_token_field), self.vocab_size - 1
        if not 0 <= found <= most:
            raise ConfigError(f"{self.image_token_field} = {found} is out of range, expected 0 ... {most}")

    # What the tasks of decoders and of images ask a config for.
    vocab_size = property(lambda self: self.text_config.vocab_size)
    hidden_size = property(lambda self: self.text_config.hidden_size)
    image = property(lambda self: self.vision_config.image)
    patch = property(lambda self: self.vision_config.patch)
    num_channels = property(lambda self: self.vision_config.num_channels)


@dataclass(frozen=True, kw_only=True)
class ImageIndexConfig(ImageTextConfig):
    """The base of those that call the token of images `image_token_index`, by which files have it."""

    image_token_field = "image_token_index"
    aliases: ClassVar[Mapping[str, str]] = {"image_token_id": "image_token_index"}
    image_token_index: int = 32000

    @property
    def image_token_id(self) -> int:
        return self.image_token_index
