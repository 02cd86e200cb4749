"""data2vec of images: https://arxiv.org/abs/2202.03555"""

from .config import *
from .model import *
