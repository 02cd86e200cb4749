"""Florence-2: https://arxiv.org/abs/2311.06242"""

from .config import *
from .model import *
