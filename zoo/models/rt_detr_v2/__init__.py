"""RT-DETR and RT-DETR v2: https://arxiv.org/abs/2304.08069, https://arxiv.org/abs/2407.17140"""

from .config import *
from .model import *
