"""OLMo: https://arxiv.org/abs/2402.00838"""

from .config import *
from .model import *
