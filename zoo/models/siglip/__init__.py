"""SigLIP and SigLIP 2: https://arxiv.org/abs/2303.15343, https://arxiv.org/abs/2502.14786"""

from .config import *
from .model import *
