"""CodeGen (Nijkamp et al. 2022, https://arxiv.org/abs/2203.13474): GPT-J with one projection to queries, values and
keys, in four parts, as four processors had computed it.

Shapes: B batch, T tokens, D n_embd, H heads, K = D / H.
"""

from __future__ import annotations

from ...nn import Linear
from ...typing import Array
from ...weights import Weights
from ..gptj import model as gptj
from .config import CodeGenConfig


class Attention(gptj.Attention):
    def projection(self, w: Weights, d: int) -> Linear:
        """The projection to queries, keys and values."""
        return Linear(w / "qkv_proj", d, 3 * d, bias=False)

    def project(self, x: Array) -> tuple[Array, Array, Array]:
        """x (B, T, D) -> queries, keys and values (B, T, H, K)."""
        lead, D = x.shape[:2], x.shape[2]
        y, n = self.qkv(x).reshape(*lead, CodeGenConfig.parts, -1), D // CodeGenConfig.parts
        q, v, k = (y[..., i * n : (i + 1) * n].reshape(*lead, self.heads, D // self.heads) for i in range(3))
        return q, k, v


class Layer(gptj.Layer):
    attention_class = Attention


class CodeGenModel(gptj.GPTJModel):
    config_class = CodeGenConfig
    layer_class = Layer


class CodeGenForCausalLM(gptj.GPTJForCausalLM):
    config_class = CodeGenConfig
    base_class = CodeGenModel
