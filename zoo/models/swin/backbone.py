"""Swin (https://arxiv.org/abs/2103.14030) as other models use it: some of its hidden states, each with a norm.

Shapes: B batch, h and w rows and columns of a stage, D its width.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...inputs import ImageInputs
from ...nn import LayerNorm
from ...typing import Array
from ...weights import Weights
from ..vit.backbone import BackboneOutput, select_states
from .config import SwinConfig
from .model import EPS, NAME_MAP, SwinModel, SwinPretrained


class SwinBackbone(SwinPretrained):
    """Its windows are shifted, and filled up with zeros, in images of any size."""

    name_map = replace(
        NAME_MAP,
        renames={**NAME_MAP.renames, r"^(embeddings|encoder)\.": r"swin.\1."},  # of version 4 of transformers
        ignored=(*NAME_MAP.ignored, r"^swin\.layernorm\."),
    )

    def __init__(self, w: Weights, cfg: SwinConfig):
        self.config = cfg
        self.base_model = SwinModel(w / "swin", cfg, normed=False)
        for block in (block for stage in self.base_model.layers for block in stage.blocks):
            block.attention.always = True
        norms = w / "hidden_states_norms"
        widths = [cfg.embed_dim, *(cfg.embed_dim * 2**i for i in range(len(cfg.depths)))]
        self.norms = [LayerNorm(norms / (f"stage{i}" if i else "stem"), widths[i], EPS) for i in cfg.outputs]

    def hidden_states(self, p: ImageInputs) -> Iterator[Array]:
        """Yield the first stage's input, then the states of each stage before they are merged, all (B, h, w, D)."""
        x, (h, w) = self.base_model.embeddings(p), p.grid
        yield x.reshape(x.shape[0], h, w, -1)
        for stage in self.base_model.layers:
            x, own = stage(x, (h, w))
            yield own.reshape(own.shape[0], h, w, -1)
            h, w = (h + 1) // 2, (w + 1) // 2

    def forward(self, p: ImageInputs) -> BackboneOutput:
        """-> the hidden states that the config names."""
        found = select_states(self.hidden_states(p), self.config.outputs)
        return BackboneOutput(tuple(norm(x) for norm, x in zip(self.norms, found, strict=True)))
