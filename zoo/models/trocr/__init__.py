"""TrOCR: https://arxiv.org/abs/2109.10282"""

from .config import *
from .model import *
