"""The config of a Gemma checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...errors import UnsupportedError
from ..llama3.config import LlamaConfig


@dataclass(frozen=True, kw_only=True)
class GemmaConfig(LlamaConfig):
    """hidden_act: "gelu", which the first files have, stands for the tanh approximation, as in transformers."""

    reads_mlp_bias: ClassVar[bool] = False
    type_vocab_size: ClassVar[int] = 2  # in PaliGemma: 1 for the tokens of a prompt
    model_type: str = "gemma"
    vocab_size: int = 256000
    hidden_size: int = 3072
    intermediate_size: int = 24576
    num_hidden_layers: int = 28
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 16
    head_dim: int | None = 256
    hidden_act: str = "gelu_pytorch_tanh"
    max_position_embeddings: int = 8192
    use_bidirectional_attention: bool | None = None
    tie_word_embeddings: bool = True
    pad_token_id: int | None = 0
    bos_token_id: int | None = 2
    eos_token_id: int | list[int] | None = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.use_bidirectional_attention:
            raise UnsupportedError("gemma: use_bidirectional_attention = True is not implemented, only False is")
        if self.hidden_act == "gelu":
            object.__setattr__(self, "hidden_act", "gelu_pytorch_tanh")
