"""MobileBERT: https://arxiv.org/abs/2004.02984"""

from .config import *
from .model import *
