"""StarCoder2: https://arxiv.org/abs/2402.19173"""

from .config import *
from .model import *
