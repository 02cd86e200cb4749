"""RF-DETR: https://arxiv.org/abs/2511.09554"""

from .config import *
from .model import *
from .segmentation import *
