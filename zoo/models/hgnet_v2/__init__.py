"""HGNetV2: https://github.com/PaddlePaddle/PaddleClas"""

from .config import *
from .model import *
