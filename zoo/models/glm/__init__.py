"""GLM-4 of 2024: https://arxiv.org/abs/2406.12793"""

from .config import *
from .model import *
