"""OPT: https://arxiv.org/abs/2205.01068"""

from .config import *
from .model import *
