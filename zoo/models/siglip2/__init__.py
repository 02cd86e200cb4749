"""SigLIP 2 NaFlex: https://arxiv.org/abs/2502.14786"""

from .config import *
from .model import *
