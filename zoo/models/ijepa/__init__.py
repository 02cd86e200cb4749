"""I-JEPA: https://arxiv.org/abs/2301.08243"""

from .config import *
from .model import *
