"""LFM2: https://arxiv.org/abs/2511.23404"""

from .config import *
from .model import *
