"""XLNet: https://arxiv.org/abs/1906.08237"""

from .config import *
from .model import *
