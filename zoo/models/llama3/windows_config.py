"""The configs of decoders whose tokens attend to a window of those before them.

Source: Mistral 7B, https://arxiv.org/abs/2310.06825, section 2.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...rope import SLIDING_ATTENTION, check_layer_types
from .config import LlamaConfig


@dataclass(frozen=True, kw_only=True)
class WindowedConfig(LlamaConfig):
    """The base of decoders in which a token attends to the last `sliding_window` tokens, itself included."""

    sliding_window: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sliding_window is not None:
            self.positive("sliding_window")

    def slides(self, layer: int) -> bool:
        """True if this layer is one of those with a window."""
        return True

    def window(self, layer: int) -> int | None:
        return self.sliding_window - 1 if self.sliding_window is not None and self.slides(layer) else None


@dataclass(frozen=True, kw_only=True)
class WindowedLayersConfig(WindowedConfig):
    """The base of those in which some layers have a window: the ones that layer_types lists, or `slides_by_default`."""

    layer_types: list[str] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.layer_types is not None:
            check_layer_types(self.layer_types, self.num_hidden_layers)

    def slides(self, layer: int) -> bool:
        return (
            self.slides_by_default(layer) if self.layer_types is None else self.layer_types[layer] == SLIDING_ATTENTION
        )

    def slides_by_default(self, layer: int) -> bool:
        """True if this layer has a window where the config has no layer_types."""
        raise NotImplementedError
