"""DPT: https://arxiv.org/abs/2103.13413"""

from .config import *
from .model import *
