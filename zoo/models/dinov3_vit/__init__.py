"""DINOv3's ViTs: https://arxiv.org/abs/2508.10104"""

from .config import *
from .model import *
