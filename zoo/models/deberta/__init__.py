"""DeBERTa: https://arxiv.org/abs/2006.03654"""

from .config import *
from .model import *
