"""SAM 2: https://arxiv.org/abs/2408.00714"""

from .config import *
from .model import *
