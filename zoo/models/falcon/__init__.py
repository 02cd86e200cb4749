"""Falcon: https://arxiv.org/abs/2311.16867"""

from .config import *
from .model import *
