"""DistilBERT: https://arxiv.org/abs/1910.01108"""

from .config import *
from .model import *
