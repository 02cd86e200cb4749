"""The config of a wav2vec 2.0 checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ...config import Config
from ...errors import ConfigError

MAX_CONVOLUTIONS = 100


@dataclass(frozen=True, kw_only=True)
class Wav2Vec2Config(Config):
    model_type: str = "wav2vec2"
    vocab_size: int = 32
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout: float = 0.1
    activation_dropout: float = 0.1
    attention_dropout: float = 0.1
    feat_proj_dropout: float = 0.0
    final_dropout: float = 0.1
    layer_norm_eps: float = 1e-5
    feat_extract_norm: str = "group"
    feat_extract_activation: str = "gelu"
    conv_dim: list[int] | tuple[int, ...] = (512, 512, 512, 512, 512, 512, 512)
    conv_stride: list[int] | tuple[int, ...] = (5, 2, 2, 2, 2, 2, 2)
    conv_kernel: list[int] | tuple[int, ...] = (10, 3, 3, 3, 3, 2, 2)
    conv_bias: bool = False
    num_conv_pos_embeddings: int = 128
    num_conv_pos_embedding_groups: int = 16
    do_stable_layer_norm: bool = False
    ctc_loss_reduction: str = "sum"
    ctc_zero_infinity: bool = False
    use_weighted_layer_sum: bool = False
    classifier_proj_size: int = 256
    pad_token_id: int | None = 0
    adapter_attn_dim: int | None = None

    def __post_init__(self) -> None:
        self.positive("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
        self.positive("num_conv_pos_embeddings", "num_conv_pos_embedding_groups", "classifier_proj_size")
        self.divides("num_attention_heads", "hidden_size")
        self.divides("num_conv_pos_embedding_groups", "hidden_size")
        self.above_zero("layer_norm_eps")
        self.fractions("hidden_dropout", "activation_dropout", "attention_dropout", "feat_proj_dropout")
        self.fractions("final_dropout")
        lists = self.conv_dim, self.conv_stride, self.conv_kernel
        if len({len(one) for one in lists}) != 1 or not 1 <= len(self.conv_dim) <= MAX_CONVOLUTIONS:
            raise ConfigError(
                "conv_dim, conv_stride and conv_kernel have "
                f"{', '.join(str(len(one)) for one in lists)} numbers, expected one for each convolution"
            )
        if any(type(n) is not int or not 1 <= n <= 1 << 16 for one in lists for n in one):
            raise ConfigError(f"conv_dim, conv_stride and conv_kernel are {lists}, expected numbers of 1 ... 65536")
        if self.feat_extract_norm not in ("group", "layer"):
            raise ConfigError(f"feat_extract_norm = {self.feat_extract_norm!r}, expected 'group' or 'layer'")
        if self.ctc_loss_reduction not in ("mean", "sum"):
            raise ConfigError(f"ctc_loss_reduction = {self.ctc_loss_reduction!r}, expected 'mean' or 'sum'")
        if self.adapter_attn_dim is not None:
            self.positive("adapter_attn_dim")
        self.require(add_adapter=False)

    @property
    def has_feature_norm(self) -> bool:
        """True if the convolutions' outputs are normed before their projection."""
        return True
