"""SAM: https://arxiv.org/abs/2304.02643"""

from .config import *
from .model import *
