"""The config of a table of vectors of tokens."""

from __future__ import annotations

from dataclasses import dataclass

from ...config import Config


@dataclass(frozen=True, kw_only=True)
class StaticConfig(Config):
    """vocab_size, hidden_size: those of the table, which `zoo.checkpoint.static_folder` puts into config.json."""

    model_type: str = "model2vec"
    vocab_size: int = 29528
    hidden_size: int = 256

    def __post_init__(self) -> None:
        self.positive("vocab_size", "hidden_size")
