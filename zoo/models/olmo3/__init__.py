"""OLMo 3: https://arxiv.org/abs/2512.13961"""

from .config import *
from .model import *
