"""Nomic's BERT: https://arxiv.org/abs/2402.01613"""

from .config import *
from .model import *
