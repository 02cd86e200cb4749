"""ResNet: https://arxiv.org/abs/1512.03385"""

from .config import *
from .model import *
