"""Depth Anything: https://arxiv.org/abs/2401.10891 and https://arxiv.org/abs/2406.09414"""

from .config import *
from .model import *
