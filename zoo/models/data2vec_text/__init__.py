"""data2vec of texts: https://arxiv.org/abs/2202.03555"""

from .config import *
from .model import *
