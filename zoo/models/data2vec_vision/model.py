"""data2vec of images (Baevski et al. 2022, https://arxiv.org/abs/2202.03555): BEiT's network, trained to predict its
own states.

Shapes: as in BEiT's models.
"""

from __future__ import annotations

from dataclasses import replace

from ..beit import model as beit
from .config import Data2VecVisionConfig

IGNORED_NAMES = tuple(pattern.replace("beit", "data2vec_vision") for pattern in beit.NAME_MAP.ignored)
NAME_MAP = replace(beit.NAME_MAP, prefix="data2vec_vision", ignored=IGNORED_NAMES)


class Data2VecVisionModel(beit.BeitModel):
    config_class = Data2VecVisionConfig
    name_map = replace(NAME_MAP, ignored=(*IGNORED_NAMES, r"^(classifier|decode_head|auxiliary_head|fpn\d)\."))


class Data2VecVisionForImageClassification(beit.BeitForImageClassification):
    config_class = Data2VecVisionConfig
    name_map = NAME_MAP
    base_class = Data2VecVisionModel
