"""Moonshine: https://arxiv.org/abs/2410.15608"""

from .config import *
from .model import *
