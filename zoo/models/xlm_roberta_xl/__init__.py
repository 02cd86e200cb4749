"""XLM-R XL and XXL: https://arxiv.org/abs/2105.00572"""

from .config import *
from .model import *
