"""CLIPSeg: https://arxiv.org/abs/2112.10003"""

from .config import *
from .model import *
