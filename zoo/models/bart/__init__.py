"""BART and Marian: https://arxiv.org/abs/1910.13461, https://arxiv.org/abs/1804.00344"""

from .config import *
from .heads import *
from .model import *
