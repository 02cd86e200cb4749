"""ViT: https://arxiv.org/abs/2010.11929.  DeiT: https://arxiv.org/abs/2012.12877"""

from .config import *
from .deit import *
from .model import *
