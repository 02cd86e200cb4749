"""CLIP: https://arxiv.org/abs/2103.00020"""

from .config import *
from .model import *
