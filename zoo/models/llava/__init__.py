"""LLaVA 1.5: https://arxiv.org/abs/2310.03744"""

from .config import *
from .model import *
