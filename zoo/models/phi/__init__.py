"""Phi-1.5 and 2: https://arxiv.org/abs/2309.05463"""

from .config import *
from .model import *
