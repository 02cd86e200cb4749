"""PP-LCNetV3: https://arxiv.org/abs/2109.15099"""

from .config import *
from .model import *
