"""DeepSeek-V3: https://arxiv.org/abs/2412.19437"""

from .config import *
from .model import *
