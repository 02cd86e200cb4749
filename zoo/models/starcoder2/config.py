"""The config of a StarCoder2 checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ..llama3.windows_config import WindowedConfig


@dataclass(frozen=True, kw_only=True)
class Starcoder2Config(WindowedConfig):
    model_type: str = "starcoder2"
    vocab_size: int = 49152
    hidden_size: int = 3072
    intermediate_size: int = 12288
    num_hidden_layers: int = 30
    num_attention_heads: int = 24
    num_key_value_heads: int | None = 2
    hidden_act: str = "gelu_pytorch_tanh"
    max_position_embeddings: int = 4096
    norm_epsilon: float = 1e-5
    use_bias: bool = True
    residual_dropout: float = 0.0
    embedding_dropout: float = 0.0
    tie_word_embeddings: bool = True
    bos_token_id: int | None = 50256
    eos_token_id: int | list[int] | None = 50256

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fractions("residual_dropout", "embedding_dropout")
        self.above_zero("norm_epsilon")
        self.require(mlp_type="default", norm_type="layer_norm")
