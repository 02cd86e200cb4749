"""The config of a ModernBERT decoder's checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import ConfigError
from ..modernbert.config import ModernBertConfig


@dataclass(frozen=True, kw_only=True)
class ModernBertDecoderConfig(ModernBertConfig):
    """local_attention: twice the tokens that a local layer's token attends to, its own included, as for ModernBERT."""

    model_type: str = "modernbert-decoder"
    bos_token_id: int | None = 50281
    eos_token_id: int | list[int] | None = 50282

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.local_attention < 2:
            raise ConfigError(f"local_attention = {self.local_attention} lets no token attend to itself")

    def window(self, layer: int) -> int | None:
        """The number of tokens before itself that a token of this layer attends to; None for all."""
        return self.local_attention // 2 - 1 if self.is_local(layer) else None
