"""The config of a Switch Transformers checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..t5.config import T5Config


@dataclass(frozen=True, kw_only=True)
class SwitchTransformersConfig(T5Config):
    """feed_forward_proj, is_gated_act and scale_decoder_outputs, which T5 reads, change nothing, as in transformers."""

    model_type: str = "switch_transformers"
    d_model: int = 768
    num_layers: int = 12
    num_decoder_layers: int | None = 12
    num_heads: int = 12
    num_experts: int = 8
    expert_capacity: int = 64  # tokens of a text that one expert takes
    num_sparse_encoder_layers: int = 3
    num_sparse_decoder_layers: int = 3
    encoder_sparse_step: int | None = None  # these two count, where a file has them
    decoder_sparse_step: int | None = None
    router_bias: bool = False
    dense_act_fn: str | None = "relu"

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> SwitchTransformersConfig:
        if "num_hidden_layers" in raw:  # which comes after the step is made
            layers, sparse = (raw.get(name, getattr(cls, name)) for name in ("num_layers", "num_sparse_encoder_layers"))
            raw = {"encoder_sparse_step": _step(layers, sparse), **raw}
        return super(T5Config, cls).from_dict(raw)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("num_experts", "expert_capacity")
        self.require(router_dtype="float32")
        for part in ("encoder", "decoder"):
            for name in (f"num_sparse_{part}_layers", f"{part}_sparse_step"):
                if getattr(self, name):
                    self.positive(name)

    @property
    def is_gated(self) -> bool:
        return False

    @property
    def activation(self) -> str:
        return self.dense_act_fn or "relu"

    @property
    def scales_logits(self) -> bool:
        return self.tie_word_embeddings

    def has_experts(self, layer: int, in_decoder: bool) -> bool:
        """True if the MLP of a layer is one of several: one layer of `step`, from the second on, or all."""
        step = self.decoder_sparse_step if in_decoder else self.encoder_sparse_step
        if step is None:
            sparse = self.num_sparse_decoder_layers if in_decoder else self.num_sparse_encoder_layers
            step = _step(self.decoder_layers if in_decoder else self.num_layers, sparse)
        return step == 1 or (step > 0 and layer % step == 1)


def _step(layers: int, sparse: int) -> int:
    return layers // sparse if sparse > 0 else layers
