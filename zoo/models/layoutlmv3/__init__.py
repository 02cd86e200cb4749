"""LayoutLMv3: https://arxiv.org/abs/2204.08387"""

from .config import *
from .model import *
