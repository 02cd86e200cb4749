"""GTE: https://arxiv.org/abs/2407.19669"""

from .config import *
from .model import *
