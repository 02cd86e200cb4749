"""WavLM: https://arxiv.org/abs/2110.13900"""

from .config import *
from .model import *
