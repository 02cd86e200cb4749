"""T5, Flan-T5 and mT5: https://arxiv.org/abs/1910.10683"""

from ...registry import borrowed_classes
from .config import *
from .heads import *
from .model import *

__getattr__ = borrowed_classes(__name__)
