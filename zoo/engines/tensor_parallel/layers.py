"""The layers whose weights are split over processes (Shoeybi et al. 2019, https://arxiv.org/abs/1909.08053).

The products before them need nothing from other ranks: their outputs are heads and features of this rank.
Every rank gets the same sums, bit for bit, so that all choose the same tokens.
Shapes: B rows, T tokens, D hidden_size, E a rank's inputs, V vocab_size, W the ids of a rank.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

from ... import ops
from ...inputs import TextInputs
from ...nn import Linear, Module


class SumOfParts(Module):
    """A linear layer that is split by inputs: the ranks' products are added, then its bias and the residual."""

    def __init__(self, part: Linear, group: Any):
        self.weight, self.bias, self._group = part.weight, part.bias, group

    def __call__(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """x (B, T, E), residual (B, T, D) -> (B, T, D)."""
        y: Any = ops.linear(x, self.weight, None)  # type: ignore[arg-type]
        y = y.contiguous()
        dist.all_reduce(y, group=self._group)
        y = y if self.bias is None else y + self.bias
        return y if residual is None else y + residual


class SplitEmbeddings(Module):
    """Embeddings that are split by words: a rank looks up its own, and the others' are zeros in the sum."""

    def __init__(self, part: Any, words: slice, group: Any):
        self.word, self.max_positions = part.word, part.max_positions
        self._words, self._group = words, group

    def __call__(self, t: TextInputs) -> Tensor:
        """-> (B, T, D)."""
        if t.inputs_embeds is not None:
            return t.inputs_embeds  # type: ignore[return-value]
        ids: Any = t.ids
        own = (ids >= self._words.start) & (ids < self._words.stop)
        table: Any = self.word
        x = F.embedding(torch.where(own, ids - self._words.start, 0), table) * own[..., None]
        dist.all_reduce(x, group=self._group)
        return x


class SplitHead(Module):
    """Logits, each rank's of its words, put together."""

    def __init__(self, part: Linear, widths: list[int], group: Any):
        self.part, self._widths, self._group = part, widths, group

    def __call__(self, x: Tensor) -> Tensor:
        """x (..., D) -> (..., V)."""
        own: Any = self.part(x)  # type: ignore[arg-type]
        most = max(self._widths)
        own = F.pad(own, (0, most - own.shape[-1])).contiguous()
        every = [torch.empty_like(own) for _ in self._widths]
        dist.all_gather(every, own, group=self._group)
        return torch.cat([one[..., :width] for one, width in zip(every, self._widths, strict=True)], -1)
