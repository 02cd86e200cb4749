"""The config of an ERNIE checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ..bert.config import BertConfig


@dataclass(frozen=True, kw_only=True)
class ErnieConfig(BertConfig):
    """use_task_id: embeddings for the kind of task, of which zoo takes the first, as transformers by default."""

    model_type: str = "ernie"
    task_type_vocab_size: int = 3
    use_task_id: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.use_task_id:
            self.positive("task_type_vocab_size")
        self.require(is_decoder=False, add_cross_attention=False)
