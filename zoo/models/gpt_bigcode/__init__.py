"""SantaCoder and StarCoder: https://arxiv.org/abs/2305.06161"""

from .config import *
from .model import *
