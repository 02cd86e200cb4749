"""Swin: https://arxiv.org/abs/2103.14030"""

from .config import *
from .model import *
