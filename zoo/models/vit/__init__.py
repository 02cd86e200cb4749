"""ViT: https://arxiv.org/abs/2010.11929.  DeiT: https://arxiv.org/abs/2012.12877"""

from .config import DeiTConfig, ViTConfig
from .deit import (
    DeiTForImageClassification,
    DeiTForImageClassificationWithTeacher,
    DeiTForMaskedImageModeling,
    DeiTModel,
)
from .model import ViTForImageClassification, ViTForMaskedImageModeling, ViTModel

__all__ = [
    "DeiTConfig",
    "DeiTForImageClassification",
    "DeiTForImageClassificationWithTeacher",
    "DeiTForMaskedImageModeling",
    "DeiTModel",
    "ViTConfig",
    "ViTForImageClassification",
    "ViTForMaskedImageModeling",
    "ViTModel",
]
