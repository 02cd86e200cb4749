"""Falcon-H1: https://arxiv.org/abs/2507.22448"""

from .config import *
from .model import *
