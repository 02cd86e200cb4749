"""The config of a Pegasus checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..mbart.config import MBartConfig


@dataclass(frozen=True, kw_only=True)
class PegasusConfig(MBartConfig):
    learned: ClassVar[bool] = False
    model_type: str = "pegasus"
    pad_token_id: int | None = 0
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = 1
    decoder_start_token_id: int | None = 0
