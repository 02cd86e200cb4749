"""CANINE: https://arxiv.org/abs/2103.06874"""

from .config import *
from .model import *
