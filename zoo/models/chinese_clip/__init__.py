"""Chinese-CLIP: https://arxiv.org/abs/2211.01335"""

from .config import *
from .model import *
