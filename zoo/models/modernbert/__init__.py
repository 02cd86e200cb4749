"""ModernBERT: https://arxiv.org/abs/2412.13663"""

from .config import *
from .model import *
