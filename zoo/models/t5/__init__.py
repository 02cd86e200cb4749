"""T5, Flan-T5 and mT5: https://arxiv.org/abs/1910.10683"""

from .config import *
from .heads import *
from .model import *
