"""MPNet: https://arxiv.org/abs/2004.09297"""

from .config import *
from .model import *
