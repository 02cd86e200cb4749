"""ALIGN: https://arxiv.org/abs/2102.05918"""

from .config import *
from .model import *
