"""Gemma: https://arxiv.org/abs/2403.08295"""

from .config import *
from .model import *
