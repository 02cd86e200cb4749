"""The config of an OLMo 3 checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...errors import ConfigError
from ...rope import FULL_ATTENTION, SLIDING_ATTENTION, Rope, rope_of
from ..llama3.windows_config import WindowedLayersConfig

THETA = 500_000.0  # the base of the positions of layers with a window, unless rope_parameters say another


@dataclass(frozen=True, kw_only=True)
class Olmo3Config(WindowedLayersConfig):
    """rope_scaling and rope_theta are those of the layers that see all tokens, as in transformers."""

    model_type: str = "olmo3"
    vocab_size: int = 50304
    rms_norm_eps: float = 1e-5
    rope_theta: float = THETA
    sliding_window: int | None = 4096
    pad_token_id: int | None = 1
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = 50279

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(head_dim=None, clip_qkv=None)
        self.local_rope()

    def slides_by_default(self, layer: int) -> bool:
        return (layer + 1) % 4 != 0

    @property
    def ropes(self) -> tuple[Rope, ...]:
        return self.rope(), self.local_rope()

    def rope(self) -> Rope:
        given = {**self._parameters(FULL_ATTENTION), **(self.rope_scaling or {})}
        return rope_of({"rope_theta": self.rope_theta, **given}, self.head_size, self.max_position_embeddings)

    def local_rope(self) -> Rope:
        """The rotary positions of the layers whose tokens attend to the last ones alone."""
        given = {"rope_theta": THETA, **self._parameters(SLIDING_ATTENTION)}
        return rope_of(given, self.head_size, self.max_position_embeddings)

    def _parameters(self, kind: str) -> dict[str, Any]:
        given = self.rope_parameters or {}
        found = given.get(kind) or {}
        if not isinstance(found, dict) or given.keys() - {FULL_ATTENTION, SLIDING_ATTENTION}:
            raise ConfigError(
                f"rope_parameters = {given!r}, expected an object with objects {FULL_ATTENTION} and {SLIDING_ATTENTION}"
            )
        return found
