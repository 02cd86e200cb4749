"""DINOv2: https://arxiv.org/abs/2304.07193, also with registers: https://arxiv.org/abs/2309.16588"""

from .config import *
from .model import *
from .registers import *
