"""OLMo 2: https://arxiv.org/abs/2501.00656"""

from .config import *
from .model import *
