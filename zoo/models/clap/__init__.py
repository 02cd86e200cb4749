"""CLAP: https://arxiv.org/abs/2211.06687"""

from .config import *
from .model import *
