"""The config of a Phi-3 checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...rope import Rope
from ..llama3.windows_config import WindowedConfig


@dataclass(frozen=True, kw_only=True)
class Phi3Config(WindowedConfig):
    model_type: str = "phi3"
    vocab_size: int = 32064
    hidden_size: int = 3072
    intermediate_size: int = 8192
    max_position_embeddings: int = 4096
    original_max_position_embeddings: int = 4096  # counts, and not that of rope_scaling
    rms_norm_eps: float = 1e-5
    resid_pdrop: float = 0.0
    pad_token_id: int | None = 32000
    eos_token_id: int | list[int] | None = 32000
    rotates_part: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fractions("resid_pdrop")

    def rope(self) -> Rope:
        for given in (self.rope_scaling, self.rope_parameters):
            kind = "rope_type" if given and "rope_type" in given else "type"
            if given and given.get(kind) in ("su", "yarn"):  # the first files' names of longrope
                given[kind] = "longrope"
        return super().rope()
