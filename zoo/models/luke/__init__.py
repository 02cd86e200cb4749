"""LUKE: https://arxiv.org/abs/2010.01057"""

from .config import *
from .model import *
