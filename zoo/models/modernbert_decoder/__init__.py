"""ModernBERT's decoder, Ettin: https://arxiv.org/abs/2507.11412"""

from .config import *
from .model import *
