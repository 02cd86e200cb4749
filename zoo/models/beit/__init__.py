"""BEiT: https://arxiv.org/abs/2106.08254.  DiT: https://arxiv.org/abs/2203.02378"""

from .config import *
from .model import *
from .segmentation import *
