"""A rank's slices of a decoder's tensors (Shoeybi et al. 2019, https://arxiv.org/abs/1909.08053).

The projections of queries, keys and values, the gate and the upper projection are split by outputs: a rank has some of
the heads and some of the features.  The two projections that follow are split by inputs, the embeddings and the head by
words.  Norms, and the biases that are added to a sum over the ranks, are whole in each.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from ..errors import InputError, UnsupportedError
from ..quant import QuantRows
from ..typing import RawTensor
from .memory import TensorHeader
from .source import Source

FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
_BY_OUTPUTS = re.compile(r"(?:^|\.)([qkv]_proj|gate_proj|up_proj|embed_tokens|lm_head)\.(?:weight|bias)$")
_BY_INPUTS = re.compile(r"(?:^|\.)(o_proj|down_proj)\.weight$")
_FLOATS = ("F64", "F32", "F16", "BF16")


class Split:
    """The parts of a model for `ranks` processes; config: of a family of FAMILIES, with fields as Llama's."""

    def __init__(self, config: Any, ranks: int):
        if config.model_type not in FAMILIES:
            raise UnsupportedError(
                f"model_type {config.model_type!r} cannot be split over processes, only {', '.join(FAMILIES)} can"
            )
        self.config, self.ranks = config, ranks
        self._heads, self._groups = config.num_attention_heads, config.key_heads
        for name, count in (("num_attention_heads", self._heads), ("intermediate_size", config.intermediate_size)):
            if ranks < 1 or count % ranks:
                raise InputError(f"{name} is {count}, which {ranks} processes cannot share equally")
        if max(self._groups, ranks) % min(self._groups, ranks):
            raise InputError(
                f"num_key_value_heads is {self._groups}: expected a multiple or a divisor of {ranks} processes",
            )
        if config.vocab_size < ranks:
            raise InputError(f"vocab_size is {config.vocab_size}, and there are {ranks} processes")

    def config_of(self, rank: int) -> Any:
        """The config of a rank's part."""
        words = self.words(rank)
        return replace(
            self.config,
            head_dim=self.config.head_size,
            num_attention_heads=self._heads // self.ranks,
            num_key_value_heads=max(1, self._groups // self.ranks),
            intermediate_size=self.config.intermediate_size // self.ranks,
            vocab_size=words.stop - words.start,
        )

    def words(self, rank: int) -> slice:
        """The ids of a rank's embeddings and logits."""
        return _share(self.config.vocab_size, rank, self.ranks)

    def part(self, name: str, shape: tuple[int, ...], rank: int) -> tuple[slice, ...]:
        """The slices of a tensor that a rank has."""
        whole = tuple(slice(0, n) for n in shape)
        if _BY_INPUTS.search(name):
            return (whole[0], _share(shape[1], rank, self.ranks))
        found = _BY_OUTPUTS.search(name)
        if found is None:
            return whole
        own = _share(shape[0], rank, self.ranks)
        if found[1] in ("k_proj", "v_proj") and self._groups < self.ranks:  # ranks share a head of keys
            size = shape[0] // self._groups
            group = rank * self._groups // self.ranks
            own = slice(group * size, (group + 1) * size)
        return (own, *whole[1:])

    def header(self, tensor: TensorHeader, rank: int) -> TensorHeader:
        """A rank's slice of a tensor, without its numbers."""
        part = self.part(tensor.name, tensor.shape, rank)
        if len(tensor.shape) > 1 and tensor.dtype not in _FLOATS:
            raise UnsupportedError(
                f"{tensor.name} is stored as {tensor.dtype}: only {', '.join(_FLOATS)} can be split over processes"
            )
        return tensor._replace(shape=tuple(one.stop - one.start for one in part))


class Slices:
    """A Source: a rank's slices of the tensors of another, whose other numbers are not read."""

    def __init__(self, source: Source, split: Split, rank: int):
        self._source, self._split, self._rank, self.files = source, split, rank, source.files

    def names(self) -> Collection[str]:
        return self._source.names()

    def __contains__(self, name: object) -> bool:
        return name in self._source

    def shape(self, name: str) -> tuple[int, ...]:
        header = TensorHeader(name, self.dtype(name), self._source.shape(name))
        return self._split.header(header, self._rank).shape

    def dtype(self, name: str) -> str:
        return self._source.dtype(name)

    def read(self, name: str) -> RawTensor:
        stored = self._source.read(name)
        if isinstance(stored, QuantRows):
            raise UnsupportedError(f"{name} is quantised: only plain numbers can be split over processes")
        return stored._replace(array=stored.array[self._split.part(name, stored.array.shape, self._rank)])


def _share(count: int, rank: int, ranks: int) -> slice:
    return slice(rank * count // ranks, (rank + 1) * count // ranks)
