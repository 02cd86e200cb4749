"""ConvNeXt V2: https://arxiv.org/abs/2301.00808"""

from .config import *
from .model import *
