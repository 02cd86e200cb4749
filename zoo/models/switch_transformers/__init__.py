"""Switch Transformers: https://arxiv.org/abs/2101.03961"""

from .config import *
from .model import *
