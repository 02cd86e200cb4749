"""The config of a data2vec checkpoint of images: BEiT's."""

from __future__ import annotations

from dataclasses import dataclass

from ..beit.config import BeitConfig


@dataclass(frozen=True, kw_only=True)
class Data2VecVisionConfig(BeitConfig):
    model_type: str = "data2vec-vision"
