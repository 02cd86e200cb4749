"""MetaCLIP 2: https://arxiv.org/abs/2507.22062"""

from .config import *
from .model import *
