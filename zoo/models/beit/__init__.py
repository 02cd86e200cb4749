"""BEiT: https://arxiv.org/abs/2106.08254.  DiT: https://arxiv.org/abs/2203.02378"""

from .config import BeitConfig
from .model import BeitForImageClassification, BeitForMaskedImageModeling, BeitModel
from .segmentation import BeitBackbone, BeitForSemanticSegmentation

__all__ = [
    "BeitBackbone",
    "BeitConfig",
    "BeitForImageClassification",
    "BeitForMaskedImageModeling",
    "BeitForSemanticSegmentation",
    "BeitModel",
]
