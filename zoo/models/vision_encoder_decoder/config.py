"""The config of an encoder of images and a decoder together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from ...config import Config, read_part
from ...errors import ConfigError, UnsupportedError, nearest
from ..beit.config import BeitConfig
from ..donut_swin.config import DonutSwinConfig
from ..mbart.config import MBartConfig
from ..swin.config import SwinConfig
from ..trocr.config import TrOCRConfig
from ..vit.config import DeiTConfig, VisionConfig, ViTConfig

C = TypeVar("C", bound="VisionEncoderDecoderConfig")

ENCODERS: dict[str, type[VisionConfig] | type[SwinConfig]] = {"vit": ViTConfig, "deit": DeiTConfig, "beit": BeitConfig}
ENCODERS |= {"swin": SwinConfig, "donut-swin": DonutSwinConfig}
DECODERS: dict[str, type[Config]] = {"trocr": TrOCRConfig, "mbart": MBartConfig}


@dataclass(frozen=True, kw_only=True)
class VisionEncoderDecoderConfig(Config):
    """`encoder` and `decoder` are configs; no other field changes the model's output."""

    model_type: str = "vision-encoder-decoder"
    tie_word_embeddings: bool = False
    encoder: VisionConfig | SwinConfig
    decoder: TrOCRConfig | MBartConfig

    def __post_init__(self) -> None:
        cross, width = self.cross_size, self.encoder.hidden_size
        if cross is not None and cross != width:
            raise ConfigError(
                f"decoder.cross_attention_hidden_size = {cross}, but encoder.hidden_size = {width}: "
                "expected the same, or null and a projection between the two"
            )
        if cross is not None and isinstance(self.decoder, MBartConfig) and cross != self.decoder.d_model:
            raise ConfigError(
                f"decoder.cross_attention_hidden_size = {cross}: mBART's keys and values are of states of its own "
                f"width, d_model = {self.decoder.d_model}"
            )

    @classmethod
    def from_dict(cls: type[C], raw: dict[str, Any]) -> C:
        parts = {"encoder": _part("encoder", raw, ENCODERS), "decoder": _part("decoder", raw, DECODERS)}
        return super().from_dict({**raw, **parts})

    @property
    def cross_size(self) -> int | None:
        """cross_attention_hidden_size of the decoder; None where a layer may project the encoder's states."""
        name = "cross_attention_hidden_size"
        return getattr(self.decoder, name, self.decoder.extra.get(name))

    @property
    def projects(self) -> bool:
        """True if a linear layer projects the encoder's hidden states for the decoder."""
        return self.cross_size is None and self.encoder.hidden_size != self.decoder.d_model

    @property
    def is_tied(self) -> bool:
        # transformers writes false at the top level, whatever the decoder does.
        return self.decoder.is_tied

    @property
    def trained_for(self) -> str | None:
        """Donut, whose decoder is mBART's, answers prompts; TrOCR reads lines."""
        return "image-text-to-text" if isinstance(self.decoder, MBartConfig) else None

    @property
    def vocab_size(self) -> int:
        return self.decoder.vocab_size


def _part(name: str, raw: dict[str, Any], known: dict[str, Any]) -> Config:
    part = raw.get(name)
    if not isinstance(part, dict):
        raise ConfigError(f"{name} is {part!r}, expected the object of its config")
    kind = part.get("model_type")
    if not isinstance(kind, str) or kind not in known:
        wanted = f"expected {' or '.join(known)}{nearest(str(kind), known)}"
        raise UnsupportedError(f"the {name} is of the model_type {kind!r}, {wanted}")
    return read_part(name, part, known[kind])
