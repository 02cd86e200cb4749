"""Llama 3: https://arxiv.org/abs/2407.21783"""

from .config import *
from .model import *
