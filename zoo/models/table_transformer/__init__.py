"""Table Transformer: https://arxiv.org/abs/2110.00061"""

from .config import *
from .model import *
