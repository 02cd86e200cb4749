"""The config of an EXAONE 4.0 checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...errors import UnsupportedError
from ..llama3.windows_config import WindowedLayersConfig


@dataclass(frozen=True, kw_only=True)
class Exaone4Config(WindowedLayersConfig):
    reads_attention_bias: ClassVar[bool] = False
    reads_mlp_bias: ClassVar[bool] = False
    model_type: str = "exaone4"
    vocab_size: int = 102400
    intermediate_size: int = 16384
    num_key_value_heads: int | None = 32
    max_position_embeddings: int = 2048
    rms_norm_eps: float = 1e-5
    sliding_window: int | None = 4096
    sliding_window_pattern: int | str | None = 4
    bos_token_id: int | None = 0
    eos_token_id: int | list[int] | None = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        has_pattern = self.sliding_window is not None and isinstance(self.sliding_window_pattern, int)
        if self.layer_types is None and not has_pattern:
            raise UnsupportedError(
                f"sliding_window = {self.sliding_window} with sliding_window_pattern = {self.sliding_window_pattern!r} "
                "does not say which layers have a window, as transformers reads it: list them in layer_types"
            )
        if self.layer_types is None:
            self.positive("sliding_window_pattern")

    def slides_by_default(self, layer: int) -> bool:
        return (layer + 1) % int(self.sliding_window_pattern or 1) != 0

    def rotates(self, layer: int) -> bool:
        return self.sliding_window is None or self.slides(layer)
