"""The config of a Wav2Vec2-BERT checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ...config import Config
from ...errors import ConfigError

FRAME, HOP = 400, 160  # samples of a frame of the extractor, and from one to the next


@dataclass(frozen=True, kw_only=True)
class Wav2Vec2BertConfig(Config):
    model_type: str = "wav2vec2-bert"
    vocab_size: int | None = None
    hidden_size: int = 1024
    num_hidden_layers: int = 24
    num_attention_heads: int = 16
    intermediate_size: int = 4096
    feature_projection_input_dim: int = 160
    hidden_act: str = "swish"
    hidden_dropout: float = 0.0
    activation_dropout: float = 0.0
    attention_dropout: float = 0.0
    feat_proj_dropout: float = 0.0
    final_dropout: float = 0.1
    conformer_conv_dropout: float = 0.1
    layer_norm_eps: float = 1e-5
    ctc_loss_reduction: str = "sum"
    ctc_zero_infinity: bool = False
    use_weighted_layer_sum: bool = False
    classifier_proj_size: int = 768
    pad_token_id: int | None = 0
    add_adapter: bool = False
    adapter_kernel_size: int = 3
    adapter_stride: int = 2
    num_adapter_layers: int = 1
    adapter_act: str = "relu"
    use_intermediate_ffn_before_adapter: bool = False
    output_hidden_size: int | None = None
    position_embeddings_type: str | None = "relative_key"
    left_max_position_embeddings: int = 64
    right_max_position_embeddings: int = 8
    conv_depthwise_kernel_size: int = 31

    def __post_init__(self) -> None:
        self.positive("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
        self.positive("feature_projection_input_dim", "classifier_proj_size", "conv_depthwise_kernel_size")
        self.positive("adapter_kernel_size", "adapter_stride", "num_adapter_layers")
        self.divides("num_attention_heads", "hidden_size")
        self.above_zero("layer_norm_eps")
        self.fractions("hidden_dropout", "activation_dropout", "attention_dropout", "feat_proj_dropout")
        self.fractions("final_dropout", "conformer_conv_dropout")
        if self.vocab_size is not None:
            self.positive("vocab_size")
        for name in ("left_max_position_embeddings", "right_max_position_embeddings"):
            if not 0 <= getattr(self, name) <= 1 << 16:
                raise ConfigError(f"{name} = {getattr(self, name)}, expected 0 ... 65536")
        if not self.conv_depthwise_kernel_size % 2:
            raise ConfigError(f"conv_depthwise_kernel_size = {self.conv_depthwise_kernel_size}, expected an odd number")
        if self.ctc_loss_reduction not in ("mean", "sum"):
            raise ConfigError(f"ctc_loss_reduction = {self.ctc_loss_reduction!r}, expected 'mean' or 'sum'")
        if self.position_embeddings_type is not None:
            self.require(position_embeddings_type="relative_key")
        if self.add_adapter:
            self.positive("output_width")
            self.divides("num_attention_heads", "output_width")
            self.require(adapter_kernel_size=3, adapter_stride=2)
        elif self.use_intermediate_ffn_before_adapter:
            raise ConfigError("use_intermediate_ffn_before_adapter is true, but add_adapter is false")

    @property
    def output_width(self) -> int:
        """The width of the states that come out of the adapter."""
        return self.hidden_size if self.output_hidden_size is None else self.output_hidden_size

    @property
    def frame_size(self) -> int:
        """The numbers of a frame, which is two of the extractor's side by side."""
        return self.feature_projection_input_dim

    @property
    def frame_samples(self) -> int:
        return FRAME + HOP

    @property
    def frame_step(self) -> int:
        return 2 * HOP

    @property
    def step(self) -> int:
        """The frames from one state to the next."""
        return self.adapter_stride**self.num_adapter_layers if self.add_adapter else 1
