"""ViTPose: https://arxiv.org/abs/2204.12484"""

from .config import *
from .model import *
