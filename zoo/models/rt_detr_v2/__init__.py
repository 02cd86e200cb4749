"""RT-DETR and RT-DETR v2: https://arxiv.org/abs/2304.08069, https://arxiv.org/abs/2407.17140"""

from ...registry import borrowed_classes
from .config import *
from .model import *

__getattr__ = borrowed_classes(__name__)
