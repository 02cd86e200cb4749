"""ALBERT: https://arxiv.org/abs/1909.11942"""

from .config import *
from .model import *
