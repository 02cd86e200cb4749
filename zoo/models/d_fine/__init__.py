"""D-FINE: https://arxiv.org/abs/2410.13842"""

from .config import *
from .model import *
