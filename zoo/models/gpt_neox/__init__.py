"""GPT-NeoX: https://arxiv.org/abs/2204.06745"""

from .config import *
from .model import *
