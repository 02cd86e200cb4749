"""The config of a EuroBERT checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import UnsupportedError, nearest
from ..llama3.config import LlamaConfig

POOLINGS = ("bos", "mean", "late")


@dataclass(frozen=True, kw_only=True)
class EuroBertConfig(LlamaConfig):
    """classifier_pooling: "late" is the mean of each token's logits.  The first files have it as clf_pooling, which
    transformers does not read."""

    model_type: str = "eurobert"
    vocab_size: int = 128256
    hidden_size: int = 768
    intermediate_size: int = 3072
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    max_position_embeddings: int = 8192
    rms_norm_eps: float = 1e-5
    classifier_pooling: str = "late"
    pad_token_id: int | None = 128001
    bos_token_id: int | None = 128000
    eos_token_id: int | list[int] | None = 128001

    def __post_init__(self) -> None:
        super().__post_init__()
        self.divides("num_attention_heads", "hidden_size")
        if self.classifier_pooling not in POOLINGS:
            raise UnsupportedError(
                f"classifier_pooling = {self.classifier_pooling!r} is not implemented, only {', '.join(POOLINGS)} are"
                f"{nearest(self.classifier_pooling, POOLINGS)}"
            )
        self.require(clf_pooling=self.classifier_pooling)
