"""The config of a DeepSeek-V3 checkpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...errors import ConfigError
from ...rope import Rope, rope_of
from ..llama3.config import LlamaConfig


@dataclass(frozen=True, kw_only=True)
class DeepseekV3Config(LlamaConfig):
    """q_lora_rank, kv_lora_rank: the widths between the projections of queries, and of keys and values; None: one
    projection.  qk_nope_head_dim, qk_rope_head_dim: the features of a head that positions leave, and that they rotate.
    n_group, topk_group: groups of experts, and those of them that a token may choose from.
    """

    aliases: ClassVar[Mapping[str, str]] = {"num_local_experts": "n_routed_experts"}
    rotates_part: ClassVar[bool] = True
    reads_mlp_bias: ClassVar[bool] = False
    model_type: str = "deepseek_v3"
    vocab_size: int = 129_280
    hidden_size: int = 7168
    intermediate_size: int = 18432
    moe_intermediate_size: int = 2048
    num_hidden_layers: int = 61
    num_attention_heads: int = 128
    num_key_value_heads: int | None = 128
    n_shared_experts: int = 1
    n_routed_experts: int = 256
    routed_scaling_factor: float = 2.5
    kv_lora_rank: int = 512
    q_lora_rank: int | None = 1536
    qk_rope_head_dim: int = 64
    v_head_dim: int = 128
    qk_nope_head_dim: int = 128
    n_group: int = 8
    topk_group: int = 4
    num_experts_per_tok: int = 8
    first_k_dense_replace: int = 3
    norm_topk_prob: bool = True
    max_position_embeddings: int = 4096
    rope_interleave: bool = True
    bos_token_id: int | None = 0
    eos_token_id: int | list[int] | None = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("moe_intermediate_size", "n_shared_experts", "n_routed_experts", "kv_lora_rank", "v_head_dim")
        self.positive("qk_rope_head_dim", "qk_nope_head_dim", "n_group", "topk_group", "num_experts_per_tok")
        if self.q_lora_rank is not None:
            self.positive("q_lora_rank")
        self.above_zero("routed_scaling_factor")
        self.divides("n_group", "n_routed_experts")
        self.require(num_key_value_heads=self.num_attention_heads, scoring_func="sigmoid", topk_method="noaux_tc")
        if self.v_head_dim > self.head_size:
            raise ConfigError(f"v_head_dim = {self.v_head_dim} is above the features of a key, {self.head_size}")
        size = self.n_routed_experts // self.n_group
        if size < 2:
            raise ConfigError(
                f"n_group = {self.n_group} of n_routed_experts = {self.n_routed_experts}: expected two each"
            )
        if self.topk_group > self.n_group or self.num_experts_per_tok > size * self.topk_group:
            found = f"num_experts_per_tok = {self.num_experts_per_tok} of topk_group = {self.topk_group} groups"
            raise ConfigError(f"{found} of {size} experts, of which there are {self.n_group}")

    @property
    def head_size(self) -> int:
        return self.qk_nope_head_dim + self.qk_rope_head_dim

    @property
    def attention_scale(self) -> float:
        """The factor of scores."""
        given = dict(self.rope().numbers)
        found, all_dim = self.head_size**-0.5, given.get("mscale_all_dim")
        if self.rope().kind == "default" or not all_dim or given.get("factor", 1) <= 1:
            return found
        return found * (0.1 * all_dim * math.log(given["factor"]) + 1) ** 2

    def rope(self) -> Rope:
        parameters = {"rope_theta": self.rope_theta, **(self.rope_scaling or self.rope_parameters or {})}
        return rope_of(parameters, self.qk_rope_head_dim, self.max_position_embeddings)
