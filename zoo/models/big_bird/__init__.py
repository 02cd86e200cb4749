"""BigBird: https://arxiv.org/abs/2007.14062"""

from .config import *
from .model import *
