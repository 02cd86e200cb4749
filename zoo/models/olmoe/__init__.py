"""OLMoE: https://arxiv.org/abs/2409.02060"""

from .config import *
from .model import *
