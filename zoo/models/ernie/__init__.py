"""ERNIE: https://arxiv.org/abs/1904.09223"""

from .config import *
from .model import *
