"""M2M-100 and NLLB: https://arxiv.org/abs/2010.11125, https://arxiv.org/abs/2207.04672"""

from .config import *
from .model import *
