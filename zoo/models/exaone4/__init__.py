"""EXAONE 4.0: https://arxiv.org/abs/2507.11407"""

from .config import *
from .model import *
