"""ConvNeXt: https://arxiv.org/abs/2201.03545"""

from .config import *
from .model import *
