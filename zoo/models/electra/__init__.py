"""ELECTRA: https://arxiv.org/abs/2003.10555"""

from .config import *
from .model import *
