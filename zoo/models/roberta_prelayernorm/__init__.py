"""RoBERTa with norms before the layers: https://arxiv.org/abs/1904.01038"""

from .config import *
from .model import *
