"""Mamba2: https://arxiv.org/abs/2405.21060"""

from .config import *
from .model import *
