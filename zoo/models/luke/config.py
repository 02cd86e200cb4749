"""The config of a LUKE checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ..roberta.config import RobertaConfig


@dataclass(frozen=True, kw_only=True)
class LukeConfig(RobertaConfig):
    model_type: str = "luke"
    vocab_size: int = 50267
    entity_vocab_size: int = 500000
    entity_emb_size: int = 256
    use_entity_aware_attention: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("entity_vocab_size", "entity_emb_size")
        self.require(is_decoder=False, add_cross_attention=False)
