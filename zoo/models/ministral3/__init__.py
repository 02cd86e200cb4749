"""Ministral 3: https://arxiv.org/abs/2601.08584"""

from .config import *
from .model import *
