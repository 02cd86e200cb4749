"""DINOv2: https://arxiv.org/abs/2304.07193"""

from .config import Dinov2Config
from .model import Dinov2Backbone, Dinov2ForImageClassification, Dinov2Model

__all__ = ["Dinov2Backbone", "Dinov2Config", "Dinov2ForImageClassification", "Dinov2Model"]
