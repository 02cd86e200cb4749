"""DETR: https://arxiv.org/abs/2005.12872"""

from .config import *
from .model import *
from .segmentation import *
