"""RegNet: https://arxiv.org/abs/2003.13678"""

from .config import *
from .model import *
