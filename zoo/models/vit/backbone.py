"""Encoders of images as other models use them, such as DPT (https://arxiv.org/abs/2103.13413): some hidden states.

Shapes: B batch, h and w rows and columns of patches, T tokens, D hidden_size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...config import Config
from ...errors import ConfigError
from ...typing import Array


@dataclass(frozen=True, kw_only=True)
class BackboneConfig(Config):
    """The fields that choose hidden states: by their numbers, by their names, or by both."""

    out_features: list[str] | None = None
    out_indices: list[int] | None = None

    @property
    def states(self) -> int:
        """The number of hidden states: the first layer's input, and the output of each layer or stage."""
        config: Any = self
        return config.num_hidden_layers + 1

    @property
    def given_indices(self) -> Any:
        """The numbers that config.json has."""
        return self.out_indices

    @property
    def outputs(self) -> tuple[int, ...]:
        """The hidden states that are chosen: 0 is the first layer's input, i the output of layer i."""
        count, indices = self.states, self.given_indices
        if indices is not None:
            if not isinstance(indices, (list, tuple)) or not all(
                type(i) is int and -count <= i < count for i in indices
            ):
                raise ConfigError(f"out_indices = {indices!r} are not all in {-count} ... {count - 1}")
            indices = [i % count for i in indices]
            if indices != sorted(set(indices)):
                raise ConfigError(f"out_indices = {self.out_indices} must rise from the first layer to the last")
        stages = ["stem", *(f"stage{i}" for i in range(1, count))]
        if self.out_features is None:
            return (count - 1,) if indices is None else tuple(indices)
        unknown = [name for name in self.out_features if name not in stages]
        if unknown:
            raise ConfigError(f"out_features has {unknown[0]!r}, which is not one of stem, stage1 ... {stages[-1]}")
        named = [stages.index(name) for name in self.out_features]
        if named != sorted(set(named)):
            raise ConfigError(f"out_features = {self.out_features} must rise from the first layer to the last")
        if indices is not None and indices != named:
            raise ConfigError(f"out_indices = {self.out_indices} and out_features = {self.out_features} do not agree")
        return tuple(named)


class BackboneOutput(NamedTuple):
    feature_maps: tuple[Array, ...]  # (B, h, w, D), or as the config says (B, T, D)


def select_states(states: Iterable[Array], indices: Sequence[int]) -> list[Array]:
    """Some hidden states; those after the last of them are not computed."""
    found, last = {}, max(indices)
    for i, x in enumerate(states):
        if i in indices:
            found[i] = x
        if i == last:
            break
    return [found[i] for i in indices]
