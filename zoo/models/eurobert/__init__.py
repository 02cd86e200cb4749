"""EuroBERT: https://arxiv.org/abs/2503.05500"""

from .config import *
from .model import *
