"""Parakeet: https://arxiv.org/abs/2305.05084"""

from .config import *
from .model import *
