"""BERT: https://arxiv.org/abs/1810.04805"""

from .config import *
from .heads import *
from .model import *
