"""DeBERTa v2 and v3: https://arxiv.org/abs/2006.03654, https://arxiv.org/abs/2111.09543"""

from .config import *
from .model import *
