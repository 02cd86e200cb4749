"""HuBERT: https://arxiv.org/abs/2106.07447"""

from .config import *
from .model import *
