"""BLIP: https://arxiv.org/abs/2201.12086"""

from .config import *
from .model import *
