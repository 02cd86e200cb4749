"""BERT: https://arxiv.org/abs/1810.04805"""

from .config import *
from .model import *
